#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/functions.h>
#include <executorch/kernels/portable/internal/dtype.h>
#include <executorch/kernels/portable/internal/strided_copy.h>
#include <executorch/kernels/portable/tables.h>
#include <executorch/runtime/kernel/boxing.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>

// Sampling images (n, c, spatial dims) at positions that a grid (n, output dims, D) gives for every
// pixel of the result, in coordinates from -1 to 1; the grid's last dim counts from the input's
// last dim backwards (x, y, z).
namespace torch::executor::native {

using namespace internal;

namespace {

enum class Interpolation : int64_t { Linear = 0, Nearest = 1, Cubic = 2 };
enum class Padding : int64_t { Zeros = 0, Border = 1, Reflection = 2 };

/// One spatial dim of the input.
template <class C>
struct Axis {
  int64_t size, stride;
  Padding padding;
  bool align_corners;

  /// Maps a coordinate in [-1, 1] to a position; pixel i lies at position i.
  C unnormalize(C x) const {
    return align_corners ? (x + 1) / 2 * static_cast<C>(size - 1)
                         : ((x + 1) * static_cast<C>(size) - 1) / 2;
  }
  /// Moves a position into the image by the padding mode. A position that is not finite is moved
  /// outside.
  C place(C x) const {
    const C last = static_cast<C>(size - 1);
    if (padding == Padding::Reflection) {
      x = align_corners ? reflect(x, C(0), last) : reflect(x, C(-0.5), static_cast<C>(size));
    }
    if (padding != Padding::Zeros) x = std::min(last, std::max(x, C(0)));
    return std::abs(x) < C(1e9) ? x : C(-100);
  }
  bool contains(int64_t i) const { return i >= 0 && i < size; }

 private:
  /// Reflects x at `low` and at low + span until it lies between them.
  static C reflect(C x, C low, C span) {
    if (span == 0) return 0;
    const C distance = std::abs(x - low);
    const C rest = std::fmod(distance, span);
    const bool reflected = std::fmod(std::floor(distance / span), C(2)) != 0;
    return (reflected ? span - rest : rest) + low;
  }
};

/// floor() of a position that Axis::place() gave.
template <class C>
int64_t floor_of(C x) {
  const auto towards_zero = static_cast<int64_t>(x);
  return towards_zero - (static_cast<C>(towards_zero) > x ? 1 : 0);
}

/// The weights of the four pixels around a position t in [0, 1) between the middle two.
template <class C>
void cubic_weights(C t, C* w) {
  constexpr C kA = C(-0.75);
  const auto near = [](C x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](C x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  w[0] = far(t + 1);
  w[1] = near(t);
  w[2] = near(1 - t);
  w[3] = far(2 - t);
}

/// The pixels of the input, and their weights, for one pixel of the result.
template <class C, int D>
struct Taps {
  static constexpr int kMax = D == 2 ? 16 : 8;
  static constexpr int kCorners = 1 << D;
  int n = 0;
  int64_t offset[kMax];
  C weight[kMax];

  void add(const Axis<C>* axes, const int64_t* at, C w) {
    int64_t o = 0;
    for (int d = 0; d < D; ++d) {
      if (!axes[d].contains(at[d])) return;
      o += at[d] * axes[d].stride;
    }
    offset[n] = o;
    weight[n++] = w;
  }

  /// Makes the pixels around the position `t` behind pixel `base` the taps, if all of them are in
  /// the image; else returns false.
  bool add_inner_corners(const Axis<C>* axes, const int64_t* base, const C* t) {
    int64_t first = 0;
    for (int d = 0; d < D; ++d) {
      if (base[d] < 0 || base[d] >= axes[d].size - 1) return false;
      first += base[d] * axes[d].stride;
    }
    n = kCorners;
    for (int corner = 0; corner < kCorners; ++corner) {
      offset[corner] = first;
      weight[corner] = 1;
      for (int d = 0; d < D; ++d) {
        const bool second = corner >> d & 1;
        offset[corner] += second ? axes[d].stride : 0;
        weight[corner] *= second ? t[d] : 1 - t[d];
      }
    }
    return true;
  }
};

template <class C, int D>
void find_taps(const Axis<C>* axes, const C* grid, Interpolation interpolation, Taps<C, D>& taps) {
  taps.n = 0;
  int64_t base[D];
  C t[D];
  if (interpolation == Interpolation::Nearest) {
    for (int d = 0; d < D; ++d) {
      base[d] = std::lrint(axes[d].place(axes[d].unnormalize(grid[d])));
    }
    taps.add(axes, base, C(1));
    return;
  }
  if (interpolation == Interpolation::Linear) {
    for (int d = 0; d < D; ++d) {
      const C x = axes[d].place(axes[d].unnormalize(grid[d]));
      base[d] = floor_of(x);
      t[d] = x - static_cast<C>(base[d]);
    }
    if (taps.add_inner_corners(axes, base, t)) return;
    for (int corner = 0; corner < Taps<C, D>::kCorners; ++corner) {
      int64_t at[D];
      C w = 1;
      for (int d = 0; d < D; ++d) {
        const int second = corner >> d & 1;
        at[d] = base[d] + second;
        w *= second ? t[d] : 1 - t[d];
      }
      taps.add(axes, at, w);
    }
    return;
  }
  if constexpr (D == 2) {
    C w[D][4], floor[D];
    for (int d = 0; d < D; ++d) {
      const C x = axes[d].unnormalize(grid[d]);
      floor[d] = std::floor(x);
      cubic_weights(x - floor[d], w[d]);
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const int64_t at[D] = {static_cast<int64_t>(axes[0].place(floor[0] + C(i - 1))),
                               static_cast<int64_t>(axes[1].place(floor[1] + C(j - 1)))};
        taps.add(axes, at, w[0][i] * w[1][j]);
      }
    }
  }
}

/// What all pixels of the result have in common. T as stored, C as computed; all strides are used,
/// so any dim order.
template <class T, class C, int D>
struct Sampling {
  Layout a, g, b;  // of the input, the grid and the result
  Axis<C> axes[D];
  Interpolation interpolation;
  const T *in, *positions;
  T* result;

