// Depthwise convolutions of 8-bit images, with the instruction that multiplies quads of bytes
// (int8_kernels.h).
//
// A quad holds the bytes of four lines of the image, at one column and in one channel. The lines
// that a line of outputs reads are interleaved to quads once. Each output is then the sum, over the
// columns of its window, of the products of a quad of the image with a quad of weights. The four
// lines of a quad may serve several lines of outputs, each with weights of its own: windows of
// three lines with stride 1 need only three of the four, so the same quads serve two lines of
// outputs.
//
// A vector holds the quads of neighbouring channels. If the channels of a pixel do not fill whole
// vectors, the vectors are not padded: they hold the channels of several neighbouring pixels, a
// group of pixels that together fill whole vectors. For that, neighbouring pixels of the output
// must read neighbouring quads. So the columns of the image are sorted by their remainder modulo
// the stride; those with one remainder are a phase and lie side by side.
#include <executorch/cpu/gemm/int8_blocks.h>
#include <executorch/cpu/nn/int8_conv.h>
#include <executorch/cpu/nn/int8_taps.h>

#include <cstring>
#include <memory>
#include <new>
#include <numeric>

namespace executorch::cpu {
namespace {

using int8::ceil_div;
using int8::round_up;

// The bytes of the quads of a strip, a part of a line of outputs. They stay in the L1 cache.
constexpr int64_t kStripBytes = 36 * 1024;
// The most vectors of channels in a block; more channels are computed in blocks of one vector.
constexpr int64_t kMostVectors = 3;
// Channels that are interleaved together: each of the four vectors of quads has a 16-byte block of
// them. Pixels share vectors only if they have a multiple of as many channels.
constexpr int64_t kPiece = 16;
constexpr int64_t kGrainWork = 1 << 16;
// Quads of wide windows may exceed the cache. If they take more bytes than this and than the
// operands, the sparse algorithm is used.
constexpr int64_t kFewBytes = 1 << 24;

struct DepthwisePlan {
  const Int8Conv& conv;
  const int8::Kernels& kernels = int8::kernels();
  AxisTaps y, x;
  int64_t lanes, channels;
  int64_t quads;     // the quads of a column of a window
  int64_t lines;     // the lines of outputs that the same quads serve
  int64_t block;     // the channels that are computed together
  int64_t n_blocks;  // the number of such blocks
  int64_t pixels;    // the pixels of a group: together they fill whole vectors
  int64_t pitch;     // bytes from a column to the next one in a plane of quads
  int64_t chunks;    // the vectors of bytes of a group of pixels

  explicit DepthwisePlan(const Int8Conv& c)
      : conv(c),
        y(c.axis[0], false),
        x(c.axis[1], false),
        lanes(kernels.vector_bytes),
        channels(c.groups) {
    quads = ceil_div(y.kernel, 4);
    lines = y.tap == 1 ? 1 + (4 * quads - y.kernel) / y.step : 1;
    const bool joined = channels % kPiece == 0 && channels <= kMostVectors * lanes;
    block = joined ? channels : lanes;
    n_blocks = ceil_div(channels, block);
    pixels = joined ? lanes / std::gcd(lanes, channels) : 1;
    pitch = block;
    chunks = pixels * block / lanes;
  }
  int64_t taps() const { return quads * x.kernel; }
  /// The bytes of a chunk's weights, four vectors for each tap and line, and of a whole chunk, with
  /// its starts and factors behind the weights.
  int64_t weights_bytes() const { return lines * taps() * 4 * lanes; }
  int64_t chunk_bytes() const { return weights_bytes() + 8 * lanes; }
  Size filter_bytes() const { return Size(n_blocks) * chunks * chunk_bytes(); }

