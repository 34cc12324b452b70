// Kernels of the runtime called with at::Tensor.
#include <executorch/extension/aten_util/aten_bridge.h>
#include <executorch/extension/aten_util/make_aten_functor_from_et_functor.h>
#include <executorch/runtime/kernel/kernel_includes.h>

#include <gtest/gtest.h>
#include <torch/library.h>

namespace {

using namespace torch::executor;

Tensor& fill(Tensor& out, double value) {
  for (ssize_t i = 0; i < out.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] = static_cast<float>(value + static_cast<double>(i));
  }
  return out;
}

Tensor& copy_out(const Tensor& x, Tensor& out) {
  const int32_t shape[] = {static_cast<int32_t>(x.size(0)), static_cast<int32_t>(x.size(1))};
  (void)executorch::runtime::resize_tensor(out, ArrayRef<int32_t>(shape, 2));
  for (ssize_t i = 0; i < x.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] = x.const_data_ptr<float>()[i];
  }
  return out;
}

Tensor& every_kind_out(const Tensor& x, int64_t i, int32_t narrow, double d, float f, bool b,
                       const Scalar& s, ScalarType type, std::optional<ScalarType> no_type,
                       std::string_view text, ArrayRef<int64_t> ints, ArrayRef<double> doubles,
                       ArrayRef<Tensor> tensors, ArrayRef<std::optional<Tensor>> maybe_tensors,
                       const std::optional<Tensor>& maybe, std::optional<ArrayRef<int64_t>> dims,
                       std::optional<int64_t> maybe_int, Tensor& out) {
  double sum = static_cast<double>(i + narrow) + d + static_cast<double>(f) + (b ? 1 : 0) +
               s.to<double>() + static_cast<double>(type) + (no_type.has_value() ? 1e6 : 0) +
               static_cast<double>(text.size());
  for (int64_t v : ints) sum += static_cast<double>(v);
  for (double v : doubles) sum += v;
  for (const Tensor& t : tensors) sum += static_cast<double>(t.const_data_ptr<float>()[0]);
  for (const auto& t : maybe_tensors) sum += t.has_value() ? 0 : 1000;
  sum += maybe.has_value() ? static_cast<double>(maybe->const_data_ptr<float>()[0]) : 0;
  sum += dims.has_value() ? static_cast<double>(dims->size()) : 1e6;
  sum += maybe_int.has_value() ? 1e6 : 0;
  return fill(out, sum + static_cast<double>(x.const_data_ptr<float>()[0]));
}

std::tuple<Tensor&, Tensor&> two_out(KernelRuntimeContext& ctx, const Tensor& x, Tensor& a,
                                     Tensor& b) {
  if (!ctx.allocate_temp(64).ok()) ctx.fail(Error::MemoryAllocationFailed);
  if (x.numel() == 0) ctx.fail(Error::InvalidArgument);
  fill(a, 1);
  fill(b, 2);
  return {a, b};
}

int64_t count(ArrayRef<Tensor> tensors) {
  return static_cast<int64_t>(tensors.size());
}

void negate_(Tensor& x) {
  for (ssize_t i = 0; i < x.numel(); ++i) x.mutable_data_ptr<float>()[i] *= -1;
}

TORCH_LIBRARY(aten_util_test, m) {
  m.def("copy.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", WRAP_TO_ATEN(copy_out, 1));
  m.def(
      "every_kind.out(Tensor x, int i, int narrow, float d, float f, bool b, Scalar s, "
      "ScalarType type, ScalarType? no_type, str text, int[] ints, float[] doubles, "
      "Tensor[] tensors, Tensor?[] maybe_tensors, Tensor? maybe, int[]? dims, int? maybe_int, *, "
      "Tensor(a!) out) -> Tensor(a!)",
      WRAP_TO_ATEN(every_kind_out, 17));
  m.def("two.out(Tensor x, *, Tensor(a!) a, Tensor(b!) b) -> (Tensor(a!), Tensor(b!))",
        WRAP_TO_ATEN(two_out, 1));
  m.def("count(Tensor[] tensors) -> int", WRAP_TO_ATEN(count));
}

