#include <executorch/cpu/gemm/int8_blocks.h>
#include <executorch/cpu/nn/conv_sparse.h>
#include <executorch/cpu/nn/int8_conv.h>
#include <executorch/cpu/nn/int8_taps.h>
#include <executorch/cpu/prefetch.h>

#include <cstring>
#include <limits>
#include <new>

namespace executorch::cpu {
namespace {

using int8::ceil_div;
using int8::Segments;

// The bytes of image lines that are copied together as a block.
constexpr int64_t kBlockBytes = 128 * 1024;
// The lines that neighbouring blocks both copy are at most this many times the lines of a block.
constexpr int64_t kMostShared = 8;
// The number of multiply-adds of a pixel that repays copying its bytes.
constexpr int64_t kRepaidWork = 4096;
// A filter is not packed if its panels would be far larger, because groups do not fill panels.
constexpr int64_t kMostGrowth = 64, kSmallFilter = 1 << 26;

/// The way in which the windows of a convolution are read, which does not depend on the image's
/// data.
struct Plan {
  const Int8Conv& conv;
  AxisTaps y, x;
  bool direct, flat;
  bool prepared;              // rows are prepared for tiles, once for all panels
  int64_t columns, channels;  // of the lines that windows are read from
  Segments segments;          // without their offsets

  explicit Plan(const Int8Conv& c)
      : conv(c), y(c.axis[0], c.transposed), x(c.axis[1], c.transposed) {
    for (AxisTaps* r : {&y, &x}) {
      if (r->out == 1) r->step = 1;  // which is not made
    }
    const bool joined = x.tap == 1 && !c.transposed && (c.groups == 1 || x.kernel == 1);
    segments.bytes = joined ? x.kernel * c.group_in : c.group_in;
    segments.n = y.kernel * (joined ? 1 : x.kernel);
    segments.offsets = nullptr;
    direct = y.inside() && x.inside() && segments.bytes % 4 == 0 && !c.product.unsigned_a;
    flat = direct && y.kernel * x.kernel == 1 && y.step * x.step == 1 && y.out == y.in &&
           x.out == x.in && y.base + x.base == 0;
    // Rows that could be read in place are copied to be prepared if several panels read them. If
    // prepared elements are bytes too, their products must also take longer than the call that
    // prepares each pixel.
    const int8::Row& row = int8::kernels().rows[int8::kBytes];
    const bool repaid = row.operand.tile_element > 1 || c.group_out * segments.bytes >= kRepaidWork;
    prepared =
        row.operand.prepare_tile != nullptr && (!direct || (c.group_out > row.columns && repaid));
    direct = direct && (flat || !prepared);
    columns = direct ? x.in : x.extent(x.out);
    channels = direct ? c.groups * c.group_in : c.group_in;
  }
  Plan(const Plan&) = delete;

  /// Computes the segments' offsets in `buffer`, which has room for segments.n elements.
  void set_offsets(int64_t* buffer) {
    const int64_t across = segments.n / y.kernel;
    for (int64_t i = 0; i < segments.n; ++i) {
      // Transposed convolutions read segments in reverse order.
      const int64_t at = conv.transposed ? segments.n - 1 - i : i;
      buffer[i] = (at / across * y.tap * columns + at % across * x.tap) * channels;
    }
    segments.offsets = buffer;
  }
};

/// The Source of int8::Blocks for one group of a convolution.
struct Image {
  static constexpr bool panels_first = true;
  const Plan& plan;
  const Int8Gemm& g;
  int64_t group, line_rows, image_lines, images, least_lines, most_lines;
  Segments segments;
  bool prepared;
  const int8::Operand& operand;

  Image(const Plan& p, const Int8Gemm& product, int64_t index)
      : plan(p),
        g(product),
        group(index),
        segments(p.segments),
        prepared(p.prepared),
        operand(int8::kernels().rows[int8::kBytes].operand) {
    const int64_t tiles = ceil_div(g.m, int8::Kind(g.b, g.k).tile_rows(segments));
    line_rows = p.flat ? ceil_div(g.m, tiles) : p.x.out;
    images = p.flat ? 1 : p.conv.batch;
    image_lines = p.flat ? ceil_div(g.m, line_rows) : p.y.out;
    const Size line_bytes =
        p.flat ? Size(line_rows) * row_bytes() : Size(p.y.step) * p.columns * p.channels * width();
    const int64_t blocks = ceil_div(line_bytes * image_lines, kBlockBytes).value_or(image_lines);
    most_lines = ceil_div(image_lines, std::min(blocks, image_lines));
    const int64_t shared = p.direct ? 0 : (p.y.kernel - 1) * p.y.tap / p.y.step;
    least_lines = std::clamp<int64_t>(shared / kMostShared, 1, image_lines);
    most_lines = std::max(most_lines, least_lines);
  }
  Size bytes(int64_t n) const {
    if (plan.direct) return prepared ? Size(n) * line_rows * row_bytes() : 0;
    return copied_bytes(n) * width();
  }