  /// The bytes of the columns of one phase in a plane of quads, for n outputs.
  int64_t phase_bytes(int64_t n) const {
    const int64_t columns = round_up(n, pixels) + ceil_div((x.kernel - 1) * x.tap + 1, x.step);
    return columns * pitch + lanes;
  }
  /// The number of phases in which n outputs have columns.
  int64_t phases(int64_t n) const { return std::min(x.step, x.extent(n)); }
  /// The bytes of a plane. They are no multiple of a page, because stores to four planes would then
  /// wait for one another.
  int64_t plane_bytes(int64_t n) const { return round_up(phases(n) * phase_bytes(n), 64) + 64; }
  int64_t strip() const {
    const int64_t whole = quads * 4 * plane_bytes(x.out);
    const int64_t n = ceil_div(x.out, ceil_div(whole, kStripBytes));
    // If windows are wide, neighbouring strips read many of the same columns. A strip has at least
    // as many columns of its own.
    const int64_t shared = std::min((x.kernel - 1) * x.tap / x.step, x.out);
    return round_up(std::max(n, shared), pixels);
  }
};

/// The bytes that pack_block() needs: four lines of a group of pixels.
int64_t scratch_bytes(const DepthwisePlan& plan) {
  return 4 * plan.chunks * plan.lanes;
}
/// Packs the filter of one block of channels to `to`: [chunk][line][tap][vector][channel][quad].
/// Each chunk is followed by its starts and factors. `buffer` has scratch_bytes(plan) bytes.
void pack_block(const DepthwisePlan& plan, const Int8Gemm& g, int64_t block, int8_t* buffer,
                uint8_t* to) {
  const int64_t lanes = plan.lanes, size = plan.chunks * lanes, first = block * plan.block;
  const auto* const w = reinterpret_cast<const int8_t*>(g.b.data);
  // The channel at an index of a group of pixels; -1 if there is none.
  const auto channel = [&](int64_t place) {
    const int64_t c = first + place % plan.block;
    return c < plan.channels ? c : -1;
  };
  const auto pack_quad = [&](int64_t line, int64_t column, int64_t quad, int64_t tap) {
    std::fill_n(buffer, 4 * size, int8_t{0});
    for (int64_t r = 0; r < 4; ++r) {
      const int64_t row = quad * 4 + r - line * plan.y.step;
      if (row < 0 || row >= plan.y.kernel) continue;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t c = channel(i), at = row * plan.x.kernel + column;
        if (c >= 0) buffer[r * size + i] = w[c * g.b.row_bytes + at * plan.conv.filter_step];
      }
    }
    int8::FourRows rows{};
    for (int64_t r = 0; r < 4; ++r) rows.row[r] = buffer + r * size;
    rows.n = plan.chunks;
    rows.bytes = rows.step = lanes;
    rows.end = buffer + 4 * size;
    plan.kernels.interleave(rows, to + (line * plan.taps() + tap) * 4 * lanes, plan.chunk_bytes(),
                            lanes);
  };
  for (int64_t line = 0; line < plan.lines; ++line) {
    for (int64_t column = 0, tap = 0; column < plan.x.kernel; ++column) {
      for (int64_t quad = 0; quad < plan.quads; ++quad) pack_quad(line, column, quad, tap++);
    }
  }
  const int offset = plan.kernels.depthwise_offset - (g.unsigned_a ? 128 : 0);
  for (int64_t chunk = 0; chunk < plan.chunks; ++chunk) {
    auto* const starts =
        reinterpret_cast<int32_t*>(to + chunk * plan.chunk_bytes() + plan.weights_bytes());
    auto* const factors = reinterpret_cast<float*>(starts + lanes);
    for (int64_t i = 0; i < lanes; ++i) {
      const int64_t vector = i / (lanes / 4), lane = i % (lanes / 4);
      const int64_t c = channel(chunk * lanes + int8::interleaved(vector, lane));
      const int8::ColumnRequantization column(g, offset, std::max<int64_t>(c, 0), c < 0 ? 0 : 1);
      starts[i] = column.start[0];
      factors[i] = column.factor[0];
    }
  }
}

/// Computes the lines of outputs that read the same quads, for one block of channels.
class DepthwiseLines {
 public:
  /// `offsets` has plan.taps() elements.
  DepthwiseLines(const DepthwisePlan& plan, const Int8Gemm& g, const uint8_t* filter,
                 int64_t* offsets)
      : plan_(plan),
        g_(g),
        filter_(filter),
        strip_(plan.strip()),
        phase_(plan.phase_bytes(strip_)),
        plane_(plan.plane_bytes(strip_)),
        offsets_(offsets) {
    for (int64_t column = 0; column < plan.x.kernel; ++column) {
      const int64_t at = column * plan.x.tap;
      for (int64_t quad = 0; quad < plan.quads; ++quad) {
        *offsets++ = quad * 4 * plane_ + at % plan.x.step * phase_ + at / plan.x.step * plan.pitch;
      }
    }
  }
  /// The bytes of the quads of a strip.
  Size scratch_bytes() const { return Size(plan_.quads) * 4 * plane_; }

