/// Positions along an axis of an image that is resized by linear interpolation.
#pragma once

#include <algorithm>
#include <cstdint>

namespace executorch::backends::xnnpack {

/// The two sources of an output position along an axis, and the second's weight.
struct Between {
  int64_t low, high;
  float weight;
};

/// An axis that is resized.
class Resized {
 public:
  Resized(int64_t out_extent, int64_t extent, bool align_corners)
      : extent_(extent), align_corners_(align_corners) {
    const auto in_f = static_cast<float>(extent), out_f = static_cast<float>(out_extent);
    scale_ = !align_corners ? in_f / out_f : out_extent > 1 ? (in_f - 1) / (out_f - 1) : 0.0f;
  }

  Between at(int64_t out) const {
    const auto position = static_cast<float>(out);
    const float source =
        align_corners_ ? position * scale_ : std::max((position + 0.5f) * scale_ - 0.5f, 0.0f);
    const int64_t low = std::min(static_cast<int64_t>(source), extent_ - 1);
    return {low, std::min(low + 1, extent_ - 1), source - static_cast<float>(low)};
  }

 private:
  int64_t extent_;
  bool align_corners_;
  float scale_;
};

}  // namespace executorch::backends::xnnpack
