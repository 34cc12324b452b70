#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/nn/conv.h>
#include <executorch/cpu/nn/conv_planes.h>
#include <executorch/cpu/nn/conv_sparse.h>
#include <executorch/cpu/nn/conv_transposed.h>
#include <executorch/cpu/nn/depthwise.h>
#include <executorch/cpu/nn/patches.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>

namespace executorch::cpu {
namespace {

using gemm::convert;

// Multiply-adds that are worth another thread.
constexpr int64_t kGrainWork = 1 << 15;

// The distance between neighbours if a single stride walks all positions of one kind; 0 if none
// does.
int64_t joint_stride(const ConvAxis* axis, int64_t ConvAxis::*extent, int64_t ConvAxis::*stride) {
  int64_t joint = 0, count = 1;
  for (int d = 2; d >= 0; --d) {
    if (axis[d].*extent == 1) continue;
    if (joint == 0) joint = axis[d].*stride;
    if (axis[d].*stride != joint * count) return 0;
    count *= axis[d].*extent;
  }
  return joint == 0 ? 1 : joint;
}

// One group of one image, for the sources of patches and weights.
template <class T>
struct Group {
  const Conv<T>& c;
  const T* image;
  const T* weight;
  int64_t first_pixel;             // of the part that is computed
  int64_t channel_rows, tap_rows;  // where (channel, tap) lies along the summed dim

