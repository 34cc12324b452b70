/// Windows over NHWC images that are reduced to a pixel, and images resized. All in float, but for
/// the largest of integers that mean the same.
#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/planar.h>
#include <executorch/backends/xnnpack/runtime/runs.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>

namespace executorch::backends::xnnpack {
namespace {

using Kind = fb_xnnpack::XNodeUnion;

constexpr int64_t kElementsPerTask = 16384;
constexpr uint32_t kAlignCorners = 8;
constexpr int64_t kNarrow = 16;  // channels of images whose pixels are handled by rows

/// Calls f(pixel, image, y, x, c0, n, result) for runs of channels of the pixels of `out`; what f
/// leaves in result[0, n) is bounded and stored.
template <class F>
bool for_each_run(const Value& out, const Node& node, int64_t cost, const F& f) {
  const int64_t height = out.shape[1], width = out.shape[2], channels = out.shape[3];
  const int64_t grain =
      std::max<int64_t>(1, kElementsPerTask / channels / std::max<int64_t>(cost, 1));
  cpu::parallel_for(out.shape[0] * height * width, grain, [&](int64_t begin, int64_t end) {
    float room[kRun];
    for (int64_t pixel = begin; pixel < end; ++pixel) {
      for (int64_t c = 0; c < channels; c += kRun) {
        const int64_t n = std::min(kRun, channels - c), first = pixel * channels + c;
        float* to = place_of_run(out, first, room);
        f(pixel / width / height, pixel / width % height, pixel % width, c, n, to);
        clamp_run(to, n, node.low, node.high);
        write_run(out, first, n, to);
      }
    }
  });
  return true;
}

int64_t element(const Shape& x, int64_t image, int64_t in_y, int64_t in_x, int64_t c) {
  return ((image * x[1] + in_y) * x[2] + in_x) * x[3] + c;
}

/// Taps [begin, end) of a window along an axis that lie inside the image, and where the first
/// reads.
struct Taps {
  int64_t begin, end, first, step;

