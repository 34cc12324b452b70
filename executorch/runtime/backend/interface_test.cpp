#include <executorch/runtime/backend/interface.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace executorch::runtime {
namespace {

class NamedBackend : public BackendInterface {
 public:
  bool is_available() const override { return true; }
  Result<DelegateHandle*> init(BackendInitContext&, FreeableBuffer*,
                               ArrayRef<CompileSpec>) const override {
    return Error::NotSupported;
  }
  Error execute(BackendExecutionContext&, DelegateHandle*, Span<EValue*>) const override {
    return Error::NotSupported;
  }
  Error set_option(BackendOptionContext&, const Span<BackendOption>& options) override {
    n_options = options.size();
    return Error::Ok;
  }

  size_t n_options = 0;
};

TEST(BackendRegistry, FindsByNameAndKeepsTheFirst) {
  static NamedBackend first;
  static NamedBackend second;
  EXPECT_EQ(get_backend_class("First"), nullptr);
  const size_t before = get_num_registered_backends();
  ASSERT_EQ(register_backend({"First", &first}), Error::Ok);
  EXPECT_EQ(register_backend({"First", &first}), Error::Ok);
  EXPECT_EQ(register_backend({"First", &second}), Error::InvalidArgument);
  EXPECT_EQ(get_backend_class("First"), &first);
  EXPECT_EQ(get_num_registered_backends(), before + 1);
  EXPECT_STREQ(*get_backend_name(before), "First");
  EXPECT_EQ(get_backend_name(before + 1).error(), Error::InvalidArgument);
  EXPECT_EQ(register_backend({nullptr, &first}), Error::InvalidArgument);
  EXPECT_EQ(get_backend_class(nullptr), nullptr);
}

TEST(BackendRegistry, OptionsReachTheBackend) {
  static NamedBackend backend;
  ASSERT_EQ(register_backend({"WithOptions", &backend}), Error::Ok);
  BackendOptions<2> options;
  ASSERT_EQ(options.set_option("a", 1), Error::Ok);
  EXPECT_EQ(set_option("WithOptions", options.view()), Error::Ok);
  EXPECT_EQ(backend.n_options, 1u);
  EXPECT_EQ(get_option("WithOptions", options.view()), Error::Ok);
  EXPECT_EQ(set_option("Unknown", options.view()), Error::NotFound);
}

TEST(BackendRegistry, FullTableIsAnError) {
  static NamedBackend backend;
  static std::vector<std::string> names;
  names.reserve(20);
  Error last = Error::Ok;
  while (last == Error::Ok && names.size() < 20) {
    names.push_back("Filler" + std::to_string(names.size()));
    last = register_backend({names.back().c_str(), &backend});
  }
  EXPECT_EQ(last, Error::Internal);
  EXPECT_EQ(get_num_registered_backends(), 16u);
}

}  // namespace
}  // namespace executorch::runtime