  int64_t weight_offset(int64_t p) const {
    const bool channel_first = tap_rows == 1;
    const int64_t inner = channel_first ? c.taps() : c.group_in;
    const int64_t channel = channel_first ? p / inner : p % inner;
    const int64_t tap = channel_first ? p % inner : p / inner;
    return channel * c.weight_in + c.weight_tap(tap);
  }
};

// Weights [out channel, (channel, tap)] as rows of A.
template <class T>
void gather_weight_rows(const void* matrix, int64_t, int64_t i0, int64_t ni, int64_t p0, int64_t np,
                        Accumulator<T>* to, int64_t ld) {
  const auto& g = *static_cast<const Group<T>*>(matrix);
  for (int64_t p = 0; p < np; ++p) {
    const T* at = g.weight + g.weight_offset(p0 + p) + i0 * g.c.weight_out;
    for (int64_t i = 0; i < ni; ++i) convert(at + i * g.c.weight_out, 1, to + i * ld + p);
  }
}

// Weights [(tap, channel), out channel] as a panel of B.
template <class T>
void gather_weight_panel(const void* matrix, int64_t, int64_t j0, int64_t nj, int64_t p0,
                         int64_t np, Accumulator<T>* to, int64_t ld) {
  const auto& g = *static_cast<const Group<T>*>(matrix);
  for (int64_t p = 0; p < np; ++p, to += ld) {
    const T* at = g.weight + g.weight_offset(p0 + p) + j0 * g.c.weight_out;
    gemm::gather(at, g.c.weight_out, nj, to);
    std::fill(to + nj, to + ld, Accumulator<T>(0));
  }
}

// Patches [(channel, tap), pixel] as a panel of B, element by element: any layout, transposed too.
template <class T>
void gather_patch_panel(const void* matrix, int64_t, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                        Accumulator<T>* to, int64_t ld) {
  const auto& g = *static_cast<const Group<T>*>(matrix);
  const Conv<T>& c = g.c;
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  const bool channel_first = g.tap_rows == 1;
  const int64_t inner = channel_first ? c.taps() : c.group_in;
  for (int64_t p = p0; p < p0 + np; ++p, to += ld) {
    const int64_t channel = channel_first ? p / inner : p % inner;
    const int64_t tap = channel_first ? p % inner : p / inner;
    const int64_t kw = tap % w.kernel, kh = tap / w.kernel % h.kernel;
    const int64_t kd = tap / (w.kernel * h.kernel);
    const T* image = g.image + channel * c.in_channel;
    std::fill(to, to + ld, Accumulator<T>(0));
    for (int64_t j = 0, n; j < nj; j += n) {  // stretches of a row of outputs
      const int64_t pixel = g.first_pixel + j0 + j, ow = pixel % w.out, row = pixel / w.out;
      n = std::min(nj - j, w.out - ow);
      const int64_t id = z.position(row / h.out, kd, c.transposed);
      const int64_t ih = h.position(row % h.out, kh, c.transposed);
      if (id < 0 || ih < 0) continue;
      const T* const from = image + id * z.in_stride + ih * h.in_stride;
      if (!c.transposed) {
        const ConvAxis::Steps inside = w.valid_steps(kw, false);
        const int64_t begin = std::max(ow, inside.begin), end = std::min(ow + n, inside.end);
        if (begin >= end) continue;
        gemm::gather(from + w.position(begin, kw, false) * w.in_stride, w.stride * w.in_stride,
                     end - begin, to + j + begin - ow);
        continue;
      }
      for (int64_t i = 0; i < n; ++i) {
        const int64_t iw = w.position(ow + i, kw, true);
        if (iw >= 0) convert(from + iw * w.in_stride, 1, to + j + i);
      }
    }
  }
}

// The channels of a group as floats, for patches gathered by vectors. It is the image itself, or a
// copy. The copy for a transposed convolution has zeros between the strides, so that the
// convolution becomes one of stride 1 with its taps in reverse order.
struct FloatImage {
  ConvAxis axis[3];
  const float* data = nullptr;
  int64_t channel_stride = 0;
};

template <class T>
void copy_row(const T* from, const ConvAxis& w, int64_t step, float* to) {
  if (step == 1) return gemm::gather(from, w.in_stride, w.in, to);
  constexpr int64_t kChunk = 64;
  float chunk[kChunk];
  for (int64_t x = 0; x < w.in; x += kChunk) {
    const int64_t n = std::min(kChunk, w.in - x);
    gemm::gather(from + x * w.in_stride, w.in_stride, n, chunk);
    for (int64_t i = 0; i < n; ++i) to[(x + i) * step] = chunk[i];
  }
}

// Returns false if the memory is refused.
template <class T>
bool float_image(const Group<T>& g, Scratch& scratch, FloatImage& f) {
  const Conv<T>& c = g.c;
  std::copy_n(c.axis, 3, f.axis);
  if constexpr (std::is_same_v<T, float>) {
    if (!c.transposed) {
      f.data = g.image;
      f.channel_stride = c.in_channel;
      return true;
    }
  }
  Size plane = 1;
  int64_t step[3];
  for (int d = 2; d >= 0; --d) {
    ConvAxis& a = f.axis[d];
    step[d] = c.transposed ? a.stride : 1;
    a.in = (a.in - 1) * step[d] + 1;
    a.in_stride = plane.value();
    plane *= a.in;
    if (!c.transposed) continue;
    a.padding = -a.padding;
    a.dilation = -a.dilation;
    a.stride = 1;
  }
  float* const image = scratch.array<float>(plane * c.group_in);
  if (image == nullptr) return false;
  const int64_t size = plane.value();
  parallel_for(c.group_in, gemm::ceil_div(kGrainWork, size), [&](int64_t begin, int64_t end) {
    if (c.transposed) std::fill(image + begin * size, image + end * size, 0.0f);
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t y = 0; y < c.axis[0].in * c.axis[1].in; ++y) {
        const int64_t id = y / c.axis[1].in, ih = y % c.axis[1].in;
        copy_row(g.image + i * c.in_channel + id * c.axis[0].in_stride + ih * c.axis[1].in_stride,
                 c.axis[2], step[2],
                 image + i * size + id * step[0] * f.axis[0].in_stride +
                     ih * step[1] * f.axis[1].in_stride);
      }
    }
  });
  f.data = image;
  f.channel_stride = size;
  return true;
}

// Patches [(channel, tap), pixel] as a panel of B, by vectors.
struct FloatPatches {
  PatchRows rows;
  int64_t first_pixel;
};
void gather_float_panel(const void* matrix, int64_t, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                        float* to, int64_t ld) {
  const auto& patches = *static_cast<const FloatPatches*>(matrix);
  gather_patches()(patches.rows, patches.first_pixel + j0, nj, p0, np, to, ld);
}

