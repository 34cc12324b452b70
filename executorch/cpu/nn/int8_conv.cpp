#include <executorch/cpu/gemm/int8_blocks.h>
#include <executorch/cpu/nn/int8_conv.h>

#include <cstring>

namespace executorch::cpu {
namespace {

using int8::ceil_div;
using int8::Segments;

// Lines of an image that are copied together.
constexpr int64_t kBlockBytes = 128 * 1024;
// Tasks that a thread should have, so that all end alike.
constexpr int64_t kTasksPerThread = 4;

/// Where outputs read along an axis: output o with tap t at o * step + base + t
/// * tap, in steps of which `up` are one of the image.
struct Reach {
  int64_t in, out, kernel, step, base, tap, up;

  Reach(const ConvAxis& a, bool transposed)
      : in(a.in),
        out(a.out),
        kernel(a.kernel),
        step(transposed ? 1 : a.stride),
        base(transposed ? a.padding - (a.kernel - 1) * a.dilation : -a.padding),
        tap(a.dilation),
        up(transposed ? a.stride : 1) {}

  /// Steps that n outputs reach over.
  int64_t extent(int64_t n) const { return (n - 1) * step + (kernel - 1) * tap + 1; }
  bool inside() const { return up == 1 && base >= 0 && base + extent(out) <= in; }
  /// The position in the image that is read at `step` of an output; -1: none.
  int64_t position(int64_t at) const {
    return at >= 0 && at % up == 0 && at / up < in ? at / up : -1;
  }
};

/// How the windows of a convolution are read, whatever the image holds.
struct Plan {
  const Int8Conv& conv;
  Reach y, x;
  bool direct, flat;
  int64_t columns, channels;  // of the lines that windows are read from
  Segments segments;

  explicit Plan(const Int8Conv& c)
      : conv(c), y(c.axis[0], c.transposed), x(c.axis[1], c.transposed) {
    const bool joined = x.tap == 1 && !c.transposed && (c.groups == 1 || x.kernel == 1);
    segments.bytes = joined ? x.kernel * c.group_in : c.group_in;
    direct = y.inside() && x.inside() && segments.bytes % 4 == 0 && !c.product.unsigned_a;
    flat = direct && y.kernel * x.kernel == 1 && y.step * x.step == 1 && y.out == y.in &&
           x.out == x.in && y.base + x.base == 0;
    columns = direct ? x.in : x.extent(x.out);
    channels = direct ? c.groups * c.group_in : c.group_in;
    static thread_local std::vector<int64_t> offsets;  // one plan at a time
    offsets.clear();
    for (int64_t i = 0; i < y.kernel; ++i) {
      for (int64_t j = 0; j < (joined ? 1 : x.kernel); ++j) {
        // Transposed ones read backwards.
        const int64_t ty = c.transposed ? y.kernel - 1 - i : i,
                      tx = c.transposed ? x.kernel - 1 - j : j;
        offsets.push_back((ty * y.tap * columns + tx * x.tap) * channels);
      }
    }
    segments.offsets = offsets.data();
    segments.n = static_cast<int64_t>(offsets.size());
  }
  Plan(const Plan&) = delete;
};

/// The source of Blocks for one group.
struct Image {
  const Plan& plan;
  const Int8Gemm& g;
  int64_t group, line_rows, image_lines, images, block_lines;
  Segments segments;

  Image(const Plan& p, const Int8Gemm& product, int64_t index)
      : plan(p), g(product), group(index), segments(p.segments) {
    const int64_t tiles = ceil_div(g.m, int8::kernels().rows);
    line_rows = p.flat ? ceil_div(g.m, tiles) : p.x.out;
    images = p.flat ? 1 : p.conv.batch;
    image_lines = p.flat ? ceil_div(g.m, line_rows) : p.y.out;
    const int64_t line_bytes = p.flat ? line_rows * g.lda : p.y.step * p.columns * p.channels;
    const int64_t panels = ceil_div(g.n, int8::kernels().columns);
    const int64_t tasks = kTasksPerThread * static_cast<int64_t>(loop_threads());
    const int64_t wanted =
        std::max(ceil_div(image_lines * line_bytes, kBlockBytes), ceil_div(tasks, images * panels));
    block_lines = ceil_div(image_lines, std::min(wanted, image_lines));
  }
  int64_t image_blocks() const { return ceil_div(image_lines, block_lines); }
  int64_t n_blocks() const { return images * image_blocks(); }
  int64_t bytes() const {
    // Quads may go on behind the last segment.
    return plan.direct ? 0 : plan.y.extent(block_lines) * plan.columns * plan.channels + 4;
  }

