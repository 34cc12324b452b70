#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/nn/conv_planes.h>
#include <executorch/cpu/nn/conv_product.h>
#include <executorch/cpu/nn/patches.h>
#include <executorch/cpu/nn/plane_conv.h>
#include <executorch/cpu/nn/plane_winograd.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>

namespace executorch::cpu {
namespace {

using gemm::ceil_div;
using gemm::round_up;

// Products with a smaller k are faster with rows of pixels than with panels, even if rows do not
// fill their last vectors. With a larger one, rows must fill them and lie side by side.
constexpr int64_t kShallow = 256;
constexpr double kFilledShallow = 0.85, kFilledDeep = 0.97;

// Calls f(i0, ni, block, buffer) for parts of m channels and blocks of pixels, which threads share.
// If `channels_first`, all blocks of one part come before the next part.
template <class F>
void for_parts(int64_t m, int64_t n_blocks, int64_t work, bool channels_first,
               const ThreadScratch<float>& buffers, const F& f) {
  const int64_t rows = plane_kernels().rows;
  const auto threads = static_cast<int64_t>(loop_threads());
  int64_t parts = ceil_div(threads == 1 ? 1 : 4 * threads, n_blocks);
  if (channels_first) parts = std::max(parts, threads);
  parts = std::clamp<int64_t>(parts, 1, std::max<int64_t>(m / (2 * rows), 1));
  const int64_t height = round_up(ceil_div(m, parts), rows);
  parts = ceil_div(m, height);
  const int64_t n = parts * n_blocks;
  buffers.parallel_for(n, ceil_div(PlaneConv::kGrainWork * n, work),
                       [&](int64_t begin, int64_t end, float* buffer) {
                         for (int64_t t = begin; t < end; ++t) {
                           const int64_t part = channels_first ? t / n_blocks : t % parts;
                           const int64_t block = channels_first ? t % n_blocks : t / parts;
                           f(part * height, std::min(height, m - part * height), block, buffer);
                         }
                       });
}

class Planes : public PlaneConv {
 public:
  Planes(const Conv<float>& conv, int64_t b, int64_t g, Scratch& memory)
      : PlaneConv(conv, b, g, memory), columns_(conv.pixels(), kernels) {}

  static bool fits(const Conv<float>& c) {
    const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
    const bool planes = w.in_stride == 1 && w.out_stride == 1 &&
                        (h.out == 1 || h.out_stride == w.out) &&
                        (z.out == 1 || z.out_stride == h.out * w.out);
    return !c.transposed && planes && (by_channels(c) || by_taps(c)) &&
           c.pixels() >= plane_kernels().lanes / 2 && c.group_out >= 4;
  }

  // Returns false if memory is refused, as all functions below do.
  [[nodiscard]] bool run() const {
    bool whole_image =
        (h.in == 1 || h.in_stride == w.in) && (z.in == 1 || z.in_stride == h.in * w.in);
    for (const ConvAxis& a : c.axis) whole_image &= a.stride == 1 && a.padding == 0;
    if (c.taps() == 1 && whole_image) return pointwise();
    if (suits_winograd(*this)) return run_winograd(*this);
    const double filled =
        static_cast<double>(w.out) / static_cast<double>(round_up(w.out, kernels.lanes));
    const bool shallow = whole.k <= kShallow;
    const int64_t most_stride = shallow ? 2 : 1;
    const bool rows = h.stride <= most_stride && w.stride <= most_stride &&
                      filled >= (shallow ? kFilledShallow : kFilledDeep);
    return rows ? by_rows() : panels();
  }

 private:
  bool pointwise() const {
    const bool widens = c.group_out > c.group_in;
    const int64_t k = whole.k;
    const bool copies = (columns_.n - columns_.n_tail) % kernels.lanes != 0;
    const Size partials = partial_floats(whole.m);
    const ThreadScratch<float> buffers(
        scratch, partials + Size(k) * (columns_.n_tail + (copies ? kPartialColumns : 0)));
    if (!buffers) return false;
    for_parts(whole.m, columns_.n_blocks, work(), widens, buffers,
              [&](int64_t i0, int64_t ni, int64_t block, float* buffer) {
                const int64_t j0 = columns_.first(block);
                PlaneProduct p = part(i0, ni, j0);
                p.n = columns_.width(block);
                p.n_tail = columns_.tail(block);
                p.b = image + j0;
                p.ldb = c.in_channel;
                float* at = buffer + partials.value();
                p.tail = at;
                p.ld_tail = k;
                for (int64_t d = 0; d < p.n_tail; ++d, at += k) {
                  gemm::gather(p.b + p.n + d, c.in_channel, k, at);
                }
                if (p.n % kernels.lanes != 0) {
                  for (int64_t q = 0; q < k; ++q) {
                    std::copy_n(p.b + q * p.ldb, p.n, at + q * kPartialColumns);
                  }
                  p.b = at;
                  p.ldb = kPartialColumns;
                }
                multiply(p, buffer);
              });
    return true;
  }

