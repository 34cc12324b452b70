/// The run-time half: two backends that read different texts and run the same steps.
#include <executorch/backends/example/runtime/text.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/platform/log.h>

#include <string_view>

namespace {

using executorch::backends::example::read_compiler_demo;
using executorch::backends::example::read_example;
using executorch::backends::example::Steps;
using executorch::runtime::ArrayRef;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::BackendInterface;
using executorch::runtime::catch_allocation_failure;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using executorch::runtime::Span;

class StepsBackend : public BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed,
                               ArrayRef<CompileSpec> /*compile_specs*/) const override {
    const std::string_view text(static_cast<const char*>(processed->data()), processed->size());
    // Containers, which throw without memory, are used here only: while the program is loaded.
    return catch_allocation_failure("ExampleBackend", [&]() -> Result<DelegateHandle*> {
      ET_ASSIGN_OR_RETURN(Steps steps, read(text, context));
      auto* const handle = new Steps(std::move(steps));
      processed->Free();  // all that is needed of it has been read
      return handle;
    });
  }

  Error execute(BackendExecutionContext& context, DelegateHandle* handle,
                Span<EValue*> args) const override {
    return static_cast<const Steps*>(handle)->run(context, args);
  }

  bool writes_argument(const DelegateHandle* handle, size_t index, size_t n_args) const override {
    return static_cast<const Steps*>(handle)->writes_argument(index, n_args);
  }

  void destroy(DelegateHandle* handle) const override { delete static_cast<Steps*>(handle); }

 private:
  virtual Result<Steps> read(std::string_view text, BackendInitContext& context) const = 0;
};

class ExampleBackend final : public StepsBackend {
  Result<Steps> read(std::string_view text, BackendInitContext& context) const override {
    return read_example(text, context.get_named_data_map());
  }
};

class CompilerDemo final : public StepsBackend {
  Result<Steps> read(std::string_view text, BackendInitContext& /*context*/) const override {
    return read_compiler_demo(text);
  }
};

ExampleBackend example;
CompilerDemo compiler_demo;

int add(const char* name, BackendInterface& backend) {
  const Error error = executorch::runtime::register_backend({name, &backend});
  if (error != Error::Ok) {
    ET_LOG(Error, "%s is not registered: %s", name, executorch::runtime::to_string(error));
  }
  return 1;
}

}  // namespace

extern "C" int et_example_backend_registered;
int et_example_backend_registered =
    add("ExampleBackend", example) + add("BackendWithCompilerDemo", compiler_demo);
