#pragma once

#include <executorch/extension/llm/runner/media_values.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/log.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace executorch::extension::llm {

/// An image as a model takes it: channel after channel, row after row.
class Image : public internal::MediaValues {
 public:
  Image() = default;
  Image(std::vector<uint8_t>&& data, int32_t width, int32_t height, int32_t channels)
      : MediaValues(std::move(data)), width_(width), height_(height), channels_(channels) {}
  Image(std::vector<float>&& data, int32_t width, int32_t height, int32_t channels)
      : MediaValues(std::move(data)), width_(width), height_(height), channels_(channels) {}

  int32_t width() const { return width_; }
  int32_t height() const { return height_; }
  int32_t channels() const { return channels_; }

  /// A copy as [channels, height, width], or [1, channels, height, width]. InvalidArgument if there
  /// are not as many values as that.
  runtime::Result<TensorPtr> toTensor(bool with_batch = false) const {
    const std::vector<aten::SizesType> sizes = {channels_, height_, width_};
    ET_CHECK_OR_RETURN_ERROR(
        have_sizes(sizes), InvalidArgument, "image: %zu values are not %d channels of %d x %d",
        count(), static_cast<int>(channels_), static_cast<int>(height_), static_cast<int>(width_));
    return copy_as(sizes, with_batch);
  }

 private:
  int32_t width_ = 0;
  int32_t height_ = 0;
  int32_t channels_ = 0;
};

}  // namespace executorch::extension::llm

namespace torch::executor {
using ::executorch::extension::llm::Image;
}  // namespace torch::executor