  Sampling(const Tensor& input, const Tensor& grid, Interpolation mode, Padding padding,
           bool align_corners, const Tensor& out)
      : a(input),
        g(grid),
        b(out),
        interpolation(mode),
        in(static_cast<const T*>(input.const_data_ptr())),
        positions(static_cast<const T*>(grid.const_data_ptr())),
        result(static_cast<T*>(out.mutable_data_ptr())) {
    for (int d = 0; d < D; ++d)
      axes[d] = {input.size(2 + d), a.strides[2 + d], padding, align_corners};
  }

  /// A pixel of the result, and where it and its position in the grid lie.
  struct Pixel {
    int64_t at[D];
    int64_t from, to;
  };

  /// Pixel i of image n.
  Pixel pixel(int64_t n, int64_t i) const {
    Pixel p{{}, n * g.strides[0], n * b.strides[0]};
    for (int d = D - 1; d >= 0; --d) {
      p.at[d] = i % b.shape[2 + d];
      i /= b.shape[2 + d];
      p.from += p.at[d] * g.strides[1 + d];
      p.to += p.at[d] * b.strides[2 + d];
    }
    return p;
  }

  void advance(Pixel& p) const {
    for (int d = D - 1; d >= 0; --d) {
      p.from += g.strides[1 + d];
      p.to += b.strides[2 + d];
      if (++p.at[d] < b.shape[2 + d]) return;
      p.from -= p.at[d] * g.strides[1 + d];
      p.to -= p.at[d] * b.strides[2 + d];
      p.at[d] = 0;
    }
  }

  void find(const Pixel& p, Taps<C, D>& taps) const {
    C x[D];
    for (int d = 0; d < D; ++d) {
      x[d] = static_cast<C>(positions[p.from + (D - 1 - d) * g.strides[1 + D]]);
    }
    find_taps<C, D>(axes, x, interpolation, taps);
  }

  /// A pixel of `kPlanes` planes of the result, whose first is at `to`.
  template <int kPlanes>
  void write(const T* planes, const Taps<C, D>& taps, T* to) const {
    C sums[kPlanes] = {};
    const auto add = [&](int k) {
      const T* const from = planes + taps.offset[k];
      for (int c = 0; c < kPlanes; ++c) {
        sums[c] += taps.weight[k] * static_cast<C>(from[c * a.strides[1]]);
      }
    };
    if (taps.n == Taps<C, D>::kCorners) {  // the usual number, known to the compiler
      for (int k = 0; k < Taps<C, D>::kCorners; ++k) add(k);
    } else {
      for (int k = 0; k < taps.n; ++k) add(k);
    }
    for (int c = 0; c < kPlanes; ++c) to[c * b.strides[1]] = static_cast<T>(sums[c]);
  }

  template <int kPlanes>
  void write_planes(int64_t n, int64_t c, int64_t pixels, const Taps<C, D>* taps,
                    const int64_t* to) const {
    const T* const planes = in + n * a.strides[0] + c * a.strides[1];
    T* const first = result + c * b.strides[1];
    for (int64_t p = 0; p < pixels; ++p) write<kPlanes>(planes, taps[p], first + to[p]);
  }

