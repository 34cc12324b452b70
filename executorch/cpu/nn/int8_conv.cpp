#include <executorch/cpu/gemm/int8_blocks.h>
#include <executorch/cpu/nn/int8_conv.h>
#include <executorch/cpu/nn/int8_reach.h>

#include <cstring>
#include <new>

namespace executorch::cpu {
namespace {

using int8::ceil_div;
using int8::Segments;

constexpr int64_t kLine = 64;
// Lines of an image that are copied together.
constexpr int64_t kBlockBytes = 128 * 1024;
// Tasks that a thread should have, so that all end alike.
constexpr int64_t kTasksPerThread = 4;

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

int64_t panels_of(const Int8Conv& conv) {
  return ceil_div(conv.group_out, int8::kernels().columns);
}
int64_t group_bytes(const Int8Conv& conv, const Segments& segments) {
  return panels_of(conv) * int8::panel_bytes(int8::kernels(), segments);
}

}  // namespace

uint8_t* Int8Filter::resize(int64_t bytes) {
  data_.resize(static_cast<size_t>(bytes + kLine));
  start_ = static_cast<size_t>(kLine) - reinterpret_cast<uintptr_t>(data_.data()) % kLine;
  return data_.data() + start_;
}

void Int8Conv::pack(Int8Filter& filter) const {
  if (depthwise) return pack_depthwise(filter);
  const int8::Kernels& kernels = int8::kernels();
  const Plan plan(*this);
  const bool bytes = int8::gives_bytes(product);
  const int64_t weights_bytes = int8::round_up(groups * group_bytes(*this, plan.segments), kLine);
  const int64_t n_columns = bytes ? groups * panels_of(*this) : 0;
  uint8_t* to =
      filter.resize(weights_bytes + n_columns * static_cast<int64_t>(sizeof(int8::ByteColumns)));
  auto* columns = reinterpret_cast<int8::ByteColumns*>(to + weights_bytes);
  const int offset = kernels.tile_offset[0] - (product.unsigned_a ? 128 : 0);
  for (int64_t g = 0; g < groups; ++g) {
    const Int8Gemm of = of_group(*this, g);
    for (int64_t j = 0; j < group_out; j += kernels.columns) {
      const int64_t n = std::min<int64_t>(kernels.columns, group_out - j);
      int8::pack_panel(kernels, of.b, plan.segments, j, n, to);
      to += int8::panel_bytes(kernels, plan.segments);
      if (bytes) new (columns++) int8::ByteColumns(of, offset, j, n);
    }
  }
}

void Int8Conv::run(const Int8Filter& filter) const {
  if (depthwise) return run_depthwise(filter);
  const Plan plan(*this);
  const int64_t of_group_bytes = group_bytes(*this, plan.segments);
  const auto* columns = reinterpret_cast<const int8::ByteColumns*>(
      filter.data() + int8::round_up(groups * of_group_bytes, kLine));
  for (int64_t group = 0; group < groups; ++group) {
    const Int8Gemm product = of_group(*this, group);
    const Image image(plan, product, group);
    int8::Packed packed{filter.data() + group * of_group_bytes, nullptr};
    if (int8::gives_bytes(product)) packed.columns = columns + group * panels_of(*this);
    int8::Blocks<Image>(product, image, packed).run();
  }
}

}  // namespace executorch::cpu
