#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/nn/conv_planes.h>
#include <executorch/cpu/nn/conv_product.h>
#include <executorch/cpu/nn/conv_winograd.h>
#include <executorch/cpu/nn/patches.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>

namespace executorch::cpu {
namespace {

using gemm::ceil_div;
using gemm::round_up;

// Multiply-adds that are worth another thread.
constexpr int64_t kGrainWork = 1 << 16;
// A deeper sum is divided: its rows of pixels and weights would not stay in the second-level cache.
constexpr int64_t kDepth = 1536;
// A shallower one is cheaper with rows of pixels than with panels.
constexpr int64_t kShallow = 256;
// Room for a row of partial sums and for a row of a panel: three vectors and further pixels.
constexpr int64_t kPartialColumns = 64;

// Pixels in blocks of at most three vectors of nearly equal width; a few more than whole vectors
// are summed by themselves in the last block.
struct Columns {
  int64_t n, lanes, n_dots, n_vectors, n_blocks;

  Columns(int64_t pixels, const PlaneKernels& kernels, bool takes_dots = true)
      : n(pixels), lanes(kernels.lanes) {
    const int64_t rest = n % lanes;
    n_dots = takes_dots && n > lanes && rest <= lanes / 2 ? rest : 0;
    n_vectors = ceil_div(n - n_dots, lanes);
    n_blocks = ceil_div(n_vectors * lanes, kernels.most_columns);
  }
  int64_t first(int64_t block) const { return block * n_vectors / n_blocks * lanes; }
  int64_t width(int64_t block) const {
    return std::min(first(block + 1), n - n_dots) - first(block);
  }
  int64_t dots(int64_t block) const { return block + 1 == n_blocks ? n_dots : 0; }
};

// Calls f(i0, ni, block, buffer) for parts of m channels and blocks of pixels, which threads share;
// those of one part after the other if `channels_first`.
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
  buffers.parallel_for(n, ceil_div(kGrainWork * n, work),
                       [&](int64_t begin, int64_t end, float* buffer) {
                         for (int64_t t = begin; t < end; ++t) {
                           const int64_t part = channels_first ? t / n_blocks : t % parts;
                           const int64_t block = channels_first ? t % n_blocks : t / parts;
                           f(part * height, std::min(height, m - part * height), block, buffer);
                         }
                       });
}

class Planes {
 public:
  Planes(const Conv<float>& c, int64_t b, int64_t g, Scratch& scratch)
      : c_(c),
        scratch_(scratch),
        h_(c.axis[1]),
        w_(c.axis[2]),
        kernels_(plane_kernels()),
        image_(c.input + b * c.in_batch + g * c.group_in * c.in_channel),
        columns_(c.pixels(), kernels_) {
    const int64_t to = b * c.out_batch + g * c.group_out * c.out_channel;
    whole_.m = c.group_out;
    whole_.k = c.group_in * c.taps();
    whole_.a = c.weight + g * c.weight_group;
    whole_.lda = c.weight_out;
    whole_.out = c.out + to;
    whole_.ld_out = c.out_channel;
    whole_.bias = c.bias == nullptr ? nullptr : c.bias + g * c.group_out;
    whole_.residual = c.residual == nullptr ? nullptr : c.residual + to;
    whole_.act = c.act;
    whole_.act_last = c.act_last;
    channel_step_ = by_taps(c) ? 1 : c.taps();
    tap_step_ = by_taps(c) ? c.group_in : 1;
  }

  static bool fits(const Conv<float>& c) {
    const ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
    const bool rows = w.in_stride == 1 && w.out_stride == 1 && h.out_stride == w.out;
    return !c.transposed && z.in == 1 && z.kernel == 1 && z.out == 1 && z.padding == 0 && rows &&
           (by_channels(c) || by_taps(c)) && c.pixels() >= plane_kernels().lanes / 2 &&
           c.group_out >= 4;
  }

  // False if the memory was refused, as of all that follow.
  [[nodiscard]] bool run() const {
    const bool whole_image = h_.stride == 1 && w_.stride == 1 && h_.padding == 0 &&
                             w_.padding == 0 && h_.in_stride == w_.in;
    if (c_.taps() == 1 && whole_image) return pointwise();
    if (transforms()) return winograd();
    const double filled =
        static_cast<double>(w_.out) / static_cast<double>(round_up(w_.out, kernels_.lanes));
    if (h_.stride <= 2 && w_.stride <= 2 && filled >= 0.85 && whole_.k <= kShallow) {
      return by_rows();
    }
    return panels();
  }