  Taps(const Window& w, int axis, int64_t out, int64_t extent) : step(w.dilation[axis]) {
    const int64_t start = out * w.stride[axis] - w.before[axis];
    begin = start >= 0 ? 0 : (-start + step - 1) / step;
    end = start >= extent ? 0 : std::min(w.size[axis], (extent - start + step - 1) / step);
    end = std::max(begin, end);
    first = start;
  }
  int64_t source(int64_t tap) const { return first + tap * step; }
  int64_t count() const { return end - begin; }
  template <class F>
  void each(const F& f) const {
    for (int64_t i = begin; i < end; ++i) f(source(i));
  }
};

/// Calls f(y, x) for the taps' places. An image without columns may have any number of rows.
template <class F>
void each_place(const Taps& rows, const Taps& columns, const F& f) {
  if (columns.count() == 0) return;
  rows.each([&](int64_t y) { columns.each([&](int64_t x) { f(y, x); }); });
}

void add_run(const float* x, int64_t n, float* sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] += x[i];
}
void max_run(const float* x, int64_t n, float* most) {
  // The result is NaN if one of the operands is.
  for (int64_t i = 0; i < n; ++i) most[i] = x[i] > most[i] || x[i] != x[i] ? x[i] : most[i];
}

Error check_pooling(const Graph& graph, const Node& node) {
  const Value &x = graph.in(node), &y = graph.out(node);
  ET_XNN_REQUIRE(x.shape.rank == 4 && y.shape.rank == 4, node, "ranks %u and %u, expected 4",
                 x.shape.rank, y.shape.rank);
  ET_XNN_REQUIRE(has_runs(x.type) && has_runs(y.type), node, "%s to %s", name_of(x.type),
                 name_of(y.type));
  return Error::Ok;
}

bool infer_pooling(Graph& graph, const Node& node) {
  const Shape& x = graph.in(node).shape;
  const Window& w = node.window;
  const ImageDims dims(node);
  Shape y = x;
  for (size_t axis = 0; axis < 2; ++axis) {
    const cpu::Size rest =
        cpu::Size(x[dims.h + axis]) + w.before[axis] + w.after[axis] - w.reach(axis);
    if (!rest.within(INT64_MAX)) return false;
    y[dims.h + axis] = rest.value() / w.stride[axis] + 1;
  }
  graph.out(node).shape = y;
  if (node.n_outputs > 1) graph.out(node, 1).shape = y;
  return true;
}

/// Maxima of the rows of pixels under each row of windows first, then along the row of those.
bool pool_integers(const Value& x, const Value& out, const Node& node, cpu::Scratch& scratch) {
  const int64_t height = out.shape[1], width = out.shape[2], channels = out.shape[3];
  const Window& w = node.window;
  // An image without columns may have any number of rows.
  const bool is_empty = x.shape[2] == 0;
  const int64_t down = is_empty ? 0 : w.taps_inside(0, x.shape[1]);
  const int64_t along = w.taps_inside(1, x.shape[2]);
  const int64_t most_taps = std::max(down, along);
  cpu::Int8Maximum all;
  all.is_unsigned = x.type == Type::quint8;
  all.low = static_cast<uint8_t>(quantize(node.low, out));
  all.high = static_cast<uint8_t>(quantize(node.high, out));
  const cpu::Size row_bytes = cpu::Size(x.shape[2]) * channels;
  constexpr int64_t kPlace = sizeof(void*);
  const cpu::ThreadScratch<const void*> rooms(scratch, row_bytes / kPlace + 1 + most_taps);
  if (!rooms) return false;
  const auto pool = [&](int64_t begin, int64_t end, const void** places) {
    uint8_t* const maxima = reinterpret_cast<uint8_t*>(places + most_taps);
    cpu::Int8Maximum rows = all, pixels = all;
    rows.rows = pixels.rows = places;
    rows.n = row_bytes.value();
    rows.y = maxima;
    pixels.n = channels;
    for (int64_t row = begin; row < end; ++row) {
      rows.n_rows = 0;
      Taps(w, 0, row % height, is_empty ? 0 : x.shape[1]).each([&](int64_t in_y) {
        places[rows.n_rows++] = x.as<uint8_t>() + element(x.shape, row / height, in_y, 0, 0);
      });
      rows.run();
      for (int64_t column = 0; column < width; ++column) {
        pixels.n_rows = 0;
        Taps(w, 1, column, x.shape[2]).each([&](int64_t in_x) {
          places[pixels.n_rows++] = maxima + in_x * channels;
        });
        pixels.y = out.as<uint8_t>() + (row * width + column) * channels;
        pixels.run();
      }
    }
  };
  const cpu::Size cost = row_bytes * down + cpu::Size(width) * channels * along;
  const int64_t grain =
      std::max<int64_t>(1, 8 * kElementsPerTask / std::max<int64_t>(cost.value_or(INT64_MAX), 1));
  rooms.parallel_for(out.shape[0] * height, grain, pool);
  return true;
}

bool run_pooling(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  if ((node.flags & kPlanar) != 0) return run_planar_pooling(graph, node, scratch);
  const Value& x = graph.in(node);
  const Value& out = graph.out(node);
  if (node.kind == Kind::XNNMaxPooling2d && is_affine(x.type) && same_type(x, out)) {
    return pool_integers(x, out, node, scratch);
  }
  const bool average = node.kind == Kind::XNNAvgPooling2d;
  const Window& w = node.window;
  return for_each_run(
      graph.out(node), node, w.size[0] * w.size[1],
      [&](int64_t image, int64_t y, int64_t x_out, int64_t c, int64_t n, float* result) {
        const Taps rows(w, 0, y, x.shape[1]), columns(w, 1, x_out, x.shape[2]);
        float room[kRun];
        std::fill_n(result, n, average ? 0.0f : -std::numeric_limits<float>::infinity());
        each_place(rows, columns, [&](int64_t in_y, int64_t in_x) {
          const int64_t at = element(x.shape, image, in_y, in_x, c);
          (average ? add_run : max_run)(read_run(x, at, n, room), n, result);
        });
        if (!average) return;
        // The divisor counts only the pixels inside the image, not the padding.
        const auto count = static_cast<float>(rows.count() * columns.count());
        for (int64_t i = 0; i < n; ++i) result[i] /= count;
      });
}

bool infer_global_pooling(Graph& graph, const Node& node) {
  const Shape& x = graph.in(node).shape;
  const ImageDims dims(node);
  Shape& y = graph.out(node).shape;
  y = x;
  y[dims.h] = y[dims.w] = 1;
  return x[dims.h] > 0 && x[dims.w] > 0;
}

/// Sums are exact, so that a mean half-way between two integers is rounded as such.
template <class T>
bool average_integers(const Value& x, const Value& y, const Node& node) {
  const int64_t pixels = x.shape[1] * x.shape[2], channels = x.shape[3];
  const float factor = x.scale / y.scale / static_cast<float>(pixels);
  const int64_t zero = pixels * x.zero_point, runs = (channels + kRun - 1) / kRun;
  cpu::Int8Format of = format_of(y);
  of.scale = 1;
  cpu::parallel_for(x.shape[0] * runs, 1, [&](int64_t begin, int64_t end) {
    int32_t sums[kRun];
    float means[kRun];
    for (int64_t run = begin; run < end; ++run) {
      const int64_t image = run / runs, c = run % runs * kRun, n = std::min(kRun, channels - c);
      const T* from = x.as<T>() + image * pixels * channels + c;
      std::fill_n(sums, n, 0);
      for (int64_t i = 0; i < pixels; ++i, from += channels) {
        for (int64_t j = 0; j < n; ++j) sums[j] += from[j];
      }
      for (int64_t j = 0; j < n; ++j) means[j] = static_cast<float>(sums[j] - zero) * factor;
      clamp_run(means, n, node.low / y.scale, node.high / y.scale);
      cpu::quantize(means, n, of, y.as<T>() + image * channels + c);
    }
  });
  return true;
}

bool run_global_pooling(const Graph& graph, const Node& node, cpu::Scratch&) {
  if ((node.flags & kPlanar) != 0) return run_planar_mean(graph, node);
  const Value& x = graph.in(node);
  const Value& y = graph.out(node);
  constexpr int64_t kMostPixels = 1 << 23;  // whose bytes add up in 32 bits
  if (is_affine(x.type) && x.type == y.type && x.shape[1] * x.shape[2] <= kMostPixels) {
    return x.type == Type::qint8 ? average_integers<int8_t>(x, y, node)
                                 : average_integers<uint8_t>(x, y, node);
  }
  const int64_t pixels = x.shape[1] * x.shape[2];
  return for_each_run(graph.out(node), node, pixels,
                      [&](int64_t image, int64_t, int64_t, int64_t c, int64_t n, float* result) {
                        float room[kRun];
                        std::fill_n(result, n, 0.0f);
                        for (int64_t i = 0; i < pixels; ++i) {
                          const int64_t first = (image * pixels + i) * x.shape[3] + c;
                          add_run(read_run(x, first, n, room), n, result);
                        }
                        for (int64_t i = 0; i < n; ++i) result[i] /= static_cast<float>(pixels);
                      });
}

Error check_arg_max(const Graph& graph, const Node& node) {
  const Value& index = graph.out(node, 1);
  const Window& w = node.window;
  ET_XNN_REQUIRE(index.type == Type::int32 && index.shape.rank == 4, node,
                 "indices of %s and rank %u, expected int32 and 4", name_of(index.type),
                 index.shape.rank);
  ET_XNN_REQUIRE(w.before[0] + w.before[1] + w.after[0] + w.after[1] == 0, node,
                 "padding is not supported");
  return check_pooling(graph, node);
}

bool run_arg_max(const Graph& graph, const Node& node, cpu::Scratch&) {
  const Value& x = graph.in(node);
  auto* indices = graph.out(node, 1).as<int32_t>();
  const Window& w = node.window;
  const Shape& out = graph.out(node).shape;
  return for_each_run(
      graph.out(node), node, w.size[0] * w.size[1],
      [&](int64_t image, int64_t y, int64_t x_out, int64_t c, int64_t n, float* result) {
        int32_t* index = indices + element(out, image, y, x_out, c);
        float room[kRun];
        for (int64_t tap = 0; tap < w.size[0] * w.size[1]; ++tap) {
          const int64_t at = element(x.shape, image, y * w.size[0] + tap / w.size[1],
                                     x_out * w.size[1] + tap % w.size[1], c);
          const float* v = read_run(x, at, n, room);
          for (int64_t i = 0; i < n; ++i) {
            // The first of the largest, and the first NaN.
            const bool is_new =
                tap == 0 || v[i] > result[i] || (v[i] != v[i] && result[i] == result[i]);
            if (!is_new) continue;
            result[i] = v[i];
            index[i] = static_cast<int32_t>(tap);
          }
        }
      });
}

Error check_resize(const Graph& graph, const Node& node) {
  ET_XNN_REQUIRE(node.list[0] >= 1 && node.list[1] >= 1, node, "to [%u, %u]", node.list[0],
                 node.list[1]);
  ET_XNN_REQUIRE((node.flags & ~kAlignCorners) == 0, node, "unknown flags 0x%x", node.flags);
  return check_pooling(graph, node);
}

bool infer_resize(Graph& graph, const Node& node) {
  const Shape& x = graph.in(node).shape;
  const ImageDims dims(node);
  Shape y = x;
  y[dims.h] = node.list[0];
  y[dims.w] = node.list[1];
  graph.out(node).shape = y;
  return x[dims.h] > 0 && x[dims.w] > 0;
}

/// Resizes images of few channels by rows, because their pixels are too short to be read and
/// written one by one. Each row of the image is resized along its width once, and kept while rows
/// of the result need it. Several rows of the result are written at a time if they are short.
class RowResizing {
 public:
  RowResizing(const Value& from, const Value& to, const Resized& down, const Resized& across,
              const Node& node)
      : from_(from),
        to_(to),
        x_(from.shape),
        y_(to.shape),
        down_(down),
        across_(across),
        node_(node) {}