  int8::Lines lines(int64_t image, int64_t first, int64_t n, int8_t* buffer) const {
    const int64_t pitch = plan.columns * plan.channels;
    const int64_t line_stride = plan.flat ? line_rows * g.lda : plan.y.step * pitch;
    const int64_t row_stride = plan.flat ? g.lda : plan.x.step * plan.channels;
    const int64_t line = image * image_lines + first;
    if (plan.direct) {
      const int8_t* const a =
          g.a + image * plan.y.in * pitch + first * line_stride +
          (plan.flat ? 0 : (plan.y.base * plan.columns + plan.x.base) * plan.channels) +
          group * plan.conv.group_in;
      if (!prepared) return {a, line_stride, row_stride, line};
      const int64_t rows = std::min(n * line_rows, g.m - first * line_rows);
      for (int64_t r = 0; r < rows; ++r) {
        operand.prepare_tile(a + r * g.lda, 0, segments.bytes,
                             reinterpret_cast<uint8_t*>(buffer + r * row_bytes()));
      }
      return {buffer, line_rows * row_bytes(), row_bytes(), line};
    }
    // The image is copied to the last bytes of the buffer, and prepared to all of it.
    const int64_t size = copied_bytes(n).value();
    int8_t* const copied = buffer + (width() - 1) * size;
    copy(image, first, n, copied);
    if (prepared) operand.prepare_tile(copied, 0, size, reinterpret_cast<uint8_t*>(buffer));
    return {buffer, line_stride * width(), row_stride * width(), line};
  }
  const int8_t* tile(const int8_t* a, int64_t&, int64_t, int8_t*) const { return a; }