 private:
  // The weights of an output channel: (channel, tap) or (tap, channel).
  static bool by_channels(const Conv<float>& c) {
    const ConvAxis &h = c.axis[1], &w = c.axis[2];
    return c.taps() == 1 ? c.weight_in == 1 || c.group_in == 1
                         : w.weight_stride == 1 && h.weight_stride == w.kernel &&
                               (c.weight_in == c.taps() || c.group_in == 1);
  }
  static bool by_taps(const Conv<float>& c) {
    const ConvAxis &h = c.axis[1], &w = c.axis[2];
    return !by_channels(c) && c.weight_in == 1 && w.weight_stride == c.group_in &&
           h.weight_stride == w.kernel * c.group_in;
  }

  int64_t work() const { return whole_.m * whole_.k * c_.pixels(); }

  // Channels [i0, i0 + ni) of the pixels from `pixel` on, as far as that decides.
  PlaneProduct part(int64_t i0, int64_t ni, int64_t pixel) const {
    PlaneProduct p = whole_;
    p.m = ni;
    p.a += i0 * p.lda;
    p.out += i0 * p.ld_out + pixel;
    if (p.bias != nullptr) p.bias += i0;
    if (p.residual != nullptr) p.residual += i0 * p.ld_out + pixel;
    return p;
  }

  // Floats that multiply() needs for products of m channels.
  Size partial_floats(int64_t m) const {
    return whole_.k <= kDepth ? 0 : Size(m) * kPartialColumns;
  }

  // A deep product in parts of the sum.
  void multiply(const PlaneProduct& p, float* partial) const {
    if (p.k <= kDepth) return kernels_.product(p);
    const int64_t n_parts = ceil_div(p.k, kDepth), depth = ceil_div(p.k, n_parts);
    for (int64_t q = 0; q < p.k; q += depth) {
      PlaneProduct piece = p;
      piece.k = std::min(depth, p.k - q);
      piece.a += q;
      piece.dots += q;
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
      kernels_.product(piece);
    }
  }