  int8::Lines lines(int64_t block, int8_t* room) const {
    const int64_t image = block / image_blocks(), first = block % image_blocks() * block_lines;
    const int64_t n = std::min(block_lines, image_lines - first);
    const int64_t pitch = plan.columns * plan.channels;
    const int64_t line_stride = plan.flat ? line_rows * g.lda : plan.y.step * pitch;
    const int64_t row_stride = plan.flat ? g.lda : plan.x.step * plan.channels;
    const int64_t line = image * image_lines + first;
    if (plan.direct) {
      const int8_t* const a =
          g.a + image * plan.y.in * pitch + first * line_stride +
          (plan.flat ? 0 : (plan.y.base * plan.columns + plan.x.base) * plan.channels) +
          group * plan.conv.group_in;
      return {a, line_stride, row_stride, n, line};
    }
    copy(image, first, n, room);
    return {room, line_stride, row_stride, n, line};
  }

  /// Lines [first, first + n) of outputs, what they reach over.
  void copy(int64_t image, int64_t first, int64_t n, int8_t* to) const {
    const Reach &y = plan.y, &x = plan.x;
    const int64_t pitch = plan.columns * plan.channels, all = plan.conv.groups * plan.channels;
    const int64_t zero = g.rows[image * g.m / plan.conv.batch / g.rows_share].zero_point;
    const int64_t rows = y.extent(n);
    // What has a place inside the image.
    const int64_t begin = std::max<int64_t>(0, -x.base);
    const int64_t end = std::max(begin, std::min(plan.columns, (x.in - 1) * x.up + 1 - x.base));
    const bool whole = x.up == 1 && plan.conv.groups == 1;
    for (int64_t r = 0; r < rows; ++r, to += pitch) {
      const int64_t position = y.position(first * y.step + y.base + r);
      const auto fill = [&](int64_t from, int64_t until) {
        std::memset(to + from * plan.channels, static_cast<int>(zero),
                    static_cast<size_t>((until - from) * plan.channels));
      };
      if (position < 0 || begin >= plan.columns) {
        fill(0, plan.columns);
        continue;
      }
      const int8_t* const line =
          g.a + ((image * y.in + position) * x.in) * all + group * plan.channels;
      if (whole) {
        fill(0, begin);
        std::memcpy(to + begin * plan.channels, line + (x.base + begin) * all,
                    static_cast<size_t>((end - begin) * plan.channels));
        fill(end, plan.columns);
        continue;
      }
      fill(0, plan.columns);
      for (int64_t c = begin; c < end; ++c) {
        const int64_t at = x.position(x.base + c);
        if (at < 0) continue;
        std::memcpy(to + c * plan.channels, line + at * all, static_cast<size_t>(plan.channels));
      }
    }
    std::memset(to, 0, 4);
    if (!g.unsigned_a) return;
    for (int8_t* p = to - rows * pitch; p < to; ++p) *p = static_cast<int8_t>(*p ^ 0x80);
  }
};

/// The same product for another group.
Int8Gemm of_group(const Int8Conv& conv, int64_t group) {
  Int8Gemm g = conv.product;
  const int64_t first = group * g.n;
  g.m = conv.batch * conv.axis[0].out * conv.axis[1].out;
  g.lda = conv.groups * conv.group_in;
  g.rows_share *= conv.axis[0].out * conv.axis[1].out;
  g.b.data += first * g.b.row_bytes;
  g.b.scales += first;
  g.sums += first;
  if (g.bias != nullptr) g.bias += first;
  if (g.integer_bias != nullptr) g.integer_bias += first;
  const bool bytes = g.out == Int8Gemm::Out::Int8 || g.out == Int8Gemm::Out::UInt8;
  g.c = static_cast<uint8_t*>(g.c) + first * (bytes ? 1 : g.out == Int8Gemm::Out::F32 ? 4 : 2);
  return g;
}

int64_t group_bytes(const Int8Conv& conv, const Segments& segments) {
  const int8::Kernels& kernels = int8::kernels();
  return ceil_div(conv.group_out, kernels.columns) * int8::panel_bytes(kernels, segments);
}

}  // namespace

uint8_t* Int8Filter::resize(int64_t bytes) {
  constexpr size_t kLine = 64;
  data_.resize(static_cast<size_t>(bytes) + kLine);
  start_ = kLine - reinterpret_cast<uintptr_t>(data_.data()) % kLine;
  return data_.data() + start_;
}

void Int8Conv::pack(Int8Filter& filter) const {
  if (depthwise) return pack_depthwise(filter);
  const int8::Kernels& kernels = int8::kernels();
  const Plan plan(*this);
  uint8_t* to = filter.resize(groups * group_bytes(*this, plan.segments));
  for (int64_t g = 0; g < groups; ++g) {
    const Int8Weights weights = of_group(*this, g).b;
    for (int64_t j = 0; j < group_out; j += kernels.columns) {
      const int64_t n = std::min<int64_t>(kernels.columns, group_out - j);
      int8::pack_panel(kernels, weights, plan.segments, j, n, to);
      to += int8::panel_bytes(kernels, plan.segments);
    }
  }
}

void Int8Conv::run(const Int8Filter& filter) const {
  if (depthwise) return run_depthwise(filter);
  const Plan plan(*this);
  for (int64_t group = 0; group < groups; ++group) {
    const Int8Gemm product = of_group(*this, group);
    const Image image(plan, product, group);
    int8::Blocks<Image>(product, image, filter.data() + group * group_bytes(*this, plan.segments))
        .run();
  }
}

// ---- depthwise ----
//
// A quad is what four rows of taps meet in one column of one channel. Columns
// of a line are interleaved so once, kColumns outputs at a time, then every
// output sums the columns that it reaches.

namespace {

constexpr int64_t kStrip = 32;  // outputs

struct DepthwisePlan {
  const Int8Conv& conv;
  const int8::Kernels& kernels = int8::kernels();
  Reach y, x;
  int64_t channels, quads, quad_bytes, column_bytes, n_blocks;

