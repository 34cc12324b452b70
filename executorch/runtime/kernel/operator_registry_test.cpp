#include <executorch/runtime/kernel/operator_registry.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace executorch::runtime {
namespace {

using aten::ScalarType;

void first(KernelRuntimeContext&, Span<EValue*>) {}
void second(KernelRuntimeContext&, Span<EValue*>) {}

uint8_t contiguous[] = {0, 1, 2, 3};
uint8_t channels_last[] = {0, 2, 3, 1};

TEST(OperatorRegistry, FindsWhatWasRegistered) {
  EXPECT_FALSE(registry_has_op_function("test::a.out"));
  EXPECT_EQ(get_op_function_from_registry("test::a.out").error(), Error::OperatorMissing);
  ASSERT_EQ(register_kernel(Kernel("test::a.out", first)), Error::Ok);
  EXPECT_EQ(*get_op_function_from_registry("test::a.out"), first);
  EXPECT_EQ(torch::executor::getOpsFn("test::a.out"), first);
  EXPECT_FALSE(torch::executor::hasOpsFn("test::a"));
  EXPECT_FALSE(registry_has_op_function(nullptr));
  EXPECT_EQ(get_op_function_from_registry(nullptr).error(), Error::OperatorMissing);
}

TEST(OperatorRegistry, SameRowIsOkAnotherFunctionIsNot) {
  const Kernel rows[] = {Kernel("test::b.out", first), Kernel("test::b.out", second),
                         Kernel("test::c.out", second)};
  const size_t before = get_registered_kernels().size();
  EXPECT_EQ(register_kernels({rows, 3}), Error::RegistrationAlreadyRegistered);
  EXPECT_EQ(*get_op_function_from_registry("test::b.out"), first);
  EXPECT_EQ(*get_op_function_from_registry("test::c.out"), second);
  EXPECT_EQ(register_kernels({rows, 1}), Error::Ok);
  EXPECT_EQ(get_registered_kernels().size(), before + 2);
}

TEST(OperatorRegistry, KeySelectsByTypeAndDimOrder) {
  const Kernel rows[] = {
      Kernel("test::keyed.out", KernelKey("v1/6;0,1,2,3|4;0,2,3,1"), first),
      Kernel("test::keyed.out", KernelKey("v1/15;"), second),
  };
  ASSERT_EQ(register_kernels({rows, 2}), Error::Ok);
  const TensorMeta pair[] = {{ScalarType::Float, contiguous}, {ScalarType::Long, channels_last}};
  EXPECT_EQ(*get_op_function_from_registry("test::keyed.out", pair), first);
  const TensorMeta other_order[] = {{ScalarType::Float, contiguous},
                                    {ScalarType::Long, contiguous}};
  EXPECT_FALSE(registry_has_op_function("test::keyed.out", other_order));
  EXPECT_FALSE(registry_has_op_function("test::keyed.out", {pair, 1}));
  EXPECT_FALSE(registry_has_op_function("test::keyed.out"));
  const TensorMeta scalar[] = {{ScalarType::BFloat16, {}}};
  EXPECT_EQ(*get_op_function_from_registry("test::keyed.out", scalar), second);
}

TEST(OperatorRegistry, FallbackServesWhatNoKeyMatches) {
  const Kernel rows[] = {
      Kernel("test::mixed.out", second),
      Kernel("test::mixed.out", KernelKey("v1/6;0,1,2,3"), first),
  };
  ASSERT_EQ(register_kernels({rows, 2}), Error::Ok);
  const TensorMeta exact[] = {{ScalarType::Float, contiguous}};
  const TensorMeta other[] = {{ScalarType::Double, contiguous}};
  EXPECT_EQ(*get_op_function_from_registry("test::mixed.out", exact), first);
  EXPECT_EQ(*get_op_function_from_registry("test::mixed.out", other), second);
}

TEST(OperatorRegistry, KeysAreWrittenAsTheyAreRead) {
  const TensorMeta pair[] = {{ScalarType::BFloat16, channels_last}, {ScalarType::Long, {}}};
  char key[internal::kKernelKeyBufSize];
  ASSERT_EQ(internal::make_kernel_key_string(pair, key, sizeof(key)), Error::Ok);
  EXPECT_STREQ(key, "v1/15;0,2,3,1|4;");
  const Kernel own[] = {Kernel("test::written.out", KernelKey(key), first)};
  EXPECT_EQ(*get_op_function_from_registry("test::written.out", pair, own), first);
  EXPECT_EQ(internal::make_kernel_key_string({}, key, sizeof(key)), Error::Ok);
  EXPECT_STREQ(key, "");
  EXPECT_EQ(internal::make_kernel_key_string({}, nullptr, 0), Error::Ok);
}

TEST(OperatorRegistry, KeysThatDoNotFitAreErrors) {
  const TensorMeta pair[] = {{ScalarType::BFloat16, channels_last}, {ScalarType::Long, {}}};
  const size_t needed = std::string("v1/15;0,2,3,1|4;").size() + 1;
  for (size_t room = 0; room <= needed; ++room) {
    std::vector<char> key(room);  // a write behind it is found by the sanitizer
    EXPECT_EQ(internal::make_kernel_key_string(pair, key.data(), room),
              room == needed ? Error::Ok : Error::InvalidArgument)
        << room;
  }
  char key[internal::kKernelKeyBufSize];
  uint8_t far[] = {100};
  const TensorMeta dim[] = {{ScalarType::Float, far}};
  EXPECT_EQ(internal::make_kernel_key_string(dim, key, sizeof(key)), Error::InvalidArgument);
  const TensorMeta type[] = {{static_cast<ScalarType>(-1), contiguous}};
  EXPECT_EQ(internal::make_kernel_key_string(type, key, sizeof(key)), Error::InvalidArgument);
}

TEST(OperatorRegistry, AnotherTableMayBeSearched) {
  const Kernel own[] = {Kernel("test::own.out", second)};
  EXPECT_EQ(*get_op_function_from_registry("test::own.out", {}, own), second);
  EXPECT_FALSE(registry_has_op_function("test::own.out"));
  const Kernel rows_without[] = {Kernel("test::own.out", nullptr), Kernel(nullptr, second)};
  EXPECT_EQ(get_op_function_from_registry("test::own.out", {}, rows_without).error(),
            Error::OperatorMissing);
}

TEST(OperatorRegistry, LegacyLambdaIsCalledWithPointers) {
  static int64_t seen = 0;
  const Kernel kernel("test::legacy.out",
                      [](torch::executor::RuntimeContext&, torch::executor::EValue** stack) {
                        seen = stack[1]->toInt();
                      });
  EValue a(1);
  EValue b(2);
  EValue* args[] = {&a, &b};
  KernelRuntimeContext context;
  kernel.op_(context, {args, 2});
  EXPECT_EQ(seen, 2);
}

TEST(OperatorRegistry, FullTableIsAnError) {
  static std::vector<std::string> names;
  names.reserve(2001);
  Error last = Error::Ok;
  while (last == Error::Ok && names.size() <= 2000) {
    names.push_back("filler::" + std::to_string(names.size()));
    last = register_kernel(Kernel(names.back().c_str(), first));
  }
  EXPECT_EQ(last, Error::RegistrationExceedingMaxKernels);
  EXPECT_EQ(register_kernel(Kernel("test::null.out", OpFunction(nullptr))), Error::InvalidArgument);
}

}  // namespace
}  // namespace executorch::runtime