  bool pointwise() const {
    const bool widens = c_.group_out > c_.group_in;
    const int64_t k = whole_.k;
    const bool copies = (columns_.n - columns_.n_dots) % kernels_.lanes != 0;
    const Size partials = partial_floats(whole_.m);
    const ThreadScratch<float> buffers(
        scratch_, partials + Size(k) * (columns_.n_dots + (copies ? kPartialColumns : 0)));
    if (!buffers) return false;
    for_parts(whole_.m, columns_.n_blocks, work(), widens, buffers,
              [&](int64_t i0, int64_t ni, int64_t block, float* buffer) {
                const int64_t j0 = columns_.first(block);
                PlaneProduct p = part(i0, ni, j0);
                p.n = columns_.width(block);
                p.n_dots = columns_.dots(block);
                p.b = image_ + j0;
                p.ldb = c_.in_channel;
                float* at = buffer + partials.value();
                p.dots = at;
                p.ld_dots = k;
                for (int64_t d = 0; d < p.n_dots; ++d, at += k) {
                  gemm::gather(p.b + p.n + d, c_.in_channel, k, at);
                }
                if (p.n % kernels_.lanes != 0) {
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

  // The padded image: of every row the columns with remainder 0 modulo the stride, then 1.
  struct Rows {
    int64_t count, phases, width, size;  // rows; parts of a row; columns of a part; floats of a row
    float* data;
  };

  // Whether F(2x2, 3x3) costs less, in cycles per multiply-add of a vector of pixels: a transform
  // takes about kTransform of them for 16 points.
  bool transforms() const {
    constexpr int64_t kTransform = 100;
    for (const ConvAxis* a : {&h_, &w_}) {
      if (a->kernel != 3 || a->stride != 1 || a->dilation != 1) return false;
    }
    const int64_t pairs = c_.group_in * c_.group_out;
    const int64_t tiles = ((h_.out + 1) / 2) * ((w_.out + 1) / 2);
    const int64_t vectors = ceil_div(tiles, kernels_.lanes);
    const int64_t products = 8 * vectors * pairs;
    const int64_t transformed =
        kTransform * (pairs / kernels_.lanes + vectors * (c_.group_in + c_.group_out));
    return c_.group_in >= 16 && c_.group_out >= 16 && tiles > kernels_.lanes &&
           (products + transformed) * 8 <
               7 * (pairs * c_.taps() * c_.pixels() / kernels_.lanes / 2);
  }

  // Output channels whose products lie in a cache before they are transformed.
  static constexpr int64_t kChannels = 32;
  // Input channels whose tiles a thread transforms for all.
  static constexpr int64_t kTileChannels = 16;
  // Floats between points, which then lie in different sets of a cache.
  static constexpr int64_t kApart = 16;

  // A convolution by F(2x2, 3x3): for each point a product of channels and tiles.
  struct Winograd {
    Columns tiles;
    int64_t n_in, ld;  // input channels; floats from one to the next in a block of tiles
    int64_t weights_point;
    Size partials;  // floats of a thread: sums in part, then what follows
    WinogradImage image = {};
    WinogradResult result = {};
    float* weights = nullptr;  // of all channels; else a thread transforms those that it needs
    float* blocks = nullptr;   // transformed tiles of all blocks; else a thread transforms its own

    // From point to point.
    int64_t v_point() const { return n_in * ld + kPartialColumns; }
    static constexpr int64_t m_point() { return kChannels * kPartialColumns + kApart; }
    // Floats for tiles, for those that are further, for products and for weights.
    int64_t n_v() const { return kWinogradPoints * v_point(); }
    int64_t n_dots() const { return kWinogradPoints * tiles.n_dots * n_in; }
    int64_t n_tiles() const { return n_v() + n_dots(); }
    static constexpr int64_t n_m() { return kWinogradPoints * m_point() + kPartialColumns; }
    int64_t n_weights() const { return kWinogradPoints * (kChannels * n_in + kApart); }
  };

  bool winograd() const {
    const int64_t n_in = c_.group_in, n_out = c_.group_out;
    const int64_t across = (w_.out + 1) / 2, down = (h_.out + 1) / 2;
    Winograd w = {Columns(across * down, kernels_), n_in, kernels_.most_columns,
                  n_in * n_out + kApart, partial_floats(kChannels)};
    const int64_t n_blocks = w.tiles.n_blocks, threads = static_cast<int64_t>(loop_threads());
    // Few blocks are divided by output channels, whose parts share transformed tiles.
    const bool shared = n_blocks < threads;
    // Further tiles, and a vector behind them, are written behind a row: not to another thread's.
    if (shared) w.ld += 2 * kernels_.lanes;
    const Rows rows = rows_of(2 * down + 2, 2, across + 1 + kernels_.lanes);
    // Weights are transformed once for several blocks of tiles, or where they are needed.
    const bool once = n_blocks > 1;
    float* const all = scratch_.array<float>(once ? Size(kWinogradPoints) * w.weights_point : 0);
    float* const blocks = scratch_.array<float>(shared ? Size(n_blocks) * w.n_tiles() : 0);
    const ThreadScratch<float> buffers(
        scratch_, w.partials + (shared ? 0 : w.n_tiles()) + w.n_m() + (once ? 0 : w.n_weights()));
    if (rows.data == nullptr || all == nullptr || blocks == nullptr || !buffers) return false;
    split_image(rows);
    w.image = {rows.data, rows.count * rows.size, rows.size, rows.width, across};
    w.result = {whole_.out,  whole_.ld_out,   h_.out,     w_.out,
                whole_.bias, whole_.residual, whole_.act, whole_.act_last};
    if (once) {
      w.weights = all;
      parallel_for(n_out, ceil_div(kGrainWork / 8, n_in * kWinogradPoints),
                   [&](int64_t begin, int64_t end) {
                     transform_weights(begin, end - begin, all + begin * n_in, w.weights_point);
                   });
    }
    if (shared) {
      w.blocks = blocks;
      const int64_t groups = ceil_div(n_in, kTileChannels);
      parallel_for(n_blocks * groups, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t first = i % groups * kTileChannels;
          transform_tiles(w, i / groups, first, std::min(first + kTileChannels, n_in),
                          blocks + i / groups * w.n_tiles());
        }
      });
    }
    const int64_t wanted = shared ? std::min(ceil_div(4 * threads, n_blocks),
                                             std::max<int64_t>(n_out / (2 * kernels_.rows), 1))
                                  : 1;
    const int64_t height = round_up(ceil_div(n_out, wanted), kernels_.rows);
    const int64_t parts = ceil_div(n_out, height);
    buffers.parallel_for(parts * n_blocks, 1, [&](int64_t begin, int64_t end, float* buffer) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t o = task % parts * height;
        multiply_tiles(w, task / parts, o, std::min(o + height, n_out), buffer);
      }
    });
    return true;
  }

  // Of n output channels from `o` on.
  void transform_weights(int64_t o, int64_t n, float* to, int64_t point) const {
    const WinogradWeights from = {whole_.a + o * whole_.lda, whole_.lda, channel_step_, tap_step_};
    winograd_kernels().weights(from, n, c_.group_in, to, point);
  }