  /// Pixels [i, end) of image n: some of one plane after those of the other, so that neighbours are
  /// written together; or all channels of one, if they are neighbours.
  void run(int64_t n, int64_t i, int64_t end) const {
    constexpr int64_t kMost = 64;
    Taps<C, D> some[kMost];
    int64_t to[kMost];
    const int64_t most = b.strides[1] == 1 ? 1 : kMost;
    Pixel next = pixel(n, i);
    for (; i < end; i += most) {
      const int64_t pixels = std::min(most, end - i);
      for (int64_t p = 0; p < pixels; ++p) {
        find(next, some[p]);
        to[p] = next.to;
        advance(next);
      }
      int64_t c = 0;
      for (; c + 4 <= b.shape[1]; c += 4) write_planes<4>(n, c, pixels, some, to);
      for (; c < b.shape[1]; ++c) write_planes<1>(n, c, pixels, some, to);
    }
  }
};

template <class T, class C, int D>
void sample(const Sampling<T, C, D>& sampling, int64_t images) {
  int64_t n_pixels = 1;
  for (int d = 0; d < D; ++d) n_pixels *= sampling.b.shape[2 + d];
  const int64_t channels = std::max<int64_t>(1, sampling.b.shape[1]);
  const int64_t grain = std::max<int64_t>(1, 4096 / channels);
  executorch::cpu::parallel_for(images * n_pixels, grain, [&](int64_t i, int64_t end) {
    while (i < end) {
      const int64_t n = i / n_pixels, last = std::min(end, (n + 1) * n_pixels);
      sampling.run(n, i - n * n_pixels, last - n * n_pixels);
      i = last;
    }
  });
}

template <int D>
Tensor& grid_sampler(KernelRuntimeContext& ctx, const char* op, const Tensor& input,
                     const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                     bool align_corners, Tensor& out) {
  bool fits = input.dim() == D + 2 && grid.dim() == D + 2 && grid.size(D + 1) == D &&
              grid.size(0) == input.size(0);
  for (int d = 0; fits && d < D; ++d) fits = input.size(2 + d) > 0;
  ET_REQUIRE(ctx, fits, InvalidArgument, out,
             "%s: an input [n, c, %d spatial dims] and a grid [n, ..., %d] were expected; found "
             "%s and %s",
             op, D, D, ShapeText(input).c_str(), ShapeText(grid).c_str());
  ET_REQUIRE(ctx,
             is_float(input.scalar_type()) && input.scalar_type() == grid.scalar_type() &&
                 input.scalar_type() == out.scalar_type(),
             InvalidArgument, out, "%s: one floating dtype was expected; found %s, %s and %s", op,
             toString(input.scalar_type()), toString(grid.scalar_type()),
             toString(out.scalar_type()));
  ET_REQUIRE(ctx,
             interpolation_mode >= 0 && interpolation_mode <= (D == 2 ? 2 : 1) &&
                 padding_mode >= 0 && padding_mode <= 2,
             InvalidArgument, out,
             "%s: interpolation mode %" PRId64 " or padding mode %" PRId64 " does not exist", op,
             interpolation_mode, padding_mode);
  Shape shape{input.size(0), input.size(1)};
  for (int d = 0; d < D; ++d) shape.push(grid.size(1 + d));
  if (!resize_out(ctx, op, out, shape) || out.numel() == 0) return out;
  const auto interpolation = static_cast<Interpolation>(interpolation_mode);
  const auto padding = static_cast<Padding>(padding_mode);
  with_dtype(input.scalar_type(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (!std::is_integral_v<T>) {
      using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
      sample(Sampling<T, C, D>(input, grid, interpolation, padding, align_corners, out),
             input.size(0));
    }
  });
  return out;
}

}  // namespace

Tensor& grid_sampler_2d_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& grid,
                            int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                            Tensor& out) {
  return grid_sampler<2>(ctx, "grid_sampler_2d.out", input, grid, interpolation_mode, padding_mode,
                         align_corners, out);
}

Tensor& grid_sampler_3d_out(KernelRuntimeContext& ctx, const Tensor& input, const Tensor& grid,
                            int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                            Tensor& out) {
  return grid_sampler<3>(ctx, "grid_sampler_3d.out", input, grid, interpolation_mode, padding_mode,
                         align_corners, out);
}

namespace {
constexpr Kernel kGridOps[] = {
    ET_OP("aten::grid_sampler_2d.out", grid_sampler_2d_out),
    ET_OP("aten::grid_sampler_3d.out", grid_sampler_3d_out),
};
}  // namespace

Span<const Kernel> grid_ops() {
  return kGridOps;
}

}  // namespace torch::executor::native
