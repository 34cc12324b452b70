#include <executorch/cpu/gemm/division.h>
#include <executorch/cpu/nn/conv_winograd.h>
#include <executorch/cpu/nn/plane_winograd.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>

namespace executorch::cpu {
namespace {

using gemm::ceil_div;
using gemm::round_up;

// The output channels of a part; its products stay in a cache until they are transformed.
constexpr int64_t kChannels = 32;
// The input channels whose tiles a thread transforms for all threads.
constexpr int64_t kTileChannels = 16;
// The floats of padding between points, which then map to different cache sets.
constexpr int64_t kApart = 16;

// Computes, for each point of a tile, a product of channels and tiles.
class WinogradConv {
 public:
  explicit WinogradConv(const PlaneConv& conv)
      : conv_(conv),
        across_((conv.w.out + 1) / 2),
        down_((conv.h.out + 1) / 2),
        tiles_(across_ * down_, conv.kernels),
        n_in_(conv.c.group_in),
        n_out_(conv.c.group_out),
        // If there are few blocks, output channels are divided, and the parts share transformed
        // tiles.
        shared_(tiles_.n_blocks < static_cast<int64_t>(loop_threads())),
        // Further tiles, and a vector behind them, are written behind a row: not to another
        // thread's.
        ld_(conv.kernels.most_columns + (shared_ ? 2 * conv.kernels.lanes : 0)),
        partials_(conv.partial_floats(kChannels)),
        weights_point_(n_in_ * n_out_ + kApart) {}

  bool run() {
    const int64_t n_blocks = tiles_.n_blocks, threads = static_cast<int64_t>(loop_threads());
    const PlaneRows rows = conv_.rows_of(1, 2 * down_ + 2, 2, across_ + 1 + conv_.kernels.lanes);
    // If there are several blocks of tiles, weights are transformed once, ahead; otherwise when
    // needed.
    const bool once = n_blocks > 1;
    Scratch& scratch = conv_.scratch;
    float* const weights =
        scratch.array<float>(once ? Size(kWinogradPoints) * weights_point_ : Size(0));
    float* const blocks = scratch.array<float>(shared_ ? Size(n_blocks) * n_tiles() : Size(0));
    const ThreadScratch<float> buffers(
        scratch, partials_ + (shared_ ? 0 : n_tiles()) + n_m() + (once ? 0 : n_weights()));
    if (rows.data == nullptr || weights == nullptr || blocks == nullptr || !buffers) return false;
    conv_.split_image(rows);
    const PlaneProduct& whole = conv_.whole;
    image_ = {rows.data, rows.height * rows.size, rows.size, rows.width, across_};
    result_ = {whole.out,  whole.ld_out,   conv_.h.out, conv_.w.out,
               whole.bias, whole.residual, whole.act,   whole.act_last};
    if (once) transform_all_weights(weights);
    if (shared_) transform_all_tiles(blocks);
    const int64_t wanted = shared_
                               ? std::min(ceil_div(4 * threads, n_blocks),
                                          std::max<int64_t>(n_out_ / (2 * conv_.kernels.rows), 1))
                               : 1;
    const int64_t height = round_up(ceil_div(n_out_, wanted), conv_.kernels.rows);
    const int64_t parts = ceil_div(n_out_, height);
    buffers.parallel_for(parts * n_blocks, 1, [&](int64_t begin, int64_t end, float* buffer) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t o = task % parts * height;
        multiply_tiles(task / parts, o, std::min(o + height, n_out_), buffer);
      }
    });
    return true;
  }

 private:
  // The distance in floats from one point to the next.
  int64_t v_point() const { return n_in_ * ld_ + PlaneConv::kPartialColumns; }
  static constexpr int64_t m_point() { return kChannels * PlaneConv::kPartialColumns + kApart; }
  // Floats for tiles, for those that are further, for products and for weights.
  int64_t n_v() const { return kWinogradPoints * v_point(); }
  int64_t n_tail() const { return kWinogradPoints * tiles_.n_tail * n_in_; }
  int64_t n_tiles() const { return n_v() + n_tail(); }
  static constexpr int64_t n_m() {
    return kWinogradPoints * m_point() + PlaneConv::kPartialColumns;
  }
  int64_t n_weights() const { return kWinogradPoints * (kChannels * n_in_ + kApart); }

  // Transforms the weights of n output channels from `o` on.
  void transform_weights(int64_t o, int64_t n, float* to, int64_t point) const {
    const PlaneProduct& whole = conv_.whole;
    const WinogradWeights from = {whole.a + o * whole.lda, whole.lda, conv_.channel_step,
                                  conv_.tap_step};
    winograd_kernels().weights(from, n, n_in_, to, point);
  }
  void transform_all_weights(float* to) {
    weights_ = to;
    parallel_for(n_out_, ceil_div(PlaneConv::kGrainWork / 8, n_in_ * kWinogradPoints),
                 [&](int64_t begin, int64_t end) {
                   transform_weights(begin, end - begin, to + begin * n_in_, weights_point_);
                 });
  }