  // Of channels [begin, end) of a block; `to` is all of its transformed tiles.
  void transform_tiles(const Winograd& w, int64_t block, int64_t begin, int64_t end,
                       float* to) const {
    winograd_kernels().tiles(w.image, w.n_in, begin, end, w.tiles.first(block),
                             w.tiles.width(block), w.tiles.dots(block), to, w.v_point(), w.ld,
                             to + w.n_v());
  }

  // Output channels [o_begin, o_end) of a block of tiles; `buffer` is the thread's.
  void multiply_tiles(const Winograd& w, int64_t block, int64_t o_begin, int64_t o_end,
                      float* buffer) const {
    const WinogradKernels& kernels = winograd_kernels();
    float* m = buffer + w.partials.value();
    const float* v = m;
    if (w.blocks != nullptr) {
      v = w.blocks + block * w.n_tiles();
    } else {
      transform_tiles(w, block, 0, w.n_in, m);
      m += w.n_tiles();
    }
    const float* const dots = v + w.n_v();
    const int64_t t0 = w.tiles.first(block);
    PlaneProduct p;
    p.n = w.tiles.width(block);
    p.n_dots = w.tiles.dots(block);
    p.k = w.n_in;
    p.lda = w.n_in;
    p.ldb = w.ld;
    p.ld_dots = kWinogradPoints * w.n_in;
    p.ld_out = kPartialColumns;
    for (int64_t o = o_begin; o < o_end; o += kChannels) {
      p.m = std::min(kChannels, o_end - o);
      const float* u = nullptr;
      int64_t u_point = w.weights_point;
      if (w.weights != nullptr) {
        u = w.weights + o * w.n_in;
      } else {
        float* const own = m + w.n_m();
        u = own;
        u_point = w.n_in * p.m + kApart;
        transform_weights(o, p.m, own, u_point);
      }
      for (int64_t e = 0; e < kWinogradPoints; ++e) {
        p.a = u + e * u_point;
        p.b = v + e * w.v_point();
        p.dots = dots + e * w.n_in;
        p.out = m + e * w.m_point();
        multiply(p, buffer);
      }
      kernels.results(w.result, w.image.tiles_across, o, p.m, t0, p.n + p.n_dots, m, w.m_point(),
                      kPartialColumns);
    }
  }

  void split_row(int64_t y, const float* channel, const Rows& rows, float* to) const {
    std::fill_n(to, rows.size, 0.0f);
    const int64_t ih = y - h_.padding;
    if (ih < 0 || ih >= h_.in) return;
    const float* from = channel + ih * h_.in_stride;
    const int64_t left = w_.padding;
    if (rows.phases == 1) {
      std::copy_n(from, std::min(w_.in, rows.width - left), to + left);
      return;
    }
    // Column x of the image is column x + left of the padded row.
    float* const even = to + left % 2 * rows.width + left / 2;
    float* const odd = to + (left + 1) % 2 * rows.width + (left + 1) / 2;
    kernels_.split(from, std::min(w_.in, 2 * rows.width - left - 1), even, odd);
  }

