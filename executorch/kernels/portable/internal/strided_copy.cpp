#include <executorch/kernels/portable/internal/strided_copy.h>

#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/internal/cast.h>

#include <algorithm>
#include <cinttypes>

namespace torch::executor::native::internal {
namespace {

int64_t magnitude(int64_t stride) {
  return stride < 0 ? -stride : stride;
}

bool is_row_major(const Layout& layout) {
  int64_t expected = 1;
  for (int64_t d = layout.shape.ndim() - 1; d >= 0; --d) {
    if (layout.shape[d] != 1 && layout.strides[d] != expected) return false;
    expected *= layout.shape[d];
  }
  return true;
}

// A position in a layout, which advances in row-major order.
struct Cursor {
  const Layout& layout;
  int64_t position[kTensorDimensionLimit] = {};
  int64_t offset;

  Cursor(const Layout& of, int64_t begin) : layout(of), offset(of.offset) {
    for (int64_t d = of.shape.ndim() - 1; d >= 0; --d) {
      position[d] = begin % of.shape[d];
      begin /= of.shape[d];
      offset += position[d] * of.strides[d];
    }
  }
  int64_t left_in_row() const {
    const int64_t last = layout.shape.ndim() - 1;
    return last < 0 ? 1 : layout.shape[last] - position[last];
  }
  int64_t step() const {
    return layout.shape.ndim() == 0 ? 0 : layout.strides[layout.shape.ndim() - 1];
  }
  // n <= left_in_row()
  void advance(int64_t n) {
    for (int64_t d = layout.shape.ndim() - 1; d >= 0; --d, n = 1) {
      position[d] += n;
      offset += n * layout.strides[d];
      if (position[d] < layout.shape[d]) return;
      offset -= position[d] * layout.strides[d];
      position[d] = 0;
    }
  }
};

}  // namespace

Layout::Layout(const Tensor& t) : shape(t) {
  if (t.numel() == 0) return;
  int64_t contiguous = 1;
  for (int64_t d = shape.ndim() - 1; d >= 0; --d) {
    strides[d] = t.strides().data() != nullptr ? t.strides()[d] : contiguous;
    contiguous *= shape[d];
  }
}

bool convertible(ScalarType from, ScalarType to) {
  return from == to || (is_number(from) && is_number(to));
}

void copy_layout(const void* src, ScalarType src_type, const Layout& from, void* dst,
                 ScalarType dst_type, const Layout& to) {
  if (to.shape.numel().value_or(1) == 0) return;  // an offset may then be any number
  StridedLoop loop;
  for (int64_t d = 0; d < to.shape.ndim(); ++d) {
    loop.add(to.shape[d], from.strides[d], to.strides[d]);
  }
  const int64_t src_size = static_cast<int64_t>(elementSize(src_type));
  const int64_t dst_size = static_cast<int64_t>(elementSize(dst_type));
  loop.copy(static_cast<const char*>(src) + from.offset * src_size, src_type,
            static_cast<char*>(dst) + to.offset * dst_size, dst_type);
}

void Layout::erase(int64_t dim) {
  for (int64_t d = dim; d + 1 < shape.ndim(); ++d) strides[d] = strides[d + 1];
  shape.erase(dim);
}

bool select_in(KernelRuntimeContext& ctx, const char* op, int64_t dim, int64_t index,
               Layout& view) {
  ET_REQUIRE(ctx, view.shape.ndim() > 0, InvalidArgument, false,
             "%s: a 0-d tensor has nothing to select", op);
  if (!normalize_dim(ctx, op, dim, view.shape.ndim())) return false;
  const int64_t extent = view.shape[dim];
  ET_REQUIRE(ctx, index >= -extent && index < extent, InvalidArgument, false,
             "%s: index %" PRId64 " is out of range for dim %" PRId64 " of shape %s", op, index,
             dim, ShapeText(view.shape.ref()).c_str());
  view.offset += (index < 0 ? index + extent : index) * view.strides[dim];
  view.erase(dim);
  return true;
}

bool slice_in(KernelRuntimeContext& ctx, const char* op, int64_t dim, std::optional<int64_t> start,
              std::optional<int64_t> end, int64_t step, Layout& view) {
  ET_REQUIRE(ctx, view.shape.ndim() > 0, InvalidArgument, false,
             "%s: a 0-d tensor has nothing to slice", op);
  ET_REQUIRE(ctx, step > 0, InvalidArgument, false,
             "%s: step must be positive; the value is %" PRId64, op, step);
  if (!normalize_dim(ctx, op, dim, view.shape.ndim())) return false;
  const int64_t extent = view.shape[dim];
  const auto clamped = [extent](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + extent : at, 0, extent);
  };
  const int64_t begin = clamped(start.value_or(0));
  const int64_t length = std::max<int64_t>(clamped(end.value_or(extent)) - begin, 0);
  view.offset += length > 0 ? begin * view.strides[dim] : 0;
  view.shape.set(dim, length / step + (length % step != 0));
  view.strides[dim] *= view.shape[dim] > 1 ? step : 1;
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
             toString(out.scalar_type()), toString(self.scalar_type()));
  if (!resize_out(ctx, op, out, view.shape)) return false;
  copy_layout(self.const_data_ptr(), self.scalar_type(), view, out.mutable_data_ptr(),
              out.scalar_type(), Layout(out));
  return true;
}