  explicit DepthwisePlan(const Int8Conv& c)
      : conv(c), y(c.axis[0], false), x(c.axis[1], false), channels(c.groups) {
    quads = ceil_div(y.kernel, 4);  // of a column
    quad_bytes = 4 * kernels.vector_bytes;
    column_bytes = quads * quad_bytes;
    n_blocks = ceil_div(channels, kernels.vector_bytes);
  }
  int64_t block_bytes() const { return x.kernel * column_bytes; }
};

}  // namespace

void Int8Conv::pack_depthwise(Int8Filter& filter) const {
  const DepthwisePlan plan(*this);
  const int64_t width = plan.x.kernel, lanes = plan.kernels.vector_bytes;
  const auto* w = reinterpret_cast<const int8_t*>(product.b.data);
  uint8_t* to = filter.resize(plan.n_blocks * plan.block_bytes());
  for (int64_t block = 0; block < plan.n_blocks; ++block) {
    for (int64_t column = 0; column < width; ++column) {
      for (int64_t quad = 0; quad < plan.quads; ++quad, to += plan.quad_bytes) {
        int8::FourRows rows{};
        rows.n = 1;
        rows.end = w + plan.y.kernel * width * plan.channels;
        for (int64_t r = 0; r < 4 && quad * 4 + r < plan.y.kernel; ++r) {
          rows.row[r] = w + ((quad * 4 + r) * width + column) * plan.channels + block * lanes;
        }
        plan.kernels.interleave(rows, to, 0);
      }
    }
  }
}

namespace {

/// One block of channels of a line of outputs.
class DepthwiseLine {
 public:
  DepthwiseLine(const DepthwisePlan& plan, const Int8Gemm& g, const uint8_t* filter)
      : plan_(plan), g_(g), filter_(filter) {
    static thread_local std::vector<int64_t> offsets;  // one convolution at a time
    offsets.clear();
    for (int64_t column = 0; column < plan.x.kernel; ++column) {
      for (int64_t quad = 0; quad < plan.quads; ++quad) {
        offsets.push_back(column * plan.x.tap * plan.column_bytes + quad * plan.quad_bytes);
      }
    }
    offsets_ = offsets.data();
    n_offsets_ = static_cast<int64_t>(offsets.size());
  }