  void run(int64_t image, int64_t line, int64_t block, uint8_t* quads) const {
    for (int64_t o = 0; o < plan_.x.out; o += strip_) {
      const int64_t n = std::min(strip_, plan_.x.out - o);
      gather(image, line, block, o, n, quads);
      const int64_t lines = std::min(plan_.lines, plan_.y.out - line);
      for (int64_t l = 0; l < lines; ++l) {
        const int64_t pixel = (image * plan_.y.out + line + l) * plan_.x.out + o;
        compute(l, block, quads, n, static_cast<uint8_t*>(g_.c) + pixel * g_.ldc);
      }
    }
  }

 private:
  /// Interleaves what outputs [o, o + n) of a line read to quads at `to`.
  void gather(int64_t image, int64_t line, int64_t block, int64_t o, int64_t n, uint8_t* to) const {
    const AxisTaps &y = plan_.y, &x = plan_.x;
    const int64_t pixels = y.in * x.in, begin = o * x.step + x.base, extent = x.extent(n);
    const int64_t channel = block * plan_.block;
    // The columns inside of the image.
    const int64_t inner = std::clamp<int64_t>(-begin, 0, extent),
                  outer = std::clamp<int64_t>(x.in - begin, inner, extent);
    int8::FourRows rows{};
    rows.end = g_.a + plan_.conv.batch * pixels * plan_.channels;
    rows.padding = static_cast<int8_t>(g_.rows->zero_point);
    rows.flip = static_cast<uint8_t>((plan_.kernels.depthwise_offset != 0 ? 0x80 : 0) ^
                                     (g_.unsigned_a ? 0x80 : 0));
    rows.bytes = std::min(plan_.block, plan_.channels - channel);
    const bool whole = x.step == 1 && plan_.n_blocks == 1 && plan_.pitch == plan_.channels;
    for (int64_t quad = 0; quad < plan_.quads; ++quad) {
      const int8_t* source[4] = {};
      for (int64_t r = 0; r < 4; ++r) {
        const int64_t at = y.position(line * y.step + y.base + (quad * 4 + r) * y.tap);
        if (at < 0) continue;
        source[r] = g_.a + (image * pixels + at * x.in + begin) * plan_.channels + channel;
      }
      uint8_t* const planes = to + quad * 4 * plane_;
      // Writes those of the columns [from, until) that belong to one phase. Calls must be in the
      // order of columns, because whole vectors are written and overwrite what lies behind.
      const auto write = [&](int64_t from, int64_t until, int64_t phase, bool padding) {
        from += (phase - from % x.step + x.step) % x.step;
        if (from >= until) return;
        int8::FourRows some = rows;
        for (int r = 0; r < 4; ++r) {
          some.row[r] =
              padding || source[r] == nullptr ? nullptr : source[r] + from * plan_.channels;
        }
        some.n = ceil_div(until - from, x.step);
        some.step = x.step * plan_.channels;
        if (whole) {
          some.bytes *= some.n;
          some.n = 1;
        }
        plan_.kernels.interleave(some, planes + phase * phase_ + from / x.step * plan_.pitch,
                                 plan_.pitch, plane_);
      };
      for (int64_t phase = 0; phase < plan_.phases(n); ++phase) {
        write(0, inner, phase, true);
        write(inner, outer, phase, false);
        write(outer, extent, phase, true);
      }
    }
  }