  bool run(cpu::Scratch& scratch) {
    const int64_t n_rows = y_[0] * y_[1];
    const int64_t together = std::max<int64_t>(1, kRun / std::max<int64_t>(row_, 1));
    const int64_t n = (n_rows + together - 1) / together;
    const cpu::ThreadScratch<float> rooms(scratch, in_row_ + cpu::Size(2 + together) * row_);
    columns_ = scratch.array<Between>(y_[2]);
    if (!rooms || columns_ == nullptr) return false;
    for (int64_t i = 0; i < y_[2]; ++i) columns_[i] = across_.at(i);
    const int64_t grain =
        std::max<int64_t>(1, kElementsPerTask / 8 / std::max<int64_t>(together * row_, 1));
    rooms.parallel_for(n, grain, [&](int64_t begin, int64_t end, float* room) {
      Rows rows = {room, {room + in_row_, room + in_row_ + row_}, {-1, -1}};
      for (int64_t i = begin * together; i < std::min(end * together, n_rows); i += together) {
        compute(rows, i, std::min(i + together, n_rows), room + in_row_ + 2 * row_);
      }
    });
    return true;
  }

 private:
  /// Two rows of the image, resized along their width, and where they were read.
  struct Rows {
    float* read;
    float* resized[2];
    int64_t at[2];
  };