TEST(WrapToAten, WritesWhereTheOutTensorLies) {
  const at::Tensor x = at::rand({2, 3});
  at::Tensor out = at::empty({2, 3});
  void* const memory = out.data_ptr();
  at::Tensor& returned = WRAP_TO_ATEN(copy_out, 1)(x, out);
  EXPECT_EQ(&returned, &out);
  EXPECT_EQ(out.data_ptr(), memory);
  EXPECT_TRUE(at::equal(out, x));
}

TEST(WrapToAten, StridesOfArgumentsAndOutAreHonoured) {
  const at::Tensor x = at::rand({3, 2}).t();
  at::Tensor base = at::zeros({3, 4});
  at::Tensor out = base.slice(1, 0, 4, 2).t();  // [2, 3], every second element
  WRAP_TO_ATEN(copy_out, 1)(x, out);
  EXPECT_TRUE(at::equal(out, x));
  EXPECT_TRUE(at::equal(base.slice(1, 0, 4, 2), x.t()));
  EXPECT_EQ(base.slice(1, 1, 4, 2).abs().sum().item<float>(), 0);
}

TEST(WrapToAten, OutTakesTheSizesOfTheResult) {
  const at::Tensor x = at::rand({2, 3});
  at::Tensor out = at::empty({4, 5});
  WRAP_TO_ATEN(copy_out, 1)(x, out);
  EXPECT_TRUE(at::equal(out, x));
  at::Tensor strided = at::empty({5, 4}).t();
  WRAP_TO_ATEN(copy_out, 1)(x, strided);
  EXPECT_TRUE(at::equal(strided, x));
}

TEST(WrapToAten, EveryKindOfArgumentArrives) {
  at::Tensor out = at::empty({2});
  const at::Tensor one = at::ones({1});
  c10::List<std::optional<at::Tensor>> maybe_tensors;
  maybe_tensors.push_back(std::nullopt);
  maybe_tensors.push_back(one);
  const std::vector<int64_t> ints{1, 2};
  const std::vector<double> doubles{0.5, 0.25};
  const std::vector<at::Tensor> tensors{one, one};
  WRAP_TO_ATEN(every_kind_out, 17)
  (one, 10, 20, 0.125, 0.5, true, 7, c10::ScalarType::Float, std::nullopt, "abc", ints, doubles,
   tensors, maybe_tensors, one, at::OptionalIntArrayRef(ints), std::nullopt, out);
  const float expected = 30 + 0.625f + 1 + 7 + 6 + 3 + 3 + 0.75f + 2 + 1000 + 1 + 2 + 1;
  EXPECT_EQ(out[0].item<float>(), expected);
  EXPECT_EQ(out[1].item<float>(), expected + 1);
}

TEST(WrapToAten, SeveralOutsAndNumbersAreReturned) {
  at::Tensor a = at::empty({1});
  at::Tensor b = at::empty({1});
  const auto [first, second] = WRAP_TO_ATEN(two_out, 1)(at::ones({1}), a, b);
  EXPECT_EQ(first.item<float>(), 1);
  EXPECT_EQ(second.item<float>(), 2);
  const std::vector<at::Tensor> three(3, a);
  EXPECT_EQ(WRAP_TO_ATEN(count)(three), 3);
}

TEST(WrapToAten, TensorWithoutReturnIsWrittenToo) {
  at::Tensor x = at::ones({4, 4}).slice(1, 0, 4, 2);
  WRAP_TO_ATEN(negate_)(x);
  EXPECT_EQ(x.sum().item<float>(), -8);
}

TEST(WrapToAten, FailuresAreThrown) {
  at::Tensor a = at::empty({1});
  at::Tensor b = at::empty({1});
  EXPECT_THROW(WRAP_TO_ATEN(two_out, 1)(at::empty({0}), a, b), c10::Error);
  const at::Tensor unknown = at::empty({1}, at::kFloat8_e8m0fnu);
  EXPECT_THROW(WRAP_TO_ATEN(copy_out, 1)(unknown, a), c10::Error);
  const at::Tensor meta = at::empty({2, 2}, at::kMeta);
  EXPECT_THROW(WRAP_TO_ATEN(copy_out, 1)(meta, a), c10::Error);
}

