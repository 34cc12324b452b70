#include <executorch/kernels/portable/internal/shape.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace torch::executor::native::internal {

Size Shape::numel() const {
  Size n = 1;
  for (int64_t d = 0; d < ndim_; ++d) {
    if (sizes_[d] == 0) return 0;
    n *= sizes_[d];
  }
  return n;
}

ShapeText::ShapeText(const Tensor& t) : ShapeText(t.sizes()) {}
ShapeText::ShapeText(ArrayRef<SizesType> sizes) {
  format(sizes.data(), sizes.size());
}
ShapeText::ShapeText(ArrayRef<int64_t> sizes) {
  format(sizes.data(), sizes.size());
}

template <class T>
void ShapeText::format(const T* sizes, size_t n) {
  // Room for one more number, and for what follows the last that is printed.
  constexpr size_t kTail = sizeof(",-9223372036854775808...]");
  size_t at = 0;
  text_[at++] = '[';
  for (size_t i = 0; i < n; ++i) {
    if (at + kTail > sizeof(text_)) {
      at += static_cast<size_t>(snprintf(text_ + at, sizeof(text_) - at, "..."));
      break;
    }
    at += static_cast<size_t>(snprintf(text_ + at, sizeof(text_) - at, "%s%" PRId64,
                                       i == 0 ? "" : ",", static_cast<int64_t>(sizes[i])));
  }
  text_[at++] = ']';
  text_[at] = 0;
}

bool resize_out(KernelRuntimeContext& ctx, const char* op, Tensor& out, ArrayRef<SizesType> sizes) {
  const executorch::runtime::Error error = executorch::runtime::resize_tensor(out, sizes);
  if (error == Error::Ok) return true;
  ET_LOG(Error, "%s: out cannot hold the result: out has shape %s, the result %s", op,
         ShapeText(out).c_str(), ShapeText(sizes).c_str());
  ctx.fail(Error::InvalidArgument);
  return false;
}

bool resize_out(KernelRuntimeContext& ctx, const char* op, Tensor& out, const Shape& shape) {
  ET_REQUIRE(ctx, shape.bad_dim() < kMaxDims, InvalidArgument, false,
             "%s: the result has more than %" PRId64 " dims", op, kMaxDims);
  ET_REQUIRE(ctx, shape.ok() || shape.bad_extent().ok(), InvalidArgument, false,
             "%s: the extent of dim %" PRId64 " of the result is beyond 64 bits", op,
             shape.bad_dim());
  ET_REQUIRE(ctx, shape.ok(), InvalidArgument, false,
             "%s: the extent of dim %" PRId64 " of the result is %" PRId64
             "; 0 to 2147483647 were expected",
             op, shape.bad_dim(), shape.bad_extent().value());
  return resize_out(ctx, op, out, shape.ref());
}

bool normalize_dim(KernelRuntimeContext& ctx, const char* op, int64_t& dim, int64_t rank) {
  const int64_t limit = rank == 0 ? 1 : rank;
  ET_REQUIRE(ctx, dim >= -limit && dim < limit, InvalidArgument, false,
             "%s: dim %" PRId64 " is out of range; a tensor of rank %" PRId64 " has dims %" PRId64
             " to %" PRId64,
             op, dim, rank, -limit, limit - 1);
  if (dim < 0) dim += limit;
  return true;
}

bool dim_mask(KernelRuntimeContext& ctx, const char* op,
              const std::optional<ArrayRef<int64_t>>& dims, int64_t rank, bool empty_is_all,
              uint32_t& mask) {
  mask = 0;
  if (!dims.has_value() || (dims->empty() && empty_is_all)) {
    mask = rank == 0 ? 0 : (uint32_t{1} << rank) - 1;
    return true;
  }
  for (int64_t dim : *dims) {
    if (!normalize_dim(ctx, op, dim, rank)) return false;
    ET_REQUIRE(ctx, !(mask >> dim & 1), InvalidArgument, false,
               "%s: dim %" PRId64 " appears twice in the list of dims %s", op, dim,
               ShapeText(*dims).c_str());
    mask |= uint32_t{1} << dim;
  }
  if (rank == 0) mask = 0;
  return true;
}

bool broadcast_with(KernelRuntimeContext& ctx, const char* op, const Tensor& t, Shape& shape) {
  const int64_t ndim = std::max<int64_t>(t.dim(), shape.ndim());
  Shape result;
  for (int64_t d = 0; d < ndim; ++d) {
    const int64_t td = d - (ndim - t.dim()), sd = d - (ndim - shape.ndim());
    const SizesType a = sd >= 0 ? shape[sd] : 1;
    const SizesType b = td >= 0 ? static_cast<SizesType>(t.size(td)) : 1;
    ET_REQUIRE(ctx, a == b || a == 1 || b == 1, InvalidArgument, false,
               "%s: cannot broadcast %s with %s; extents %d and %d differ at dim %" PRId64
               " of the result",
               op, ShapeText(shape.ref()).c_str(), ShapeText(t).c_str(), static_cast<int>(a),
               static_cast<int>(b), d);
    result.push(a == 1 ? b : a);
  }
  shape = result;
  return true;
}

bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.dim() != b.dim()) return false;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != b.size(d)) return false;
    if (a.size(d) != 1 && a.strides()[d] != b.strides()[d]) return false;
  }
  return true;
}

}  // namespace torch::executor::native::internal
