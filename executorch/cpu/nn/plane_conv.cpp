#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/nn/plane_conv.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>

namespace executorch::cpu {
namespace {

using gemm::ceil_div;
using gemm::round_up;

// The largest k that is summed in one part. With a larger one, rows of pixels and weights would not
// stay in the L2 cache.
constexpr int64_t kDepth = 1536;

// Whether neighbouring taps of a filter are a distance of `step` apart.
bool has_taps_at(const Conv<float>& c, int64_t step) {
  for (int d = 2; d >= 0; --d) {
    if (c.axis[d].kernel != 1 && c.axis[d].weight_stride != step) return false;
    step *= c.axis[d].kernel;
  }
  return true;
}

}  // namespace

PlaneColumns::PlaneColumns(int64_t pixels, const PlaneKernels& kernels, bool has_tail)
    : n(pixels), lanes(kernels.lanes) {
  const int64_t rest = n % lanes;
  n_tail = has_tail && n > lanes && rest <= lanes / 2 ? rest : 0;
  n_vectors = ceil_div(n - n_tail, lanes);
  n_blocks = ceil_div(n_vectors * lanes, kernels.most_columns);
}

PlaneConv::PlaneConv(const Conv<float>& conv, int64_t b, int64_t g, Scratch& memory)
    : c(conv),
      scratch(memory),
      z(c.axis[0]),
      h(c.axis[1]),
      w(c.axis[2]),
      kernels(plane_kernels()),
      image(c.input + b * c.in_batch + g * c.group_in * c.in_channel) {
  const int64_t to = b * c.out_batch + g * c.group_out * c.out_channel;
  whole.m = c.group_out;
  whole.k = c.group_in * c.taps();
  whole.a = c.weight + g * c.weight_group;
  whole.lda = c.weight_out;
  whole.out = c.out + to;
  whole.ld_out = c.out_channel;
  whole.bias = c.bias == nullptr ? nullptr : c.bias + g * c.group_out;
  whole.residual = c.residual == nullptr ? nullptr : c.residual + to;
  whole.act = c.act;
  whole.act_last = c.act_last;
  channel_step = by_taps(c) ? 1 : c.taps();
  tap_step = by_taps(c) ? c.group_in : 1;
}

bool PlaneConv::by_channels(const Conv<float>& c) {
  return c.taps() == 1 ? c.weight_in == 1 || c.group_in == 1
                       : has_taps_at(c, 1) && (c.weight_in == c.taps() || c.group_in == 1);
}
bool PlaneConv::by_taps(const Conv<float>& c) {
  return !by_channels(c) && c.weight_in == 1 && has_taps_at(c, c.group_in);
}

PlaneProduct PlaneConv::part(int64_t i0, int64_t ni, int64_t pixel) const {
  PlaneProduct p = whole;
  p.m = ni;
  p.a += i0 * p.lda;
  p.out += i0 * p.ld_out + pixel;
  if (p.bias != nullptr) p.bias += i0;
  if (p.residual != nullptr) p.residual += i0 * p.ld_out + pixel;
  return p;
}

Size PlaneConv::partial_floats(int64_t m) const {
  return whole.k <= kDepth ? 0 : Size(m) * kPartialColumns;
}

void PlaneConv::multiply(const PlaneProduct& p, float* partial) const {
  if (p.k <= kDepth) return kernels.product(p);
  const int64_t n_parts = ceil_div(p.k, kDepth), depth = ceil_div(p.k, n_parts);
  for (int64_t q = 0; q < p.k; q += depth) {
    PlaneProduct piece = p;
    piece.k = std::min(depth, p.k - q);
    piece.a += q;
    piece.tail += q;
    if (p.offsets == nullptr) {
      piece.b += q * p.ldb;
    } else {
      piece.offsets += q;
    }
    if (q > 0) {
      piece.partial = partial;
      piece.ld_partial = kPartialColumns;
    }
    if (q + depth < p.k) {
      piece.out = partial;
      piece.ld_out = kPartialColumns;
      piece.residual = nullptr;
      piece.act = {};
    }
    kernels.product(piece);
  }
}

void PlaneConv::split_row(int64_t y, const float* channel, const PlaneRows& rows, float* to) const {
  std::fill_n(to, rows.size, 0.0f);
  const int64_t iz = y / rows.height - z.padding, ih = y % rows.height - h.padding;
  if (iz < 0 || iz >= z.in || ih < 0 || ih >= h.in) return;
  const float* from = channel + iz * z.in_stride + ih * h.in_stride;
  const int64_t left = w.padding;
  if (rows.phases == 1) {
    std::copy_n(from, std::min(w.in, rows.width - left), to + left);
    return;
  }
  // Column x of the image is column x + left of the padded row.
  float* const even = to + left % 2 * rows.width + left / 2;
  float* const odd = to + (left + 1) % 2 * rows.width + (left + 1) / 2;
  kernels.split(from, std::min(w.in, 2 * rows.width - left - 1), even, odd);
}

PlaneRows PlaneConv::rows_of(int64_t depth, int64_t height, int64_t phases, int64_t columns) const {
  PlaneRows rows;
  rows.depth = depth;
  rows.height = height;
  rows.phases = phases;
  rows.width = round_up(columns, kernels.lanes);
  rows.size = rows.phases * rows.width;
  rows.data = scratch.array<float>(Size(c.group_in) * depth * height * rows.size);
  return rows;
}
void PlaneConv::split_image(const PlaneRows& rows) const {
  const int64_t count = rows.depth * rows.height;
  parallel_for(c.group_in * count, ceil_div(1 << 14, rows.size), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      split_row(i % count, image + i / count * c.in_channel, rows, rows.data + i * rows.size);
    }
  });
}

}  // namespace executorch::cpu