  /// Rows [begin, end) of all images of the result.
  void compute(Rows& rows, int64_t begin, int64_t end, float* room) const {
    float* const results = place_of_run(to_, begin * row_, room);
    float* to = results;
    for (int64_t i = begin; i < end; ++i, to += row_) {
      const Between between = down_.at(i % y_[1]);
      const int64_t first = i / y_[1] * x_[1];
      if (first + between.low == rows.at[1]) {
        std::swap(rows.resized[0], rows.resized[1]);
        std::swap(rows.at[0], rows.at[1]);
      }
      resize(rows, 0, first + between.low);
      resize(rows, 1, first + between.high);
      const float *const top = rows.resized[0], *const bottom = rows.resized[1];
      for (int64_t j = 0; j < row_; ++j) to[j] = top[j] + (bottom[j] - top[j]) * between.weight;
    }
    clamp_run(results, (end - begin) * row_, node_.low, node_.high);
    write_run(to_, begin * row_, (end - begin) * row_, results);
  }

  void resize(Rows& rows, int which, int64_t at) const {
    if (rows.at[which] == at) return;
    rows.at[which] = at;
    const float* const from = read_run(from_, at * in_row_, in_row_, rows.read);
    float* to = rows.resized[which];
    for (int64_t i = 0; i < y_[2]; ++i) {
      const Between& column = columns_[i];
      const float *const low = from + column.low * y_[3], *const high = from + column.high * y_[3];
      for (int64_t c = 0; c < y_[3]; ++c) *to++ = low[c] + (high[c] - low[c]) * column.weight;
    }
  }