// Patches [pixel, (tap, channel)] as rows of A, for contiguous channels. Taps that are neighbours
// along width are copied together.
template <class T>
void gather_patch_rows(const void* matrix, int64_t, int64_t i0, int64_t ni, int64_t p0, int64_t np,
                       Accumulator<T>* to, int64_t ld) {
  const auto& g = *static_cast<const Group<T>*>(matrix);
  const Conv<T>& c = g.c;
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  const bool side_by_side = w.dilation == 1 && w.in_stride == c.group_in && !c.transposed;
  const int64_t run_taps = side_by_side ? w.kernel : 1, run = run_taps * c.group_in;
  for (int64_t i = 0; i < ni; ++i, to += ld) {
    const int64_t pixel = g.first_pixel + i0 + i;
    const int64_t ow = pixel % w.out, oh = pixel / w.out % h.out, od = pixel / (w.out * h.out);
    for (int64_t p = p0; p < p0 + np;) {
      const int64_t skip = p % run, tap = p / run * run_taps;
      const int64_t n = std::min(run - skip, p0 + np - p);
      const int64_t id = z.position(od, tap / (w.kernel * h.kernel), c.transposed);
      const int64_t ih = h.position(oh, tap / w.kernel % h.kernel, c.transposed);
      // Elements [begin, end) of this piece lie inside the row of the image.
      int64_t begin = 0, end = id < 0 || ih < 0 ? 0 : n, at = 0;
      if (side_by_side) {
        at = (ow * w.stride - w.padding) * c.group_in + skip;
        begin = std::clamp<int64_t>(-at, 0, end);
        end = std::clamp<int64_t>(w.in * c.group_in - at, begin, end);
      } else {
        const int64_t iw = w.position(ow, tap % w.kernel, c.transposed);
        if (iw < 0) end = 0;
        at = iw * w.in_stride + skip;
      }
      Accumulator<T>* piece = to + (p - p0);
      std::fill(piece, piece + begin, Accumulator<T>(0));
      if (begin < end) {
        convert(g.image + id * z.in_stride + ih * h.in_stride + at + begin, end - begin,
                piece + begin);
      }
      std::fill(piece + end, piece + n, Accumulator<T>(0));
      p += n;
    }
  }
}

template <class T>
class Products {
 public:
  explicit Products(const Conv<T>& c) : c_(c) {
    pixel_ = joint_stride(c.axis, &ConvAxis::out, &ConvAxis::out_stride);
    in_pixel_ = joint_stride(c.axis, &ConvAxis::in, &ConvAxis::in_stride);
    tap_ = joint_stride(c.axis, &ConvAxis::kernel, &ConvAxis::weight_stride);
    pointwise_ = c.taps() == 1 && in_pixel_ != 0;
    for (const ConvAxis& a : c.axis) pointwise_ &= a.stride == 1 && a.padding == 0 && a.out == a.in;
    channels_last_ = c.in_channel == 1 && c.out_channel == 1 && c.group_in + c.group_out > 2;
    by_taps_ = channels_last_ || (c.weight_in == 1 && tap_ == c.group_in);
  }

  [[nodiscard]] bool run(Scratch& scratch) const {
    // The pixels of one product must be evenly spaced: all pixels, or those of a slice, or of a
    // row.
    int64_t n_pixels = c_.pixels(), pixel = pixel_;
    if (pixel_ == 0) {
      n_pixels = c_.axis[2].out;
      pixel = c_.axis[2].out_stride;
    }
    const int64_t parts = c_.pixels() / n_pixels, n_jobs = c_.batch * c_.groups * parts;
    const auto threads = static_cast<int64_t>(loop_threads());
    const auto run_jobs = [&](int64_t begin, int64_t end, Scratch& own) {
      for (int64_t job = begin; job < end; ++job) {
        if (!run_part(job / (c_.groups * parts), job / parts % c_.groups, job % parts * n_pixels,
                      n_pixels, pixel, own)) {
          return false;
        }
      }
      return true;
    };
    // Many products are distributed over threads; a few are divided by themselves.
    if (n_jobs >= 4 * threads) {
      const int64_t work = c_.group_out * c_.group_in * c_.taps() * n_pixels;
      LoopScratch loop(scratch);
      return loop.parallel_for(n_jobs, gemm::ceil_div(kGrainWork, work), run_jobs);
    }
    return run_jobs(0, n_jobs, scratch);
  }