  // Transforms the tiles of channels [begin, end) of a block. `to` holds all of its transformed
  // tiles.
  void transform_tiles(int64_t block, int64_t begin, int64_t end, float* to) const {
    winograd_kernels().tiles(image_, n_in_, begin, end, tiles_.first(block), tiles_.width(block),
                             tiles_.tail(block), to, v_point(), ld_, to + n_v());
  }
  void transform_all_tiles(float* to) {
    blocks_ = to;
    const int64_t groups = ceil_div(n_in_, kTileChannels);
    parallel_for(tiles_.n_blocks * groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % groups * kTileChannels;
        transform_tiles(i / groups, first, std::min(first + kTileChannels, n_in_),
                        to + i / groups * n_tiles());
      }
    });
  }

  // Computes output channels [o_begin, o_end) of a block of tiles. `buffer` belongs to the thread.
  void multiply_tiles(int64_t block, int64_t o_begin, int64_t o_end, float* buffer) const {
    float* m = buffer + partials_.value();
    const float* v = m;
    if (shared_) {
      v = blocks_ + block * n_tiles();
    } else {
      transform_tiles(block, 0, n_in_, m);
      m += n_tiles();
    }
    const float* const tail = v + n_v();
    PlaneProduct p;
    p.n = tiles_.width(block);
    p.n_tail = tiles_.tail(block);
    p.k = n_in_;
    p.lda = n_in_;
    p.ldb = ld_;
    p.ld_tail = kWinogradPoints * n_in_;
    p.ld_out = PlaneConv::kPartialColumns;
    for (int64_t o = o_begin; o < o_end; o += kChannels) {
      p.m = std::min(kChannels, o_end - o);
      const float* u = nullptr;
      int64_t u_point = weights_point_;
      if (weights_ != nullptr) {
        u = weights_ + o * n_in_;
      } else {
        float* const own = m + n_m();
        u = own;
        u_point = n_in_ * p.m + kApart;
        transform_weights(o, p.m, own, u_point);
      }
      for (int64_t e = 0; e < kWinogradPoints; ++e) {
        p.a = u + e * u_point;
        p.b = v + e * v_point();
        p.tail = tail + e * n_in_;
        p.out = m + e * m_point();
        conv_.multiply(p, buffer);
      }
      winograd_kernels().results(result_, across_, o, p.m, tiles_.first(block), p.n + p.n_tail, m,
                                 m_point(), PlaneConv::kPartialColumns);
    }
  }

  const PlaneConv& conv_;
  int64_t across_, down_;  // tiles
  PlaneColumns tiles_;
  int64_t n_in_, n_out_;
  bool shared_;            // threads share transformed tiles
  int64_t ld_;             // floats from one input channel to the next in a block of tiles
  Size partials_;          // floats of a thread: sums in part, then what follows
  int64_t weights_point_;  // from point to point of weights_
  WinogradImage image_ = {};
  WinogradResult result_ = {};
  const float* weights_ = nullptr;  // of all channels; else a thread transforms those that it needs
  const float* blocks_ = nullptr;   // transformed tiles of all blocks, if shared
};

}  // namespace

// Compares costs in cycles, each of two multiply-adds of vectors. A transform of a vector of tiles,
// of 16 points each, takes about kTransform cycles. Winograd's algorithm must save an eighth.
bool suits_winograd(const PlaneConv& conv) {
  constexpr int64_t kTransform = 100;
  for (const ConvAxis* a : {&conv.h, &conv.w}) {
    if (a->kernel != 3 || a->stride != 1 || a->dilation != 1) return false;
  }
  if (conv.z.in != 1 || conv.z.kernel != 1 || conv.z.out != 1) return false;
  const Conv<float>& c = conv.c;
  const int64_t lanes = conv.kernels.lanes, pairs = c.group_in * c.group_out;
  const int64_t tiles = ((conv.h.out + 1) / 2) * ((conv.w.out + 1) / 2);
  const int64_t vectors = ceil_div(tiles, lanes);
  const int64_t products = 8 * vectors * pairs;
  const int64_t transformed = kTransform * (pairs / lanes + vectors * (c.group_in + c.group_out));
  return c.group_in >= 16 && c.group_out >= 16 && tiles > lanes &&
         (products + transformed) * 8 < 7 * (pairs * c.taps() * c.pixels() / lanes / 2);
}

bool run_winograd(const PlaneConv& conv) {
  return WinogradConv(conv).run();
}

}  // namespace executorch::cpu
