// Operators as a user registers them: one include, EXECUTORCH_LIBRARY beside each function.
#include <executorch/runtime/kernel/kernel_includes.h>

#include <gtest/gtest.h>

#include <string>

#include <executorch/runtime/core/exec_aten/testing_util/tensor_factory.h>
#include <executorch/runtime/platform/platform.h>

namespace my_ops {

using namespace torch::executor;

Tensor& set(Tensor& out, float value) {
  out.mutable_data_ptr<float>()[0] = value;
  return out;
}

Tensor& plain_out(const Tensor& self, optional<Tensor> bias, Tensor& out) {
  return set(out, self.const_data_ptr<float>()[0] + (bias.has_value() ? 10.f : 0.f));
}
Tensor& context_out(KernelRuntimeContext& ctx, const Tensor& self, double scale, Tensor& out) {
  if (scale == 0) ctx.fail(Error::InvalidArgument);
  return set(out, self.const_data_ptr<float>()[0] * static_cast<float>(scale));
}
Tensor& any_out(const Tensor&, Tensor& out) {
  return set(out, 1);
}
Tensor& float_2d_out(const Tensor&, Tensor& out) {
  return set(out, 2);
}
Tensor& float_columns_out(const Tensor&, Tensor& out) {
  return set(out, 3);
}
Tensor& refused_out(const Tensor&, Tensor& out) {
  return set(out, 4);
}

// Several of one namespace, two of them on one line.
EXECUTORCH_LIBRARY(library_test, "plain.out", plain_out);
EXECUTORCH_LIBRARY(library_test, "context.out", context_out);
// clang-format off
EXECUTORCH_LIBRARY(library_test, "any.out", any_out); EXECUTORCH_LIBRARY(library_test, "any.out", float_2d_out, "v1/6;0,1|6;0,1");
// clang-format on
EXECUTORCH_LIBRARY(library_test, "any.out", float_columns_out, "v1/6;1,0|6;1,0");

}  // namespace my_ops

namespace {

using namespace executorch::runtime;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::testing::TensorFactory;

std::string log_text;

void keep(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t, const char* message,
          size_t length) {
  log_text.append(message, length);
}

class Library : public ::testing::Test {
 protected:
  float call(const char* name, std::vector<EValue> values) {
    std::vector<EValue*> args;
    std::vector<TensorMeta> metas;
    for (EValue& value : values) {
      args.push_back(&value);
      if (value.isTensor()) {
        const auto order = value.toTensor().dim_order();
        metas.emplace_back(value.toTensor().scalar_type(),
                           Span<uint8_t>(const_cast<uint8_t*>(order.data()), order.size()));
      }
    }
    auto op = get_op_function_from_registry(name, {metas.data(), metas.size()});
    EXPECT_TRUE(op.ok());
    KernelRuntimeContext context;
    (*op)(context, {args.data(), args.size()});
    error_ = context.failure_state();
    return values.back().toTensor().const_data_ptr<float>()[0];
  }

  TensorFactory<ScalarType::Float> tf_;
  TensorFactory<ScalarType::Double> td_;
  Error error_ = Error::Ok;
};

TEST_F(Library, RegistersWithAndWithoutContext) {
  const Tensor x = tf_.make({1}, {3});
  EXPECT_EQ(call("library_test::plain.out", {x, EValue(), tf_.zeros({1})}), 3);
  EXPECT_EQ(call("library_test::plain.out", {x, x, tf_.zeros({1})}), 13);
  EXPECT_EQ(call("library_test::context.out", {x, 2.0, tf_.zeros({1})}), 6);
  EXPECT_EQ(error_, Error::Ok);
  call("library_test::context.out", {x, 0.0, tf_.zeros({1})});
  EXPECT_EQ(error_, Error::InvalidArgument);
}

TEST_F(Library, ChoosesByTypeAndDimOrder) {
  Tensor out = tf_.zeros({2, 2});
  Tensor columns = tf_.zeros_channels_last({1, 1, 1, 1});
  EXPECT_EQ(call("library_test::any.out", {tf_.ones({2, 2}), out}), 2);
  // As programs call it: out twice.
  EXPECT_EQ(call("library_test::any.out", {tf_.ones({2, 2}), out, out}), 2);
  EXPECT_EQ(call("library_test::any.out", {td_.ones({2, 2}), out, out}), 1);
  EXPECT_EQ(call("library_test::any.out", {tf_.ones({4}), tf_.zeros({4})}), 1);
  EXPECT_EQ(call("library_test::any.out", {columns, tf_.zeros_channels_last({1, 1, 1, 1})}), 1);

  uint8_t order[] = {1, 0};
  const TensorMeta transposed[] = {{ScalarType::Float, order}, {ScalarType::Float, order}};
  const auto chosen = get_op_function_from_registry("library_test::any.out", transposed);
  EXPECT_NE(*chosen, *get_op_function_from_registry("library_test::any.out"));
}

TEST(KernelKey, FormIsCheckedWhenCompiled) {
  for (const char* good : {"", "v1/6;0,1", "v1/6;", "v1/6;|6;", "v1/6;0|15;0,2,3,1|1;0"}) {
    EXPECT_TRUE(internal::is_kernel_key(good)) << good;
  }
  for (const char* bad : {"v", "v1/", "v2/6;0", "v1/6", "v1/6;0,", "v1/6;0|", "v1/;0", "v1/6;;",
                          "v1/6,0", "v1/6;0|6", "float;0", "v1/6;,0"}) {
    EXPECT_FALSE(internal::is_kernel_key(bad)) << bad;
  }
}

TEST_F(Library, SecondLibraryIsRefusedAndBothAreNamed) {
  const PalImpl before = *get_pal_impl();
  log_text.clear();
  register_pal(PalImpl::create(keep, __FILE__));
  const OpFunction other = boxed<&my_ops::refused_out>;
  const Kernel second("library_test::any.out", KernelKey(), other, "other/library.cpp:7");
  EXPECT_EQ(register_kernel(second), Error::RegistrationAlreadyRegistered);
  register_pal(before);
  EXPECT_NE(log_text.find("library_test::any.out"), std::string::npos);
  EXPECT_NE(log_text.find("other/library.cpp:7"), std::string::npos) << log_text;
  EXPECT_NE(log_text.find("kernel/library_test.cpp:"), std::string::npos) << log_text;
  EXPECT_EQ(call("library_test::any.out", {td_.ones({1}), tf_.zeros({1})}), 1);
}

TEST(LibraryOrigin, TheSameSourceLinkedTwiceIsFine) {
  const Kernel first("library_test::copy.out", KernelKey(), boxed<&my_ops::any_out>, "a.cpp:1");
  const Kernel copy("library_test::copy.out", KernelKey(), boxed<&my_ops::refused_out>, "a.cpp:1");
  EXPECT_EQ(register_kernel(first), Error::Ok);
  EXPECT_EQ(register_kernel(copy), Error::Ok);
  EXPECT_EQ(*get_op_function_from_registry("library_test::copy.out"), boxed<&my_ops::any_out>);
}

TEST(LibraryOrigin, IsGivenToATableAsAWhole) {
  const Kernel rows[] = {Kernel("library_test::table.out", boxed<&my_ops::any_out>)};
  ASSERT_EQ(register_kernels(rows, "a table"), Error::Ok);
  for (const Kernel& kernel : get_registered_kernels()) {
    if (std::string(kernel.name_) == "library_test::table.out") {
      EXPECT_STREQ(kernel.origin_, "a table");
    }
  }
}

}  // namespace