  bool by_rows() const {
    const auto extent = [](const ConvAxis& a) {
      return (a.out - 1) * a.stride + (a.kernel - 1) * a.dilation + 1;
    };
    const PlaneRows rows =
        rows_of(extent(z), extent(h), w.stride,
                round_up(w.out, kernels.lanes) + (w.kernel - 1) * w.dilation / w.stride + 1);
    auto* const offsets = scratch.array<int64_t>(whole.k);
    const ThreadScratch<float> buffers(scratch, partial_floats(whole.m));
    if (rows.data == nullptr || offsets == nullptr || !buffers) return false;
    split_image(rows);
    for (int64_t i = 0; i < c.group_in; ++i) {
      for (int64_t tap = 0; tap < c.taps(); ++tap) {
        const int64_t plane = i * rows.depth + tap / (w.kernel * h.kernel) * z.dilation;
        const int64_t row = plane * rows.height + tap / w.kernel % h.kernel * h.dilation;
        const int64_t x = tap % w.kernel * w.dilation;
        offsets[i * channel_step + tap * tap_step] =
            row * rows.size + x % w.stride * rows.width + x / w.stride;
      }
    }
    const PlaneColumns columns(w.out, kernels, false);
    for_parts(whole.m, z.out * h.out * columns.n_blocks, work(), false, buffers,
              [&](int64_t i0, int64_t ni, int64_t i, float* buffer) {
                const int64_t line = i / columns.n_blocks, block = i % columns.n_blocks;
                const int64_t oz = line / h.out, oh = line % h.out, ow = columns.first(block);
                PlaneProduct p = part(i0, ni, line * w.out + ow);
                p.n = columns.width(block);
                p.b = rows.data + (oz * z.stride * rows.height + oh * h.stride) * rows.size + ow;
                p.offsets = offsets;
                multiply(p, buffer);
              });
    return true;
  }

  // The floats of the panel of a block: its vectors, then its further pixels.
  int64_t panel_size() const { return whole.k * (kPartialColumns + columns_.n_tail); }
  // `further` has room for np vectors.
  void fill_panel(int64_t block, int64_t p0, int64_t np, float* panel, float* further) const {
    const PatchRows patches = {c.axis, image, c.in_channel, c.group_in, channel_step, tap_step};
    const int64_t j0 = columns_.first(block), n = columns_.width(block);
    const int64_t ld = round_up(n, kernels.lanes);
    gather_patches()(patches, j0, n, p0, np, panel + p0 * ld, ld);
    const int64_t n_tail = columns_.tail(block);
    if (n_tail == 0) return;
    gather_patches()(patches, j0 + n, n_tail, p0, np, further, kernels.lanes);
    for (int64_t d = 0; d < n_tail; ++d) {
      float* const to = panel + whole.k * (kPartialColumns + d) + p0;
      gemm::gather(further + d, kernels.lanes, np, to);
    }
  }

  void multiply_block(int64_t i0, int64_t ni, int64_t block, const float* panel,
                      float* partial) const {
    PlaneProduct p = part(i0, ni, columns_.first(block));
    p.n = columns_.width(block);
    p.b = panel;
    p.ldb = round_up(p.n, kernels.lanes);
    p.n_tail = columns_.tail(block);
    p.tail = panel + whole.k * kPartialColumns;
    p.ld_tail = whole.k;
    multiply(p, partial);
  }

  bool panels() const {
    // If there are few blocks, channels are divided as well, and the parts share panels.
    if (columns_.n_blocks < 4 * static_cast<int64_t>(loop_threads())) return shared_panels();
    const Size partials = partial_floats(whole.m);
    const Size panel_floats = round_up(Size(panel_size()), kPartialColumns);
    const ThreadScratch<float> buffers(scratch,
                                       partials + panel_floats + Size(whole.k) * kernels.lanes);
    if (!buffers) return false;
    buffers.parallel_for(columns_.n_blocks, ceil_div(kGrainWork * columns_.n_blocks, work()),
                         [&](int64_t begin, int64_t end, float* buffer) {
                           float* const panel = buffer + partials.value();
                           float* const further = panel + panel_floats.value();
                           for (int64_t block = begin; block < end; ++block) {
                             fill_panel(block, 0, whole.k, panel, further);
                             multiply_block(0, whole.m, block, panel, buffer);
                           }
                         });
    return true;
  }

  bool shared_panels() const {
    const int64_t k = whole.k, n_blocks = columns_.n_blocks;
    const auto threads = static_cast<int64_t>(loop_threads());
    const int64_t depth = round_up(ceil_div(k, 4 * threads), 8), pieces = ceil_div(k, depth);
    float* const all = scratch.array<float>(Size(n_blocks) * panel_size());
    const ThreadScratch<float> buffers(scratch,
                                       max(partial_floats(whole.m), Size(depth) * kernels.lanes));
    if (all == nullptr || !buffers) return false;
    buffers.parallel_for(n_blocks * pieces, ceil_div(1 << 10, depth),
                         [&](int64_t begin, int64_t end, float* further) {
                           for (int64_t i = begin; i < end; ++i) {
                             const int64_t p0 = i % pieces * depth;
                             fill_panel(i / pieces, p0, std::min(depth, k - p0),
                                        all + i / pieces * panel_size(), further);
                           }
                         });
    for_parts(whole.m, n_blocks, work(), true, buffers,
              [&](int64_t i0, int64_t ni, int64_t block, float* partial) {
                multiply_block(i0, ni, block, all + block * panel_size(), partial);
              });
    return true;
  }

  PlaneColumns columns_;
};

}  // namespace

bool fits_planes(const Conv<float>& c) {
  return Planes::fits(c);
}

bool run_planes(const Conv<float>& c, int64_t b, int64_t g, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  return Planes(c, b, g, scratch).run();
}

}  // namespace executorch::cpu