  void compute(int64_t line, int64_t block, const uint8_t* quads, int64_t n, uint8_t* to) const {
    const int64_t lanes = plan_.lanes, group = plan_.pixels * plan_.pitch;
    const int64_t n_groups = ceil_div(n, plan_.pixels);
    // The bytes of results of a whole group, and of the last group, which may have fewer pixels.
    const int64_t first = block * plan_.block;
    const int64_t all = plan_.pixels == 1 ? std::min(plan_.block, plan_.channels - first) : group;
    const int64_t rest = plan_.pixels == 1 ? all : n * plan_.pitch - (n_groups - 1) * group;
    const uint8_t* filter = filter_ + block * plan_.chunks * plan_.chunk_bytes();
    for (int64_t chunk = 0; chunk < plan_.chunks; ++chunk, filter += plan_.chunk_bytes()) {
      const int64_t at = chunk * lanes;
      const uint8_t* const columns = filter + plan_.weights_bytes();
      int8::DepthwiseTile tile{.quads = quads + at,
                               .plane = plane_,
                               .n = n_groups,
                               .step = group,
                               .offsets = offsets_,
                               .n_quads = plan_.taps(),
                               .weights = filter + line * plan_.taps() * 4 * lanes,
                               .starts = reinterpret_cast<const int32_t*>(columns),
                               .factors = reinterpret_cast<const float*>(columns + 4 * lanes),
                               .format = int8::ByteFormat(g_),
                               .to = to + first + at,
                               .ld = plan_.pixels == 1 ? g_.ldc : group,
                               .bytes = all - at,
                               .last_bytes = rest - at};
      if (tile.last_bytes <= 0) --tile.n, tile.last_bytes = tile.bytes;
      plan_.kernels.depthwise(tile);
    }
  }

  const DepthwisePlan& plan_;
  const Int8Gemm& g_;
  const uint8_t* filter_;
  const int64_t strip_, phase_, plane_;
  const int64_t* offsets_;
};

}  // namespace

bool Int8Conv::pack_depthwise(Int8Filter& filter) const {
  const DepthwisePlan plan(*this);
  const std::unique_ptr<int8_t[]> buffer(new (std::nothrow)
                                             int8_t[static_cast<size_t>(scratch_bytes(plan))]);
  if (buffer == nullptr || !filter.resize(plan.filter_bytes())) return false;
  uint8_t* const to = filter.data_.get();
  for (int64_t block = 0; block < plan.n_blocks; ++block) {
    pack_block(plan, product, block, buffer.get(), to + block * plan.chunks * plan.chunk_bytes());
  }
  return true;
}

bool Int8Conv::run_depthwise(const Int8Filter& filter, Scratch& scratch) const {
  const DepthwisePlan plan(*this);
  auto* const offsets = scratch.array<int64_t>(plan.taps());
  if (offsets == nullptr) return false;
  const DepthwiseLines lines(plan, product, filter.data(), offsets);
  const Size held = Size(batch) * groups * (plan.y.in * plan.x.in + plan.y.out * plan.x.out);
  if (!lines.scratch_bytes().within(max(held, kFewBytes).value_or(0))) return run_sparse(scratch);
  const ThreadScratch<uint8_t> buffers(scratch, lines.scratch_bytes());
  if (!buffers) return false;
  const int64_t groups_of_lines = ceil_div(plan.y.out, plan.lines);
  const int64_t n = batch * groups_of_lines * plan.n_blocks;
  const int64_t work = plan.x.out * plan.lines * plan.taps() * 4 * plan.block;
  buffers.parallel_for(n, kGrainWork / work + 1, [&](int64_t begin, int64_t end, uint8_t* quads) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / plan.n_blocks;
      lines.run(group / groups_of_lines, group % groups_of_lines * plan.lines, i % plan.n_blocks,
                quads);
    }
  });
  return true;
}

}  // namespace executorch::cpu
