#include <executorch/extension/tensor/tensor_ptr_maker.h>
#include <executorch/runtime/platform/assert.h>

#include <new>
#include <random>

namespace executorch::extension {

using aten::Scalar;
using aten::ScalarType;
using aten::SizesType;
using aten::StridesType;
using aten::TensorShapeDynamism;

namespace {

std::mt19937_64& generator() {
  thread_local std::mt19937_64 engine{std::random_device{}()};
  return engine;
}

/// Sets every element of `tensor` to T(next()).
template <typename Next>
void fill(const TensorPtr& tensor, Next next) {
  const auto count = static_cast<size_t>(tensor->numel());
  switch (tensor->scalar_type()) {
#define FILL(ctype, name)                                  \
  case ScalarType::name: {                                 \
    ctype* const data = tensor->mutable_data_ptr<ctype>(); \
    for (size_t i = 0; i < count; ++i) {                   \
      data[i] = static_cast<ctype>(next());                \
    }                                                      \
    return;                                                \
  }
    ET_FORALL_REALHBBF16_TYPES(FILL)
#undef FILL
    default:
      ET_CHECK_MSG(false, "tensor factories: no values for elements of type %s",
                   runtime::toString(tensor->scalar_type()));
  }
}

/// Significant bits, so that a uniform draw of that many bits never rounds up to 1.
int significand_bits(ScalarType type) {
  switch (type) {
    case ScalarType::BFloat16:
      return 8;
    case ScalarType::Half:
      return 11;
    case ScalarType::Double:
      return 53;
    default:
      return 24;
  }
}

}  // namespace

TensorPtr empty_strided(std::vector<SizesType> sizes, std::vector<StridesType> strides,
                        ScalarType type, TensorShapeDynamism dynamism) {
  size_t bytes = runtime::elementSize(type);
  for (const SizesType size : sizes) {
    ET_CHECK_MSG(size >= 0, "tensor factories: negative size %d", static_cast<int>(size));
    ET_CHECK_MSG(!__builtin_mul_overflow(bytes, static_cast<size_t>(size), &bytes),
                 "tensor factories: the size of the tensor overflows");
  }
  std::shared_ptr<void> owner(::operator new(bytes), [](void* p) { ::operator delete(p); });
  void* const data = owner.get();
  return internal::make_tensor_ptr_owned_by(std::move(owner), data, std::move(sizes), {},
                                            std::move(strides), type, dynamism);
}

TensorPtr full_strided(std::vector<SizesType> sizes, std::vector<StridesType> strides,
                       Scalar fill_value, ScalarType type, TensorShapeDynamism dynamism) {
  auto tensor = empty_strided(std::move(sizes), std::move(strides), type, dynamism);
  if (fill_value.isFloatingPoint()) {
    fill(tensor, [value = fill_value.to<double>()] { return value; });
  } else if (fill_value.isBoolean()) {
    fill(tensor, [value = fill_value.to<bool>()] { return value; });
  } else {
    fill(tensor, [value = fill_value.to<int64_t>()] { return value; });
  }
  return tensor;
}

TensorPtr rand_strided(std::vector<SizesType> sizes, std::vector<StridesType> strides,
                       ScalarType type, TensorShapeDynamism dynamism) {
  auto tensor = empty_strided(std::move(sizes), std::move(strides), type, dynamism);
  const int bits = significand_bits(type);
  const double scale = 1.0 / static_cast<double>(uint64_t(1) << bits);
  fill(tensor, [=] { return static_cast<double>(generator()() >> (64 - bits)) * scale; });
  return tensor;
}

TensorPtr randn_strided(std::vector<SizesType> sizes, std::vector<StridesType> strides,
                        ScalarType type, TensorShapeDynamism dynamism) {
  auto tensor = empty_strided(std::move(sizes), std::move(strides), type, dynamism);
  std::normal_distribution<double> normal;
  fill(tensor, [&] { return normal(generator()); });
  return tensor;
}

TensorPtr randint_strided(int64_t low, int64_t high, std::vector<SizesType> sizes,
                          std::vector<StridesType> strides, ScalarType type,
                          TensorShapeDynamism dynamism) {
  ET_CHECK_MSG(low < high, "randint: no integer in [%lld, %lld)", static_cast<long long>(low),
               static_cast<long long>(high));
  auto tensor = empty_strided(std::move(sizes), std::move(strides), type, dynamism);
  std::uniform_int_distribution<int64_t> uniform(low, high - 1);
  fill(tensor, [&] { return uniform(generator()); });
  return tensor;
}

}  // namespace executorch::extension
