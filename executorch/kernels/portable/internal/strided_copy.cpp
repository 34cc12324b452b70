#include <executorch/kernels/portable/internal/strided_copy.h>

#include <executorch/kernels/portable/internal/cast.h>

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <utility>

namespace torch::executor::native::internal {
namespace {

/// Copies n elements; steps are the distances between elements in bytes.
using CopyRun = void (*)(const char* src, int64_t src_step, char* dst, int64_t dst_step, int64_t n);

template <class T>
void copy_elements(const char* src, int64_t src_step, char* dst, int64_t dst_step, int64_t n) {
  constexpr int64_t kSize = sizeof(T);
  const T* from = reinterpret_cast<const T*>(src);
  T* to = reinterpret_cast<T*>(dst);
  if (dst_step == kSize && src_step == kSize) {
    // Not memcpy: a damaged program may have planned both into the same bytes.
    std::memmove(dst, src, static_cast<size_t>(n) * sizeof(T));
  } else if (dst_step == kSize && src_step == 0) {
    std::fill_n(to, n, *from);
  } else if (dst_step == kSize) {
    const int64_t step = src_step / kSize;
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
  } else {
    const int64_t from_step = src_step / kSize, to_step = dst_step / kSize;
    for (int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

CopyRun copy_run(size_t element_size) {
  CopyRun run = nullptr;
  with_element_size(element_size, [&](auto tag) { run = copy_elements<decltype(tag)>; });
  return run;
}

struct ConvertRun {
  ScalarType from;
  ScalarType to;
  int64_t from_size;
  int64_t to_size;

  void operator()(const char* src, int64_t src_step, char* dst, int64_t dst_step, int64_t n) const {
    convert(src, from, src_step / from_size, dst, to, dst_step / to_size, n);
  }
};

// A tile of 32 x 32 elements of at most 8 bytes fits the first-level cache on both sides.
constexpr int64_t kTile = 32;

int64_t magnitude(int64_t stride) {
  return stride < 0 ? -stride : stride;
}

bool is_row_major(const Layout& layout) {
  int64_t expected = 1;
  for (int64_t d = layout.shape.ndim - 1; d >= 0; --d) {
    if (layout.shape.sizes[d] != 1 && layout.strides[d] != expected) return false;
    expected *= layout.shape.sizes[d];
  }
  return true;
}

// Position in a layout that advances in row-major order.
struct Cursor {
  const Layout& layout;
  int64_t position[kTensorDimensionLimit] = {};
  int64_t offset;

  Cursor(const Layout& of, int64_t begin) : layout(of), offset(of.offset) {
    for (int64_t d = of.shape.ndim - 1; d >= 0; --d) {
      position[d] = begin % of.shape.sizes[d];
      begin /= of.shape.sizes[d];
      offset += position[d] * of.strides[d];
    }
  }
  int64_t left_in_row() const {
    const int64_t last = layout.shape.ndim - 1;
    return last < 0 ? 1 : layout.shape.sizes[last] - position[last];
  }
  int64_t step() const {
    return layout.shape.ndim == 0 ? 0 : layout.strides[layout.shape.ndim - 1];
  }
  // n <= left_in_row()
  void advance(int64_t n) {
    for (int64_t d = layout.shape.ndim - 1; d >= 0; --d, n = 1) {
      position[d] += n;
      offset += n * layout.strides[d];
      if (position[d] < layout.shape.sizes[d]) return;
      offset -= position[d] * layout.strides[d];
      position[d] = 0;
    }
  }
};

}  // namespace

Layout::Layout(const Tensor& t) : shape(t) {
  int64_t contiguous = 1;
  for (int64_t d = shape.ndim - 1; d >= 0; --d) {
    strides[d] = t.strides().data() != nullptr ? t.strides()[d] : contiguous;
    contiguous *= shape.sizes[d];
  }
}

bool convertible(ScalarType from, ScalarType to) {
  return from == to || (is_real(from) && is_real(to));
}

void copy_layout(const void* src, ScalarType src_type, const Layout& from, void* dst,
                 ScalarType dst_type, const Layout& to) {
  StridedLoop loop;
  for (int64_t d = 0; d < to.shape.ndim; ++d) {
    loop.add(to.shape.sizes[d], from.strides[d], to.strides[d]);
  }
  const int64_t src_size = static_cast<int64_t>(elementSize(src_type));
  const int64_t dst_size = static_cast<int64_t>(elementSize(dst_type));
  loop.copy(static_cast<const char*>(src) + from.offset * src_size, src_type,
            static_cast<char*>(dst) + to.offset * dst_size, dst_type);
}

void Layout::erase(int64_t dim) {
  for (int64_t d = dim; d + 1 < shape.ndim; ++d) {
    shape.sizes[d] = shape.sizes[d + 1];
    strides[d] = strides[d + 1];
  }
  --shape.ndim;
}

bool select_in(KernelRuntimeContext& ctx, const char* op, int64_t dim, int64_t index,
               Layout& view) {
  ET_REQUIRE(ctx, view.shape.ndim > 0, InvalidArgument, false,
             "%s: a 0-d tensor has nothing to select", op);
  if (!normalize_dim(ctx, op, dim, view.shape.ndim)) return false;
  const int64_t extent = view.shape.sizes[dim];
  ET_REQUIRE(ctx, index >= -extent && index < extent, InvalidArgument, false,
             "%s: index %" PRId64 " is out of range for dim %" PRId64 " of shape %s", op, index,
             dim, ShapeText(view.shape.ref()).c_str());
  view.offset += (index < 0 ? index + extent : index) * view.strides[dim];
  view.erase(dim);
  return true;
}

bool slice_in(KernelRuntimeContext& ctx, const char* op, int64_t dim, std::optional<int64_t> start,
              std::optional<int64_t> end, int64_t step, Layout& view) {
  ET_REQUIRE(ctx, view.shape.ndim > 0, InvalidArgument, false,
             "%s: a 0-d tensor has nothing to slice", op);
  ET_REQUIRE(ctx, step > 0, InvalidArgument, false,
             "%s: step must be positive; the value is %" PRId64, op, step);
  if (!normalize_dim(ctx, op, dim, view.shape.ndim)) return false;
  const int64_t extent = view.shape.sizes[dim];
  const auto clamped = [extent](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  const int64_t begin = clamped(start.value_or(0));
  const int64_t length = std::max<int64_t>(clamped(end.value_or(extent)) - begin, 0);
  view.offset += length > 0 ? begin * view.strides[dim] : 0;
  view.shape.sizes[dim] = static_cast<SizesType>(length / step + (length % step != 0));
  view.strides[dim] *= view.shape.sizes[dim] > 1 ? step : 1;
  return true;
}

bool shape_of(KernelRuntimeContext& ctx, const char* op, ArrayRef<int64_t> size, Shape& shape) {
  bool valid = static_cast<int64_t>(size.size()) <= kMaxDims;
  for (int64_t extent : size) valid = valid && extent >= 0 && extent <= INT32_MAX;
  ET_REQUIRE(ctx, valid, InvalidArgument, false, "%s: size %s is not the shape of a tensor", op,
             ShapeText(size).c_str());
  shape = Shape();
  for (int64_t extent : size) shape.push(extent);
  return true;
}

bool copy_view(KernelRuntimeContext& ctx, const char* op, const Tensor& self, const Layout& view,
               Tensor& out) {
  ET_REQUIRE(ctx, self.scalar_type() == out.scalar_type(), InvalidArgument, false,
             "%s: out has dtype %s; the input's dtype %s was expected", op,
             executorch::runtime::toString(out.scalar_type()),
             executorch::runtime::toString(self.scalar_type()));
  if (!resize_out(ctx, op, out, view.shape)) return false;
  copy_layout(self.const_data_ptr(), self.scalar_type(), view, out.mutable_data_ptr(),
              out.scalar_type(), Layout(out));
  return true;
}

void copy_in_order(const void* src, const Layout& from, int64_t src_begin, void* dst,
                   const Layout& to, int64_t dst_begin, int64_t count, size_t element_size) {
  if (count == 0) return;
  const CopyRun run = copy_run(element_size);
  const int64_t size = static_cast<int64_t>(element_size);
  if (is_row_major(from) && is_row_major(to)) {
    run(static_cast<const char*>(src) + (from.offset + src_begin) * size, size,
        static_cast<char*>(dst) + (to.offset + dst_begin) * size, size, count);
    return;
  }
  Cursor read(from, src_begin);
  Cursor write(to, dst_begin);
  while (count > 0) {
    const int64_t n = std::min({count, read.left_in_row(), write.left_in_row()});
    run(static_cast<const char*>(src) + read.offset * size, read.step() * size,
        static_cast<char*>(dst) + write.offset * size, write.step() * size, n);
    read.advance(n);
    write.advance(n);
    count -= n;
  }
}

void fill(const Scalar& value, Tensor& out) {
  // Every dim order is dense, so the elements are one run.
  if (value.isBoolean() || value.isIntegral(false)) {
    const int64_t v = scalar_as<int64_t>(value);
    convert(&v, ScalarType::Long, 0, out.mutable_data_ptr(), out.scalar_type(), 1, out.numel());
  } else {
    const double v = scalar_as<double>(value);
    convert(&v, ScalarType::Double, 0, out.mutable_data_ptr(), out.scalar_type(), 1, out.numel());
  }
}

// Drops dimensions of one position, sorts the rest by falling destination stride and merges
// neighbours that are one dimension on both sides. Returns the number left; 0 copies one element.
size_t StridedLoop::simplify(Dim (&dims)[kMaxLoops]) const {
  size_t n = 0;
  for (size_t d = 0; d < n_dims_; ++d) {
    if (dims_[d].size == 1) continue;
    size_t at = n++;
    for (; at > 0 && magnitude(dims[at - 1].dst) < magnitude(dims_[d].dst); --at) {
      dims[at] = dims[at - 1];
    }
    dims[at] = dims_[d];
  }
  size_t last = 0;
  for (size_t d = 1; d < n; ++d) {
    Dim& outer = dims[last];
    const Dim& inner = dims[d];
    if (outer.src == inner.src * inner.size && outer.dst == inner.dst * inner.size) {
      outer = {outer.size * inner.size, inner.src, inner.dst};
    } else {
      dims[++last] = inner;
    }
  }
  return n == 0 ? 0 : last + 1;
}

// Copies the two innermost dimensions; byte strides. Where the source runs fastest along `column`
// they are walked in tiles, otherwise row by row.
template <class Run>
void StridedLoop::copy_plane(const char* src, char* dst, Dim row, Dim column, const Run& run) {
  const bool tiled = column.src != 0 && magnitude(column.src) < magnitude(row.src);
  if (tiled && row.size < kTile && row.size < column.size) std::swap(row, column);
  const int64_t row_step = tiled ? kTile : row.size;
  for (int64_t c0 = 0; c0 < column.size; c0 += kTile) {
    const int64_t c1 = std::min(c0 + kTile, column.size);
    for (int64_t r = 0; r < row.size; r += row_step) {
      const int64_t length = std::min(row_step, row.size - r);
      for (int64_t c = c0; c < c1; ++c) {
        run(src + c * column.src + r * row.src, row.src, dst + c * column.dst + r * row.dst,
            row.dst, length);
      }
    }
  }
}

template <class Run>
void StridedLoop::walk(const char* src, size_t src_element, char* dst, size_t dst_element,
                       const Run& run) const {
  for (size_t d = 0; d < n_dims_; ++d) {
    if (dims_[d].size == 0) return;
  }
  Dim dims[kMaxLoops];
  const size_t n = simplify(dims);
  for (size_t d = 0; d < n; ++d) {
    dims[d].src *= static_cast<int64_t>(src_element);
    dims[d].dst *= static_cast<int64_t>(dst_element);
  }
  const Dim row = n > 0 ? dims[n - 1] : Dim{1, 0, 0};
  Dim column = {1, 0, 0};
  if (n > 1) {  // the source's fastest dimension of the others moves next to the row
    size_t fastest = n - 2;
    for (size_t d = 0; d < n - 2; ++d) {
      if (dims[d].src != 0 && magnitude(dims[d].src) < magnitude(dims[fastest].src)) fastest = d;
    }
    std::rotate(dims + fastest, dims + fastest + 1, dims + n - 1);
    column = dims[n - 2];
  }
  const size_t n_outer = n > 2 ? n - 2 : 0;
  int64_t position[kMaxLoops] = {};
  for (;;) {
    copy_plane(src, dst, row, column, run);
    size_t d = n_outer;
    for (; d > 0; --d) {
      const Dim& outer = dims[d - 1];
      src += outer.src;
      dst += outer.dst;
      if (++position[d - 1] < outer.size) break;
      src -= outer.src * outer.size;
      dst -= outer.dst * outer.size;
      position[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

void StridedLoop::copy(const void* src, ScalarType src_type, void* dst, ScalarType dst_type) const {
  const size_t src_size = elementSize(src_type), dst_size = elementSize(dst_type);
  const char* from = static_cast<const char*>(src);
  char* to = static_cast<char*>(dst);
  if (src_type == dst_type) {
    walk(from, src_size, to, dst_size, copy_run(src_size));
  } else {
    walk(from, src_size, to, dst_size,
         ConvertRun{src_type, dst_type, static_cast<int64_t>(src_size),
                    static_cast<int64_t>(dst_size)});
  }
}

}  // namespace torch::executor::native::internal
