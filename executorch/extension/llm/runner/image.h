#pragma once

#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/log.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

namespace executorch {
namespace extension {
namespace llm {

/// An image as a model takes it: channel after channel, row after row.
class Image {
 public:
  Image() = default;
  Image(std::vector<uint8_t>&& data, int32_t width, int32_t height, int32_t channels)
      : data_(std::move(data)), width_(width), height_(height), channels_(channels) {}
  Image(std::vector<float>&& data, int32_t width, int32_t height, int32_t channels)
      : data_(std::move(data)), width_(width), height_(height), channels_(channels) {}

  int32_t width() const { return width_; }
  int32_t height() const { return height_; }
  int32_t channels() const { return channels_; }
  bool is_uint8() const { return std::holds_alternative<std::vector<uint8_t>>(data_); }
  bool is_float() const { return std::holds_alternative<std::vector<float>>(data_); }
  // Of the type that it is not: throws std::bad_variant_access.
  const std::vector<uint8_t>& get_uint8_data() const& {
    return std::get<std::vector<uint8_t>>(data_);
  }
  std::vector<uint8_t>& get_uint8_data() & { return std::get<std::vector<uint8_t>>(data_); }
  const std::vector<float>& get_float_data() const& { return std::get<std::vector<float>>(data_); }
  std::vector<float>& get_float_data() & { return std::get<std::vector<float>>(data_); }

  /// A copy as [channels, height, width], or [1, channels, height, width]. InvalidArgument if there
  /// are not as many values as that.
  runtime::Result<TensorPtr> toTensor(bool with_batch = false) const {
    const bool is_bytes = is_uint8();
    const size_t n = is_bytes ? get_uint8_data().size() : get_float_data().size();
    const int64_t plane = int64_t{width_} * height_;  // at most 2^62
    const bool fits = width_ > 0 && height_ > 0 && channels_ > 0 &&
                      plane <= std::numeric_limits<int64_t>::max() / channels_ &&
                      static_cast<uint64_t>(plane * channels_) == n;
    if (!fits) {
      ET_LOG(Error, "image: %zu values are not %d channels of %d x %d", n,
             static_cast<int>(channels_), static_cast<int>(height_), static_cast<int>(width_));
      return runtime::Error::InvalidArgument;
    }
    std::vector<aten::SizesType> sizes = {channels_, height_, width_};
    if (with_batch) sizes.insert(sizes.begin(), 1);
    if (is_bytes)
      return make_tensor_ptr(std::move(sizes), std::vector<uint8_t>(get_uint8_data()),
                             aten::ScalarType::Byte);
    return make_tensor_ptr(std::move(sizes), std::vector<float>(get_float_data()));
  }

 private:
  std::variant<std::vector<uint8_t>, std::vector<float>> data_;
  int32_t width_ = 0;
  int32_t height_ = 0;
  int32_t channels_ = 0;
};

}  // namespace llm
}  // namespace extension
}  // namespace executorch

namespace torch {
namespace executor {
using ::executorch::extension::llm::Image;
}  // namespace executor
}  // namespace torch