 private:
  int64_t out_offset(int64_t pixel) const {
    const ConvAxis &z = c_.axis[0], &h = c_.axis[1], &w = c_.axis[2];
    return pixel / (w.out * h.out) * z.out_stride + pixel / w.out % h.out * h.out_stride +
           pixel % w.out * w.out_stride;
  }

  [[nodiscard]] bool run_part(int64_t b, int64_t group, int64_t first_pixel, int64_t n_pixels,
                              int64_t pixel, Scratch& scratch) const {
    const Scratch::Frame frame(scratch);
    if constexpr (std::is_same_v<T, float>) {
      if (n_pixels == c_.pixels() && fits_planes(c_)) return run_planes(c_, b, group, scratch);
    }
    const Group<T> g = {c_,
                        c_.input + b * c_.in_batch + group * c_.group_in * c_.in_channel,
                        c_.weight + group * c_.weight_group,
                        first_pixel,
                        by_taps_ ? 1 : c_.taps(),
                        by_taps_ ? c_.group_in : 1};
    const int64_t to =
        b * c_.out_batch + group * c_.group_out * c_.out_channel + out_offset(first_pixel);
    const T* bias = c_.bias == nullptr ? nullptr : c_.bias + group * c_.group_out;
    Gemm<T> product;
    product.k = c_.group_in * c_.taps();
    product.act = c_.act;
    product.act_last = c_.act_last;
    product.c = {c_.out + to, c_.out_channel, pixel};
    if (c_.residual != nullptr) product.residual = {c_.residual + to, c_.out_channel, pixel};
    product.addend = {bias, 1, 0};
    if (channels_last_) {
      pixels_by_channels(g, n_pixels, product);
    } else {
      channels_by_pixels(g, n_pixels, product);
    }
    if constexpr (gemm::kIsStoredFloat<T>) {
      if (product.b_source.produce == gather_patch_panel<T>) {
        FloatImage image;
        if (!float_image(g, scratch, image)) return false;
        const FloatPatches patches = {
            {image.axis, image.data, image.channel_stride, c_.group_in, g.channel_rows, g.tap_rows},
            first_pixel};
        product.b_source = {gather_float_panel, &patches};
        return product.run(scratch);
      }
    }
    return product.run(scratch);
  }

  /// The stride of the weights along the summed dim; 0 if there is no single one.
  int64_t weight_step() const {
    if (by_taps_) {
      if (c_.taps() == 1) return c_.weight_in;
      if (c_.group_in == 1) return tap_;
      return tap_ == c_.group_in * c_.weight_in ? c_.weight_in : 0;
    }
    if (c_.group_in == 1) return tap_;
    return c_.taps() == 1 || c_.weight_in == tap_ * c_.taps()
               ? (c_.taps() == 1 ? c_.weight_in : tap_)
               : 0;
  }

  void channels_by_pixels(const Group<T>& g, int64_t n_pixels, Gemm<T>& product) const {
    product.m = c_.group_out;
    product.n = n_pixels;
    if (weight_step() != 0) {
      product.a = {g.weight, c_.weight_out, weight_step()};
    } else {
      product.a_source = {gather_weight_rows<T>, &g};
    }
    if (pointwise_) {
      product.b = {g.image + g.first_pixel * in_pixel_, c_.in_channel, in_pixel_};
    } else {
      product.b_source = {gather_patch_panel<T>, &g};
    }
  }

  void pixels_by_channels(const Group<T>& g, int64_t n_pixels, Gemm<T>& product) const {
    product.m = n_pixels;
    product.n = c_.group_out;
    for (Matrix<const T>* x : {&product.addend, &product.residual}) {
      std::swap(x->row_stride, x->col_stride);
    }
    std::swap(product.c.row_stride, product.c.col_stride);
    if (pointwise_) {
      product.a = {g.image + g.first_pixel * in_pixel_, in_pixel_, c_.in_channel};
    } else {
      product.a_source = {gather_patch_rows<T>, &g};
    }
    if (weight_step() != 0) {
      product.b = {g.weight, weight_step(), c_.weight_out};
    } else {
      product.b_source = {gather_weight_panel<T>, &g};
    }
  }