void copy_in_order(const void* src, const Layout& from, int64_t src_begin, void* dst,
                   const Layout& to, int64_t dst_begin, int64_t count, size_t element_size) {
  if (count == 0) return;
  const int64_t size = static_cast<int64_t>(element_size);
  const auto run = [&](int64_t src_at, int64_t src_step, int64_t dst_at, int64_t dst_step,
                       int64_t n) {
    const executorch::cpu::Copy::Dim dim = {n, src_step, dst_step};
    executorch::cpu::Copy{&dim, 1, element_size, static_cast<const char*>(src) + src_at * size,
                          static_cast<char*>(dst) + dst_at * size}
        .run();
  };
  if (is_row_major(from) && is_row_major(to)) {
    run(from.offset + src_begin, 1, to.offset + dst_begin, 1, count);
    return;
  }
  Cursor read(from, src_begin);
  Cursor write(to, dst_begin);
  while (count > 0) {
    const int64_t n = std::min({count, read.left_in_row(), write.left_in_row()});
    run(read.offset, read.step(), write.offset, write.step(), n);
    read.advance(n);
    write.advance(n);
    count -= n;
  }
}

Element::Element(const Scalar& value, ScalarType type) {
  if (!is_complex(type) && (value.isBoolean() || value.isIntegral(false))) {
    store_one(scalar_as<int64_t>(value), bytes, type);
  } else {
    const double v = scalar_as<double>(value);
    convert(&v, ScalarType::Double, 1, bytes, type, 1, 1);
  }
}

void fill(const Scalar& value, Tensor& out) {
  const Element element(value, out.scalar_type());
  StridedLoop loop;  // every dim order is dense, so the elements are one run
  loop.add(out.numel(), 0, 1);
  loop.copy(element.bytes, out.scalar_type(), out.mutable_data_ptr(), out.scalar_type());
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

// Converts row by row; rows are shared by threads.
void StridedLoop::convert_rows(const Dim* dims, size_t n, const void* src, ScalarType src_type,
                               void* dst, ScalarType dst_type) {
  constexpr int64_t kGrain = 16384;  // elements
  const Dim row = n > 0 ? dims[n - 1] : Dim{1, 0, 0};
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < n; ++d) rows *= dims[d].size;
  const int64_t src_size = static_cast<int64_t>(elementSize(src_type));
  const int64_t dst_size = static_cast<int64_t>(elementSize(dst_type));
  const bool past =
      row.dst == 1 && executorch::cpu::overflows_caches(rows * row.size * (src_size + dst_size));
  const auto convert_row = [&](int64_t r, int64_t begin, int64_t end) {
    int64_t from = begin * row.src, to = begin * row.dst;
    for (size_t d = n > 0 ? n - 1 : 0; d > 0; r /= dims[--d].size) {
      from += r % dims[d - 1].size * dims[d - 1].src;
      to += r % dims[d - 1].size * dims[d - 1].dst;
    }
    const char* const x = static_cast<const char*>(src) + from * src_size;
    char* const y = static_cast<char*>(dst) + to * dst_size;
    if (!past) {
      convert(x, src_type, row.src, y, dst_type, row.dst, end - begin);
      return;
    }
    executorch::cpu::write(y, (end - begin) * dst_size, true, [&](int64_t i, int64_t m, char* at) {
      const char* const piece = x + i / dst_size * row.src * src_size;
      if (row.src == 1)
        executorch::cpu::prefetch(piece + m / dst_size * src_size, m / dst_size * src_size);
      convert(piece, src_type, row.src, at, dst_type, 1, m / dst_size);
    });
  };
  if (rows == 1) {
    executorch::cpu::parallel_for(row.size, kGrain,
                                  [&](int64_t begin, int64_t end) { convert_row(0, begin, end); });
    return;
  }
  executorch::cpu::parallel_for(rows, std::max<int64_t>(kGrain / row.size, 1),
                                [&](int64_t begin, int64_t end) {
                                  for (int64_t r = begin; r < end; ++r) convert_row(r, 0, row.size);
                                });
}

void StridedLoop::copy(const void* src, ScalarType src_type, void* dst, ScalarType dst_type) const {
  for (size_t d = 0; d < n_dims_; ++d) {
    if (dims_[d].size == 0) return;
  }
  Dim dims[kMaxLoops];
  const size_t n = simplify(dims);
  if (src_type != dst_type) return convert_rows(dims, n, src, src_type, dst, dst_type);
  executorch::cpu::Copy{dims, static_cast<int>(n), elementSize(src_type), src, dst}.run();
}

}  // namespace torch::executor::native::internal
