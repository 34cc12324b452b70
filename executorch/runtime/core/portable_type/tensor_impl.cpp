#include <executorch/runtime/core/portable_type/tensor_impl.h>

#include <cstring>

#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/layout_of.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>

namespace executorch::runtime::etensor {

Result<ssize_t> safe_numel(const TensorImpl::SizesType* sizes, ssize_t dim) {
  ET_CHECK_OR_RETURN_ERROR(dim == 0 || sizes != nullptr, InvalidArgument,
                           "sizes are null for %zd dimensions", dim);
  ssize_t numel = 1;
  for (ssize_t i = 0; i < dim; ++i) {
    ET_CHECK_OR_RETURN_ERROR(sizes[i] >= 0, InvalidArgument, "size %d of dimension %zd is negative",
                             static_cast<int>(sizes[i]), i);
    ET_CHECK_OR_RETURN_ERROR(
        !__builtin_mul_overflow(numel, static_cast<ssize_t>(sizes[i]), &numel), InvalidArgument,
        "the product of sizes overflows at dimension %zd (size %d)", i, static_cast<int>(sizes[i]));
  }
  return numel;
}

ssize_t compute_numel(const TensorImpl::SizesType* sizes, ssize_t dim) {
  return *safe_numel(sizes, dim);
}

TensorImpl::TensorImpl(ScalarType type, ssize_t dim, SizesType* sizes, void* data,
                       DimOrderType* dim_order, StridesType* strides, TensorShapeDynamism dynamism,
                       DeviceType device_type, DeviceIndex device_index)
    : sizes_(sizes),
      dim_order_(dim_order),
      strides_(strides),
      data_(data),
      dim_(dim),
      numel_(compute_numel(sizes, dim)),
      numel_bound_(static_cast<size_t>(numel_)),
      type_(type),
      shape_dynamism_(dynamism),
      device_(device_type, device_index) {
  ET_CHECK_MSG(isValid(type), "%d is not an element type", static_cast<int>(type));
  ET_CHECK_MSG(dim >= 0, "%zd dimensions", dim);
}

size_t TensorImpl::nbytes() const {
  return static_cast<size_t>(numel_) * elementSize(type_);
}

ssize_t TensorImpl::element_size() const {
  return static_cast<ssize_t>(elementSize(type_));
}

ssize_t TensorImpl::size(ssize_t dim) const {
  ET_CHECK_MSG(dim >= 0 && dim < dim_, "dimension %zd of a tensor with %zd", dim, dim_);
  return sizes_[dim];
}

void TensorImpl::set_sizes_contiguous(ArrayRef<SizesType> new_sizes) {
  const Error error = resize(new_sizes);
  ET_CHECK_MSG(error == Error::Ok, "%s", to_string(error));
}

Error TensorImpl::resize(ArrayRef<SizesType> new_sizes) {
  const auto rank = static_cast<size_t>(dim_);
  const size_t bytes = rank * sizeof(SizesType);
  const bool same =
      new_sizes.size() == rank && (rank == 0 || memcmp(new_sizes.data(), sizes_, bytes) == 0);
  if (same) return Error::Ok;
  const auto log_change = [&](const char* reason) {
    ET_LOG(Error, "resize: cannot change %s to %s: %s",
           tensor_shape_to_c_string({sizes_, rank}).data(),
           tensor_shape_to_c_string({new_sizes.data(), new_sizes.size()}).data(), reason);
    return Error::NotSupported;
  };
  if (new_sizes.size() != rank) return log_change("the rank of a tensor is fixed");
  if (shape_dynamism_ == TensorShapeDynamism::STATIC) {
    return log_change("the shape of this tensor is static");
  }
  ET_ASSIGN_OR_RETURN(const ssize_t new_numel, safe_numel(new_sizes.data(), dim_));
  if (static_cast<size_t>(new_numel) > capacity()) {
    return log_change("it has no room for that many elements");
  }
  if (strides_ != nullptr) {
    if (dim_order_ == nullptr && rank > kTensorDimensionLimit) {
      return log_change("it has no dim order, and more dimensions than are supported");
    }
    const auto* const order = dim_order_ != nullptr ? dim_order_ : internal::kIdentityDimOrder;
    ET_CHECK_OK_OR_RETURN_ERROR(dim_order_to_stride(new_sizes.data(), order, rank, strides_));
  }
  memcpy(sizes_, new_sizes.data(), bytes);
  numel_ = new_numel;
  return Error::Ok;
}

}  // namespace executorch::runtime::etensor