  const Conv<T>& c_;
  int64_t pixel_, in_pixel_, tap_;  // distances of neighbours, 0 where they differ
  bool pointwise_;                  // patches are the image itself
  bool channels_last_;
  bool by_taps_;  // the summed dim is (tap, channel), else (channel, tap)
};

// Depthwise convolutions: input and output are both contiguous along width, or channels are
// contiguous.
template <class T>
bool is_depthwise(const Conv<T>& c) {
  if (c.group_in != 1 || c.group_out != 1 || c.transposed || c.groups == 1) return false;
  const bool planes = c.axis[2].in_stride == 1 && c.axis[2].out_stride == 1;
  return planes || (c.in_channel == 1 && c.out_channel == 1 && c.taps() <= kDepthwiseTaps);
}

template <class T>
bool run_depthwise_planes(const Conv<T>& c, Scratch& scratch) {
  const DepthwiseKernels<T>& kernels = depthwise_kernels<T>();
  const ThreadScratch<float> buffers(scratch, kernels.plane_floats(c));
  if (!buffers) return false;
  const int64_t grain = gemm::ceil_div(kGrainWork, c.pixels() * c.taps());
  buffers.parallel_for(c.batch * c.groups, grain, [&](int64_t begin, int64_t end, float* buffer) {
    kernels.planes(c, begin, end, buffer);
  });
  return true;
}

template <class T>
bool run_depthwise(const Conv<T>& c, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
  if (w.in_stride == 1 && w.out_stride == 1) return run_depthwise_planes(c, scratch);
  const int64_t taps = c.taps();
  float* const weights = scratch.array<float>(Size(taps + 1) * c.groups);
  if (weights == nullptr) return false;
  float* const biases = c.bias == nullptr ? nullptr : weights + taps * c.groups;
  for (int64_t t = 0; t < taps; ++t) {
    gemm::gather(c.weight + c.weight_tap(t), c.weight_group, c.groups, weights + t * c.groups);
  }
  if (biases != nullptr) convert(c.bias, c.groups, biases);
  const DepthwiseKernels<T>& kernels = depthwise_kernels<T>();
  const int64_t rows = z.out * h.out;
  const int64_t grain = gemm::ceil_div(kGrainWork, w.out * taps * c.groups);
  parallel_for(c.batch * rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) kernels.pixels(c, i / rows, i % rows, weights, biases);
  });
  return true;
}

// The number of multiply-adds. If it fits an int64, so does any product of extents.
template <class T>
Size products_of(const Conv<T>& c) {
  Size products = Size(c.batch) * c.groups * c.group_in * c.group_out;
  for (const ConvAxis& a : c.axis) products *= Size(a.kernel) * a.out;
  return products;
}

}  // namespace

template <class T>
bool Conv<T>::run(Scratch& scratch) const {
  if (batch < 0 || groups < 0 || group_in < 0 || group_out < 0) return false;
  bool empty = batch == 0 || groups == 0 || group_out == 0;
  for (const ConvAxis& a : axis) {
    if (!has_positions(a, transposed)) return false;
    empty |= a.out == 0;
  }
  if (empty) return true;
  Conv c = *this;
  if (!leave_out_idle_taps(c)) {
    for (ConvAxis& a : c.axis) a.kernel = 0;
    return run_sparse(c, scratch);
  }
  bool by_inputs = false;
  if constexpr (std::is_same_v<T, float>) by_inputs = fits_transposed(c);
  if (is_sparse({c.axis, 3, transposed, batch, groups, group_in, group_out, by_inputs}))
    return run_sparse(c, scratch);
  const Size products = products_of(c);
  if (!products.ok()) return false;
  scratch.add_products(products);
  if constexpr (std::is_same_v<T, float>) {
    if (by_inputs) return run_transposed(c, scratch);
  }
  if constexpr (gemm::kIsStoredFloat<T>) {
    if (is_depthwise(c)) return run_depthwise(c, scratch);
  }
  return Products<T>(c).run(scratch);
}

#define ET_ROW(T, name) template struct Conv<T>;
ET_OPERANDS(ET_ROW)
#undef ET_ROW

}  // namespace executorch::cpu