  Rows rows_of(int64_t count, int64_t phases, int64_t columns) const {
    Rows rows;
    rows.count = count;
    rows.phases = phases;
    rows.width = round_up(columns, kernels_.lanes);
    rows.size = rows.phases * rows.width;
    rows.data = scratch_.array<float>(Size(c_.group_in) * rows.count * rows.size);
    return rows;
  }
  void split_image(const Rows& rows) const {
    parallel_for(c_.group_in * rows.count, ceil_div(1 << 14, rows.size),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     split_row(i % rows.count, image_ + i / rows.count * c_.in_channel, rows,
                               rows.data + i * rows.size);
                   }
                 });
  }

  bool by_rows() const {
    const Rows rows =
        rows_of((h_.out - 1) * h_.stride + (h_.kernel - 1) * h_.dilation + 1, w_.stride,
                round_up(w_.out, kernels_.lanes) + (w_.kernel - 1) * w_.dilation / w_.stride + 1);
    auto* const offsets = scratch_.array<int64_t>(whole_.k);
    const ThreadScratch<float> buffers(scratch_, partial_floats(whole_.m));
    if (rows.data == nullptr || offsets == nullptr || !buffers) return false;
    split_image(rows);
    for (int64_t i = 0; i < c_.group_in; ++i) {
      for (int64_t tap = 0; tap < c_.taps(); ++tap) {
        const int64_t row = i * rows.count + tap / w_.kernel * h_.dilation;
        const int64_t x = tap % w_.kernel * w_.dilation;
        offsets[i * channel_step_ + tap * tap_step_] =
            row * rows.size + x % w_.stride * rows.width + x / w_.stride;
      }
    }
    const Columns columns(w_.out, kernels_, false);
    for_parts(whole_.m, h_.out, work(), false, buffers,
              [&](int64_t i0, int64_t ni, int64_t oh, float* buffer) {
                for (int64_t block = 0; block < columns.n_blocks; ++block) {
                  const int64_t ow = columns.first(block);
                  PlaneProduct p = part(i0, ni, oh * w_.out + ow);
                  p.n = columns.width(block);
                  p.b = rows.data + oh * h_.stride * rows.size + ow;
                  p.offsets = offsets;
                  multiply(p, buffer);
                }
              });
    return true;
  }

  // The panel of a block: its vectors, then its further pixels.
  int64_t panel_size() const { return whole_.k * (kPartialColumns + columns_.n_dots); }
  // `further` has room for np vectors.
  void fill_panel(int64_t block, int64_t p0, int64_t np, float* panel, float* further) const {
    const PatchRows patches = {c_.axis,     image_,        c_.in_channel,
                               c_.group_in, channel_step_, tap_step_};
    const int64_t j0 = columns_.first(block), n = columns_.width(block);
    const int64_t ld = round_up(n, kernels_.lanes);
    gather_patches()(patches, j0, n, p0, np, panel + p0 * ld, ld);
    const int64_t n_dots = columns_.dots(block);
    if (n_dots == 0) return;
    gather_patches()(patches, j0 + n, n_dots, p0, np, further, kernels_.lanes);
    for (int64_t d = 0; d < n_dots; ++d) {
      float* const to = panel + whole_.k * (kPartialColumns + d) + p0;
      gemm::gather(further + d, kernels_.lanes, np, to);
    }
  }

  void multiply_block(int64_t i0, int64_t ni, int64_t block, const float* panel,
                      float* partial) const {
    PlaneProduct p = part(i0, ni, columns_.first(block));
    p.n = columns_.width(block);
    p.b = panel;
    p.ldb = round_up(p.n, kernels_.lanes);
    p.n_dots = columns_.dots(block);
    p.dots = panel + whole_.k * kPartialColumns;
    p.ld_dots = whole_.k;
    multiply(p, partial);
  }

  bool panels() const {
    // Few blocks are divided by channels, whose parts share panels.
    if (columns_.n_blocks < 4 * static_cast<int64_t>(loop_threads())) return shared_panels();
    const Size partials = partial_floats(whole_.m);
    const Size panel_floats = round_up(Size(panel_size()), kPartialColumns);
    const ThreadScratch<float> buffers(scratch_,
                                       partials + panel_floats + Size(whole_.k) * kernels_.lanes);
    if (!buffers) return false;
    buffers.parallel_for(columns_.n_blocks, ceil_div(kGrainWork * columns_.n_blocks, work()),
                         [&](int64_t begin, int64_t end, float* buffer) {
                           float* const panel = buffer + partials.value();
                           float* const further = panel + panel_floats.value();
                           for (int64_t block = begin; block < end; ++block) {
                             fill_panel(block, 0, whole_.k, panel, further);
                             multiply_block(0, whole_.m, block, panel, buffer);
                           }
                         });
    return true;
  }

  bool shared_panels() const {
    const int64_t k = whole_.k, n_blocks = columns_.n_blocks;
    const auto threads = static_cast<int64_t>(loop_threads());
    const int64_t depth = round_up(ceil_div(k, 4 * threads), 8), pieces = ceil_div(k, depth);
    float* const all = scratch_.array<float>(Size(n_blocks) * panel_size());
    const ThreadScratch<float> buffers(scratch_,
                                       max(partial_floats(whole_.m), Size(depth) * kernels_.lanes));
    if (all == nullptr || !buffers) return false;
    buffers.parallel_for(n_blocks * pieces, ceil_div(1 << 10, depth),
                         [&](int64_t begin, int64_t end, float* further) {
                           for (int64_t i = begin; i < end; ++i) {
                             const int64_t p0 = i % pieces * depth;
                             fill_panel(i / pieces, p0, std::min(depth, k - p0),
                                        all + i / pieces * panel_size(), further);
                           }
                         });
    for_parts(whole_.m, n_blocks, work(), true, buffers,
              [&](int64_t i0, int64_t ni, int64_t block, float* partial) {
                multiply_block(i0, ni, block, all + block * panel_size(), partial);
              });
    return true;
  }

  const Conv<float>& c_;
  Scratch& scratch_;
  const ConvAxis &h_, &w_;
  const PlaneKernels& kernels_;
  const float* image_;
  Columns columns_;
  PlaneProduct whole_;               // all channels
  int64_t channel_step_, tap_step_;  // along the summed dim
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
