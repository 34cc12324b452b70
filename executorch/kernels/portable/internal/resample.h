/// Resampling of images by weighted sums along one axis after the other.
#pragma once

#include <executorch/cpu/scratch.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace torch::executor::native::internal {

/// Images [n, c, h, w] in memory, by their strides in elements.
template <class T>
struct ImageView {
  T* data;
  int64_t strides[4];

  /// Whether rows are contiguous, with the channels of each position together.
  bool is_dense(int64_t channels) const { return strides[1] == 1 && strides[3] == channels; }
  T* at(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return data + n * strides[0] + c * strides[1] + y * strides[2] + x * strides[3];
  }
};

/// Resampling along one axis: position o of the output is the sum over i < count[o] of
/// weights[o * most + i] times position first[o] + i of the input. Weights are not negative.
/// Integer weights have `bits` fraction bits, as many as fit 16 bits.
template <class W>
struct AxisWeights {
  int64_t out = 0, most = 0;
  int64_t *first = nullptr, *count = nullptr;
  W* weights = nullptr;
  int bits = 0;

  /// Sets the weights to those of filter.at(o), o < n: its first, n, and weight(i). Returns false
  /// if memory is refused.
  template <class Filter>
  [[nodiscard]] bool make(executorch::cpu::Scratch& scratch, const Filter& filter, int64_t n) {
    using executorch::cpu::Size;
    out = n;
    first = scratch.array<int64_t>(Size(n) * 2);
    if (first == nullptr) return false;
    count = first + n;
    double largest = 0;
    for (int64_t o = 0; o < n; ++o) {
      const auto window = filter.at(o);
      first[o] = window.first, count[o] = window.n;
      most = std::max<int64_t>(most, window.n);
      for (int64_t i = 0; std::is_integral_v<W> && i < window.n; ++i) {
        largest = std::max(largest, static_cast<double>(window.weight(i)));
      }
    }
    while (bits < 22 && 0.5 + largest * static_cast<double>(2 << bits) < 32768) ++bits;
    weights = scratch.array<W>(Size(n) * most);
    if (weights == nullptr) return false;
    for (int64_t o = 0; o < n; ++o) {
      const auto window = filter.at(o);
      for (int64_t i = 0; i < window.n; ++i) {
        if constexpr (std::is_integral_v<W>) {
          weights[o * most + i] =
              static_cast<W>(window.weight(i) * static_cast<double>(1 << bits) + 0.5);
        } else {
          weights[o * most + i] = window.weight(i);
        }
      }
    }
    return true;
  }

  W start() const {
    if constexpr (std::is_integral_v<W>) return W{1} << bits >> 1;
    return 0;
  }
  template <class T>
  T finish(W sum) const {
    if constexpr (std::is_integral_v<W>) {
      return static_cast<T>(std::min<W>(sum >> bits, 255));
    } else {
      return static_cast<T>(sum);
    }
  }
};

/// Calls row(n, y), n < images, y < height, on all threads.
template <class F>
void for_each_image_row(int64_t images, int64_t height, int64_t row_work, const F& row) {
  constexpr int64_t kGrainWork = 8192;
  executorch::cpu::parallel_for(images * height,
                                std::max<int64_t>(1, kGrainWork / std::max<int64_t>(row_work, 1)),
                                [&](int64_t begin, int64_t end) {
                                  for (int64_t i = begin; i < end; ++i) row(i / height, i % height);
                                });
}

/// Rows keep their places, `height` of each image; positions within them are resampled.
template <class From, class To, class W>
void resample_width(const ImageView<From>& from, const ImageView<To>& to, int64_t images,
                    int64_t channels, int64_t height, const AxisWeights<W>& axis) {
  const int64_t step = from.strides[3], row_work = axis.out * channels * axis.most;
  for_each_image_row(images, height, row_work, [&](int64_t n, int64_t y) {
    for (int64_t x = 0; x < axis.out; ++x) {
      const W* const weights = axis.weights + x * axis.most;
      for (int64_t c = 0; c < channels; ++c) {
        const From* const pixels = from.at(n, c, y, axis.first[x]);
        W sum = axis.start();
        for (int64_t i = 0; i < axis.count[x]; ++i) {
          sum += weights[i] * static_cast<W>(pixels[i * step]);
        }
        *to.at(n, c, y, x) = axis.template finish<To>(sum);
      }
    }
  });
}

/// sums[j] += weight * row[j * step], j < n
template <class From, class W>
void add_row(const From* row, int64_t step, W weight, int64_t n, W* sums) {
  if (step == 1) {
    for (int64_t j = 0; j < n; ++j) sums[j] += weight * static_cast<W>(row[j]);
  } else {
    for (int64_t j = 0; j < n; ++j) sums[j] += weight * static_cast<W>(row[j * step]);
  }
}

