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

/// Sound as it was recorded.
struct RawAudio {
  std::vector<uint8_t> data;
  int32_t batch_size;
  int32_t n_channels;
  int32_t n_samples;
};

/// Sound as a model takes it: a spectrogram.
class Audio final {
 public:
  Audio() = default;
  Audio(std::vector<uint8_t>&& data, int32_t batch_size, int32_t n_bins, int32_t n_frames)
      : data_(std::move(data)), batch_size_(batch_size), n_bins_(n_bins), n_frames_(n_frames) {}
  Audio(std::vector<float>&& data, int32_t batch_size, int32_t n_bins, int32_t n_frames)
      : data_(std::move(data)), batch_size_(batch_size), n_bins_(n_bins), n_frames_(n_frames) {}

  bool is_uint8() const { return std::holds_alternative<std::vector<uint8_t>>(data_); }
  bool is_float() const { return std::holds_alternative<std::vector<float>>(data_); }
  // Of the type that it is not: throws std::bad_variant_access.
  const std::vector<uint8_t>& get_uint8_data() const& {
    return std::get<std::vector<uint8_t>>(data_);
  }
  std::vector<uint8_t>& get_uint8_data() & { return std::get<std::vector<uint8_t>>(data_); }
  const std::vector<float>& get_float_data() const& { return std::get<std::vector<float>>(data_); }
  std::vector<float>& get_float_data() & { return std::get<std::vector<float>>(data_); }
  int32_t get_batch_size() const { return batch_size_; }
  int32_t get_n_bins() const { return n_bins_; }
  int32_t get_n_frames() const { return n_frames_; }

  /// A copy as [batch, bins, frames], or [1, batch, bins, frames]. InvalidArgument if there are not
  /// as many values as that.
  runtime::Result<TensorPtr> toTensor(bool with_batch = false) const {
    const bool is_bytes = is_uint8();
    const size_t n = is_bytes ? get_uint8_data().size() : get_float_data().size();
    const int64_t plane = int64_t{n_bins_} * n_frames_;  // at most 2^62
    const bool fits = batch_size_ > 0 && n_bins_ > 0 && n_frames_ > 0 &&
                      plane <= std::numeric_limits<int64_t>::max() / batch_size_ &&
                      static_cast<uint64_t>(plane * batch_size_) == n;
    if (!fits) {
      ET_LOG(Error, "audio: %zu values are not %d times %d bins of %d frames", n,
             static_cast<int>(batch_size_), static_cast<int>(n_bins_), static_cast<int>(n_frames_));
      return runtime::Error::InvalidArgument;
    }
    std::vector<aten::SizesType> sizes = {batch_size_, n_bins_, n_frames_};
    if (with_batch) sizes.insert(sizes.begin(), 1);
    if (is_bytes)
      return make_tensor_ptr(std::move(sizes), std::vector<uint8_t>(get_uint8_data()),
                             aten::ScalarType::Byte);
    return make_tensor_ptr(std::move(sizes), std::vector<float>(get_float_data()));
  }

 private:
  std::variant<std::vector<uint8_t>, std::vector<float>> data_;
  int32_t batch_size_ = 0;
  int32_t n_bins_ = 0;
  int32_t n_frames_ = 0;
};

}  // namespace llm
}  // namespace extension
}  // namespace executorch