  const Value &from_, &to_;
  const Shape &x_, &y_;
  const Resized &down_, &across_;
  const Node& node_;
  const int64_t in_row_ = x_[2] * x_[3], row_ = y_[2] * y_[3];
  Between* columns_ = nullptr;  // by position along the width of the result
};

bool run_resize(const Graph& graph, const Node& node, cpu::Scratch& scratch) {
  const Value& x = graph.in(node);
  const Value& out = graph.out(node);
  const bool corners = (node.flags & kAlignCorners) != 0;
  const ImageDims dims(node);
  const Resized down(out.shape[dims.h], x.shape[dims.h], corners);
  const Resized across(out.shape[dims.w], x.shape[dims.w], corners);
  const cpu::Scratch::Frame frame(scratch);
  if (dims.c == 1) return run_planar_resize(graph, node, down, across, scratch);
  // Reading a run of a row costs about as much as a pixel.
  if (x.shape[3] < kNarrow && x.shape[2] * x.shape[3] <= kRun * out.shape[2]) {
    return RowResizing(x, out, down, across, node).run(scratch);
  }
  return for_each_run(
      out, node, 4,
      [&](int64_t image, int64_t y, int64_t x_out, int64_t c, int64_t n, float* result) {
        const Between rows = down.at(y), columns = across.at(x_out);
        float room[4][kRun];
        const float* corner[4];
        for (int i = 0; i < 4; ++i) {
          corner[i] = read_run(x,
                               element(x.shape, image, i < 2 ? rows.low : rows.high,
                                       i % 2 == 0 ? columns.low : columns.high, c),
                               n, room[i]);
        }
        for (int64_t i = 0; i < n; ++i) {
          const float top = corner[0][i] + (corner[1][i] - corner[0][i]) * columns.weight;
          const float bottom = corner[2][i] + (corner[3][i] - corner[2][i]) * columns.weight;
          result[i] = top + (bottom - top) * rows.weight;
        }
      });
}

constexpr Operation pooling(Kind kind) {
  return {.kind = kind,
          .form = Form::Pooling,
          .check = check_pooling,
          .infer = infer_pooling,
          .run = run_pooling};
}

constexpr Operation kOperations[] = {
    pooling(Kind::XNNAvgPooling2d),
    pooling(Kind::XNNMaxPooling2d),
    {.kind = Kind::XNNGlobalAvgPooling2d,
     .form = Form::GlobalPooling,
     .check = check_pooling,
     .infer = infer_global_pooling,
     .run = run_global_pooling},
    {.kind = Kind::XNNArgMaxPooling2d,
     .form = Form::ArgMaxPooling,
     .check = check_arg_max,
     .infer = infer_pooling,
     .run = run_arg_max},
    {.kind = Kind::XNNStaticResizeBilinear2D,
     .form = Form::Resize,
     .check = check_resize,
     .infer = infer_resize,
     .run = run_resize},
};

}  // namespace

Operations pooling_operations() {
  return kOperations;
}

}  // namespace executorch::backends::xnnpack
