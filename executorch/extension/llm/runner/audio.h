#pragma once

#include <executorch/extension/llm/runner/media_values.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/log.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace executorch::extension::llm {

/// Sound as it was recorded.
struct RawAudio {
  std::vector<uint8_t> data;
  int32_t batch_size;
  int32_t n_channels;
  int32_t n_samples;
};

/// Sound as a model takes it: a spectrogram.
class Audio final : public internal::MediaValues {
 public:
  Audio() = default;
  Audio(std::vector<uint8_t>&& data, int32_t batch_size, int32_t n_bins, int32_t n_frames)
      : MediaValues(std::move(data)),
        batch_size_(batch_size),
        n_bins_(n_bins),
        n_frames_(n_frames) {}
  Audio(std::vector<float>&& data, int32_t batch_size, int32_t n_bins, int32_t n_frames)
      : MediaValues(std::move(data)),
        batch_size_(batch_size),
        n_bins_(n_bins),
        n_frames_(n_frames) {}

  int32_t get_batch_size() const { return batch_size_; }
  int32_t get_n_bins() const { return n_bins_; }
  int32_t get_n_frames() const { return n_frames_; }

  /// A copy as [batch, bins, frames], or [1, batch, bins, frames]. InvalidArgument if there are not
  /// as many values as that.
  runtime::Result<TensorPtr> toTensor(bool with_batch = false) const {
    const std::vector<aten::SizesType> sizes = {batch_size_, n_bins_, n_frames_};
    ET_CHECK_OR_RETURN_ERROR(have_sizes(sizes), InvalidArgument,
                             "audio: %zu values are not %d times %d bins of %d frames", count(),
                             static_cast<int>(batch_size_), static_cast<int>(n_bins_),
                             static_cast<int>(n_frames_));
    return copy_as(sizes, with_batch);
  }

 private:
  int32_t batch_size_ = 0;
  int32_t n_bins_ = 0;
  int32_t n_frames_ = 0;
};

}  // namespace executorch::extension::llm

namespace torch::executor {
using ::executorch::extension::llm::Audio;
}  // namespace torch::executor