/// to[j * step] = what sums[j] gives, j < n. Inlined into its callers, GCC 12 takes the rounding of
/// 16-bit floats for a read of what is not there.
template <class To, class W>
[[gnu::noinline]] void finish_row(const AxisWeights<W>& axis, const W* sums, int64_t n, To* to,
                                  int64_t step) {
  for (int64_t j = 0; j < n; ++j) to[j * step] = axis.template finish<To>(sums[j]);
}

/// Resamples along height: whole rows of `width` positions are added up.
template <class From, class To, class W>
void resample_height(const ImageView<From>& from, const ImageView<To>& to, int64_t images,
                     int64_t channels, int64_t width, const AxisWeights<W>& axis) {
  const bool dense = from.is_dense(channels) && to.is_dense(channels);
  const int64_t pieces = dense ? 1 : channels, length = dense ? width * channels : width;
  const int64_t from_step = dense ? 1 : from.strides[3], to_step = dense ? 1 : to.strides[3];
  for_each_image_row(images, axis.out, width * channels * axis.most, [&](int64_t n, int64_t y) {
    const W* const weights = axis.weights + y * axis.most;
    for (int64_t c = 0; c < pieces; ++c) {
      const From* const rows = from.at(n, c, axis.first[y], 0);
      To* const result = to.at(n, c, y, 0);
      constexpr int64_t kTogether = 64;
      for (int64_t x = 0; x < length; x += kTogether) {
        const int64_t columns = length - x < kTogether ? length - x : kTogether;
        W sums[kTogether];
        std::fill(sums, sums + kTogether, axis.start());
        for (int64_t i = 0; i < axis.count[y]; ++i) {
          const From* const row = rows + i * from.strides[2] + x * from_step;
          const W weight = weights[i];
          add_row(row, from_step, weight, columns, sums);
        }
        finish_row(axis, sums, columns, result + x * to_step, to_step);
      }
    }
  });
}

/// Both axes; the images between have elements of Mid, in the order of the result's dims. Bytes
/// take their width first, as eager rounds them; floats the axis first that leaves less. False if
/// memory is refused, before anything is written.
template <class Mid, class T, class W, class Filter>
[[nodiscard]] bool resample(ImageView<const T> from, const int64_t (&from_sizes)[4],
                            ImageView<T> to, const int64_t (&to_sizes)[4], const Filter& vertical,
                            const Filter& horizontal, executorch::cpu::Scratch& scratch) {
  using executorch::cpu::Size;
  const int64_t images = to_sizes[0], channels = to_sizes[1];
  const executorch::cpu::Scratch::Frame frame(scratch);
  AxisWeights<W> rows, columns;
  if (!rows.make(scratch, vertical, to_sizes[2]) ||
      !columns.make(scratch, horizontal, to_sizes[3])) {
    return false;
  }
  const bool width_first =
      std::is_integral_v<W> || from_sizes[2] * to_sizes[3] <= to_sizes[2] * from_sizes[3];
  const int64_t height = width_first ? from_sizes[2] : to_sizes[2];
  const int64_t width = width_first ? to_sizes[3] : from_sizes[3];
  constexpr int64_t kTogether = 1 << 20;  // elements of small images that are made together
  const Size image = Size(channels) * height * width;
  const int64_t together =
      image.ok() ? std::clamp<int64_t>(kTogether / image.value(), 1, images) : 1;
  ImageView<Mid> mid{scratch.array<Mid>(image * together), {}};
  if (mid.data == nullptr) return false;
  const bool channels_last = to.strides[1] == 1 && to.strides[3] != 1;
  const int64_t row = channels * width;
  const int64_t strides[4] = {height * row, channels_last ? 1 : height * width,
                              channels_last ? row : width, channels_last ? channels : 1};
  std::copy(strides, strides + 4, mid.strides);
  for (int64_t n = 0; n < images; n += together) {
    const int64_t now = std::min(together, images - n);
    const ImageView<const Mid> made{mid.data, {strides[0], strides[1], strides[2], strides[3]}};
    ImageView<const T> source = from;
    ImageView<T> result = to;
    source.data += n * from.strides[0];
    result.data += n * to.strides[0];
    if (width_first) {
      resample_width(source, mid, now, channels, height, columns);
      resample_height(made, result, now, channels, width, rows);
    } else {
      resample_height(source, mid, now, channels, width, rows);
      resample_width(made, result, now, channels, height, columns);
    }
  }
  return true;
}

}  // namespace torch::executor::native::internal
