#pragma once

#include <executorch/extension/tensor/tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace executorch::extension::llm::internal {

/// Interleaved values [n, n_channels] as planes [n_channels, n]; n_channels > 0. Values that are not
/// part of a whole row are left out.
template <class T>
std::vector<T> planes_of(const T* interleaved, size_t count, size_t n_channels) {
  const size_t n = count / n_channels;
  std::vector<T> planes(n * n_channels);
  for (size_t i = 0; i < planes.size(); ++i) {
    planes[i % n_channels * n + i / n_channels] = interleaved[i];
  }
  return planes;
}

/// The values of an image or of a sound: bytes, or floats.
class MediaValues {
 public:
  MediaValues() = default;
  explicit MediaValues(std::vector<uint8_t>&& values) : values_(std::move(values)) {}
  explicit MediaValues(std::vector<float>&& values) : values_(std::move(values)) {}

  bool is_uint8() const { return std::holds_alternative<std::vector<uint8_t>>(values_); }
  bool is_float() const { return std::holds_alternative<std::vector<float>>(values_); }
  // These throw std::bad_variant_access where it is of another type.
  const std::vector<uint8_t>& get_uint8_data() const& {
    return std::get<std::vector<uint8_t>>(values_);
  }
  std::vector<uint8_t>& get_uint8_data() & { return std::get<std::vector<uint8_t>>(values_); }
  const std::vector<float>& get_float_data() const& {
    return std::get<std::vector<float>>(values_);
  }
  std::vector<float>& get_float_data() & { return std::get<std::vector<float>>(values_); }

 protected:
  size_t count() const {
    return std::visit([](const auto& values) { return values.size(); }, values_);
  }

  /// Whether there are values for these sizes, all of which are positive.
  bool have_sizes(const std::vector<aten::SizesType>& sizes) const {
    uint64_t n = 1;
    for (const aten::SizesType size : sizes) {
      if (size <= 0 || __builtin_mul_overflow(n, static_cast<uint64_t>(size), &n)) return false;
    }
    return n == count();
  }

  /// A tensor of a copy of the values, with a batch of one in front if asked.
  TensorPtr copy_as(std::vector<aten::SizesType> sizes, bool with_batch) const {
    if (with_batch) sizes.insert(sizes.begin(), 1);
    return std::visit(
        [&](const auto& values) {
          using T = typename std::decay_t<decltype(values)>::value_type;
          return make_tensor_ptr(std::move(sizes), std::vector<T>(values),
                                 runtime::CppTypeToScalarType<T>::value);
        },
        values_);
  }

 private:
  std::variant<std::vector<uint8_t>, std::vector<float>> values_;
};

}  // namespace executorch::extension::llm::internal