  void run(int64_t image, int64_t line, int64_t block) const {
    static thread_local Workspace workspace;
    const Reach& x = plan_.x;
    const int64_t lanes = plan_.kernels.vector_bytes, first = block * lanes;
    const int64_t n_channels = std::min(lanes, plan_.channels - first);
    const int64_t strip = x.extent(kStrip) * plan_.column_bytes;
    uint8_t* const columns = int8::bytes_of(workspace, strip + kStrip * lanes * 4);
    auto* const sums = reinterpret_cast<int32_t*>(columns + strip);
    const auto panel = [&](int64_t i) {
      const int64_t begin = std::min(n_channels, i * plan_.kernels.columns);
      return int8::Columns(g_, first + begin,
                           std::min<int64_t>(plan_.kernels.columns, n_channels - begin));
    };
    int8::Columns common[2] = {panel(0), panel(1)};  // a vector of bytes has no more
    for (int64_t o = 0; o < x.out; o += kStrip) {
      const int64_t n = std::min(kStrip, x.out - o);
      gather(image, line, first, o * x.step + x.base, x.extent(n), columns);
      int8::DepthwiseTile tile{columns,  n,          x.step * plan_.column_bytes,
                               offsets_, n_offsets_, filter_ + block * plan_.block_bytes(),
                               sums};
      plan_.kernels.depthwise(tile);
      finish(common, first, n_channels, (image * plan_.y.out + line) * x.out + o, n, sums);
    }
  }

 private:
  /// Columns [begin, begin + n) of the image, or of its padding.
  void gather(int64_t image, int64_t line, int64_t channel, int64_t begin, int64_t n,
              uint8_t* to) const {
    const Reach &y = plan_.y, &x = plan_.x;
    const int64_t pixels = y.in * x.in;
    int8::FourRows rows{};
    rows.step = plan_.channels;
    rows.end = g_.a + plan_.conv.batch * pixels * plan_.channels;
    rows.padding = static_cast<int8_t>(g_.rows->zero_point);
    rows.flip = static_cast<uint8_t>((plan_.kernels.depthwise_offset != 0 ? 0x80 : 0) ^
                                     (g_.unsigned_a ? 0x80 : 0));
    const int64_t inner = std::clamp<int64_t>(-begin, 0, n),
                  outer = std::clamp<int64_t>(x.in - begin, inner, n);
    for (int64_t quad = 0; quad < plan_.quads; ++quad) {
      const int8_t* source[4] = {};
      for (int64_t r = 0; r < 4 && quad * 4 + r < y.kernel; ++r) {
        const int64_t at = y.position(line * y.step + y.base + (quad * 4 + r) * y.tap);
        if (at >= 0) {
          source[r] =
              g_.a + (image * pixels + at * x.in + begin + inner) * plan_.channels + channel;
        }
      }
      const auto write = [&](int64_t from, int64_t until, bool padding) {
        for (int r = 0; r < 4; ++r) rows.row[r] = padding ? nullptr : source[r];
        rows.n = until - from;
        plan_.kernels.interleave(rows, to + from * plan_.column_bytes + quad * plan_.quad_bytes,
                                 plan_.column_bytes);
      };
      write(0, inner, true);
      write(inner, outer, false);
      write(outer, n, true);
    }
  }

  void finish(int8::Columns* columns, int64_t channel, int64_t n_channels, int64_t pixel, int64_t n,
              const int32_t* sums) const {
    const int64_t step = plan_.kernels.columns;
    for (int64_t c = 0; c < n_channels; c += step) {
      plan_.kernels.finish(
          {&g_, columns++, plan_.kernels.depthwise_offset - (g_.unsigned_a ? 128 : 0), pixel, n,
           channel + c, std::min(step, n_channels - c), sums + c, plan_.kernels.vector_bytes});
    }
  }

  const DepthwisePlan& plan_;
  const Int8Gemm& g_;
  const uint8_t* filter_;
  const int64_t* offsets_;
  int64_t n_offsets_;
};

}  // namespace

void Int8Conv::run_depthwise(const Int8Filter& filter) const {
  constexpr int64_t kGrainWork = 1 << 16;
  const DepthwisePlan plan(*this);
  Int8Gemm g = of_group(*this, 0);
  const DepthwiseLine lines(plan, g, filter.data());
  const int64_t n = batch * plan.y.out * plan.n_blocks;
  const int64_t work = plan.x.out * plan.quads * 4 * plan.x.kernel * plan.kernels.vector_bytes;
  parallel_for(n, kGrainWork / work + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t line = i / plan.n_blocks;
      lines.run(line / plan.y.out, line % plan.y.out, i % plan.n_blocks);
    }
  });
}

}  // namespace executorch::cpu