TEST(WrapToAten, RegistersWithTheDispatcher) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten_util_test::copy", "out");
  const at::Tensor x = at::rand({2, 2});
  at::Tensor out = at::empty({2, 2});
  op.typed<at::Tensor&(const at::Tensor&, at::Tensor&)>().call(x, out);
  EXPECT_TRUE(at::equal(out, x));
}

TEST(AtenBridge, BothDirectionsShareMemory) {
  at::Tensor x = at::arange(6, at::kFloat).reshape({1, 2, 3, 1});
  x = x.contiguous(at::MemoryFormat::ChannelsLast);
  const auto et = executorch::extension::alias_tensor_ptr_to_attensor(x);
  EXPECT_EQ(et->const_data_ptr(), x.data_ptr());
  EXPECT_EQ(et->scalar_type(), ScalarType::Float);
  const at::Tensor back = util::alias_attensor_to_etensor(*et);
  EXPECT_EQ(back.data_ptr(), x.data_ptr());
  EXPECT_TRUE(at::equal(back, x));
  at::Tensor sparse = at::zeros({4}).slice(0, 0, 4, 2);
  EXPECT_THROW(executorch::extension::alias_tensor_ptr_to_attensor(sparse), c10::Error);
}

TEST(AtenBridge, TensorsMadeWithoutStridesHaveThoseOfTheirDimOrder) {
  int32_t sizes[] = {2, 3};
  uint8_t by_column[] = {1, 0}, twice[] = {1, 1};
  float data[] = {1, 2, 3, 4, 5, 6};
  TensorImpl bare(ScalarType::Float, 2, sizes, data);
  EXPECT_EQ(util::alias_attensor_to_etensor(Tensor(&bare))[1][0].item<float>(), 4);
  TensorImpl ordered(ScalarType::Float, 2, sizes, data, by_column);
  EXPECT_EQ(util::alias_attensor_to_etensor(Tensor(&ordered))[1][0].item<float>(), 2);
  TensorImpl unordered(ScalarType::Float, 2, sizes, data, twice);
  EXPECT_THROW(util::alias_attensor_to_etensor(Tensor(&unordered)), c10::Error);
}

TEST(AtenBridge, TensorsBeyondTheRuntimesLimitsAreErrors) {
  at::Tensor deep = at::ones(std::vector<int64_t>(17, 1));
  EXPECT_THROW(executorch::extension::alias_tensor_ptr_to_attensor(deep), c10::Error);
  float one = 1;
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{int64_t{1} << 32}, std::vector<int64_t>{2, 0, int64_t{1} << 31}}) {
    at::Tensor large = at::from_blob(&one, sizes);  // not read
    EXPECT_THROW(executorch::extension::alias_tensor_ptr_to_attensor(large), c10::Error);
  }
}

TEST(AtenBridge, PointsATensorAtTorchsMemory) {
  auto et = executorch::extension::zeros({2, 2});
  Tensor handle = *et;
  at::Tensor x = at::ones({2, 2});
  torch::util::alias_etensor_to_attensor(x, handle);
  EXPECT_EQ(handle.const_data_ptr(), x.data_ptr());
  at::Tensor wrong_sizes = at::ones({4});
  EXPECT_THROW(util::alias_etensor_to_attensor(wrong_sizes, handle), c10::Error);
  at::Tensor wrong_type = at::ones({2, 2}, at::kDouble);
  EXPECT_THROW(util::alias_etensor_to_attensor(wrong_type, handle), c10::Error);
}

TEST(AtenBridge, TypesAndDevicesTranslate) {
  EXPECT_EQ(util::torchToExecuTorchScalarType(caffe2::TypeMeta::Make<c10::Half>()),
            ScalarType::Half);
  EXPECT_EQ(util::execuTorchtoTorchScalarType(ScalarType::UInt16), c10::ScalarType::UInt16);
  const auto cpu = executorch::extension::torch_to_executorch_device(c10::kCPU);
  EXPECT_TRUE(cpu->is_cpu());
  EXPECT_TRUE(executorch::extension::executorch_to_torch_device(*cpu).is_cpu());
  EXPECT_FALSE(executorch::extension::torch_to_executorch_device(c10::kMeta).has_value());
}

}  // namespace