  int64_t width() const { return prepared ? operand.tile_element : 1; }  // bytes of an element
  /// The distance between rows of a flat convolution. Prepared rows are a cache line longer than
  /// their elements, because copies at multiples of a large power of two would evict one another.
  int64_t row_bytes() const { return prepared ? width() * segments.bytes + kLine : g.lda; }
  Size copied_bytes(int64_t n) const {
    // Quads may go on behind the last segment.
    return Size(plan.y.extent(n)) * plan.columns * plan.channels + 4;
  }
  /// Copies what lines [first, first + n) of outputs read, padding included, to `to`.
  void copy(int64_t image, int64_t first, int64_t n, int8_t* to) const {
    const AxisTaps &y = plan.y, &x = plan.x;
    const int64_t pitch = plan.columns * plan.channels, all = plan.conv.groups * plan.channels;
    const int64_t zero = g.rows[image * g.m / plan.conv.batch / g.rows_share].zero_point;
    const int64_t rows = y.extent(n);
    // The part that lies inside of the image.
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

int64_t panels_of(const Int8Conv& conv) {
  return ceil_div(conv.group_out, int8::kernels().rows[int8::kBytes].columns);
}

/// The layout of a packed filter: the panels of all groups, then their columns.
struct Packing {
  Size group_bytes, weights_bytes, columns, bytes;

  Packing(const Int8Conv& conv, const Segments& s) {
    group_bytes = int8::panel_bytes(int8::kernels(), s) * panels_of(conv);
    weights_bytes = round_up(group_bytes * conv.groups, kLine);
    columns = int8::gives_bytes(conv.product) ? Size(conv.groups) * panels_of(conv) : 0;
    bytes = weights_bytes + columns * sizeof(int8::ColumnRequantization);
  }
  bool is_sound(const Int8Conv& conv) const {
    const Size filter = Size(conv.groups) * conv.group_out * conv.product.k;
    return bytes.within(max(filter * kMostGrowth, kSmallFilter).value_or(0));
  }
};

/// Returns the weights from row j0 on. If their elements are not contiguous, copies n rows to
/// `buffer`.
Int8Weights rows_of(const Int8Conv& conv, Int8Weights w, int64_t j0, int64_t n, uint8_t* buffer) {
  w.data += j0 * w.row_bytes;
  if (conv.filter_step == 1) return w;
  const int64_t k = conv.product.k;
  for (int64_t j = 0; j < n; ++j) {
    const uint8_t* const from = w.data + j * w.row_bytes;
    for (int64_t p = 0; p < k; ++p) buffer[j * k + p] = from[p * conv.filter_step];
  }
  w.data = buffer;
  w.row_bytes = k;
  return w;
}

}  // namespace

bool Int8Filter::resize(Size bytes) {
  const Size whole = round_up(bytes, kLine);
  if (!whole.fits<size_t>()) return false;
  data_.reset(static_cast<uint8_t*>(
      std::aligned_alloc(static_cast<size_t>(kLine), static_cast<size_t>(whole.value()))));
  return data_ != nullptr;
}

Int8Gemm Int8Conv::of_group(int64_t group) const {
  Int8Gemm g = product;
  const int64_t first = group * g.n;
  g.m = batch * axis[0].out * axis[1].out;
  g.lda = groups * group_in;
  g.rows_share *= axis[0].out * axis[1].out;
  g.b.data += first * g.b.row_bytes;
  g.b.scales += first;
  g.sums += first;
  if (g.bias != nullptr) g.bias += first;
  if (g.integer_bias != nullptr) g.integer_bias += first;
  const bool bytes = int8::gives_bytes(g);
  g.c = static_cast<uint8_t*>(g.c) + first * (bytes ? 1 : g.out == Int8Gemm::Out::F32 ? 4 : 2);
  return g;
}

bool Int8Conv::is_depthwise() const {
  return group_in == 1 && group_out == 1 && !transposed && int8::gives_bytes(product);
}

bool Int8Conv::has_sizes() const {
  Size work = Size(batch) * groups * group_in * group_out;
  bool positive = std::min({batch, groups, group_in, group_out}) > 0;
  for (const ConvAxis& a : axis) {
    positive &= has_positions(a, transposed) && std::min({a.in, a.kernel, a.out}) > 0;
    work *= Size(a.kernel) * a.out;
  }
  return positive && work.ok();
}

bool Int8Conv::pack(Int8Filter& filter) const {
  filter.data_.reset();
  filter.phases_.reset();
  filter.made_ = has_sizes() && (is_depthwise() ? pack_depthwise(filter)
                                 : has_phases() ? pack_phases(filter)
                                                : pack_panels(filter));
  return filter.made_;
}

bool Int8Conv::pack_panels(Int8Filter& filter) const {
  const int8::Kernels& kernels = int8::kernels();
  const int8::Row& row = kernels.rows[int8::kBytes];
  const Plan plan(*this);
  const Packing packing(*this, plan.segments);
  if (!packing.is_sound(*this)) return true;
  std::unique_ptr<uint8_t[]> rows;
  if (filter_step != 1) {
    rows.reset(new (std::nothrow) uint8_t[static_cast<size_t>(row.columns * product.k)]);
    if (rows == nullptr) return false;
  }
  if (!filter.resize(packing.bytes)) return false;
  uint8_t* to = filter.data_.get();
  auto* columns = reinterpret_cast<int8::ColumnRequantization*>(to + packing.weights_bytes.value());
  const int offset = row.operand.tile_offset - (product.unsigned_a ? 128 : 0);
  for (int64_t g = 0; g < groups; ++g) {
    const Int8Gemm of = of_group(g);
    for (int64_t j = 0; j < group_out; j += row.columns) {
      const int64_t n = std::min<int64_t>(row.columns, group_out - j);
      int8::pack_panel(row, rows_of(*this, of.b, j, n, rows.get()), plan.segments, 0, n, to);
      to += int8::panel_bytes(kernels, plan.segments).value();
      if (packing.columns.value() > 0) new (columns++) int8::ColumnRequantization(of, offset, j, n);
    }
  }
  return true;
}

bool Int8Conv::run(const Int8Filter& filter, Scratch& scratch) const {
  if (!has_sizes()) return false;
  const Scratch::Frame frame(scratch);
  const bool in_phases = filter.phases_ != nullptr;
  if ((filter.data() == nullptr && !in_phases) ||
      is_sparse({axis, 2, transposed, batch, groups, group_in, group_out})) {
    return run_sparse(scratch);
  }
  if (in_phases) return run_phases(filter, scratch);
  if (is_depthwise()) return run_depthwise(filter, scratch);
  Plan plan(*this);
  auto* const offsets = scratch.array<int64_t>(plan.segments.n);
  if (offsets == nullptr) return false;
  plan.set_offsets(offsets);
  const Packing packing(*this, plan.segments);
  const int64_t of_group_bytes = packing.group_bytes.value();
  const auto* columns = reinterpret_cast<const int8::ColumnRequantization*>(
      filter.data() + packing.weights_bytes.value());
  for (int64_t group = 0; group < groups; ++group) {
    const Int8Gemm of = of_group(group);
    const Image image(plan, of, group);
    int8::Packed packed{filter.data() + group * of_group_bytes, nullptr};
    if (int8::gives_bytes(of)) packed.columns = columns + group * panels_of(*this);
    if (!int8::Blocks<Image>(of, image, packed).run(scratch)) return false;
  }
  return true;
}

}  // namespace executorch::cpu
