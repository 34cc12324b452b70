#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/portable_type/scalar_type.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/tensor_shape_dynamism.h>
#include <executorch/runtime/platform/compiler.h>

/// printf conversions of a size, a dimension, an element count, and the elements of sizes() and
/// strides().
#define ET_PRI_TENSOR_SIZE ET_PRIssize_t
#define ET_PRI_TENSOR_DIM ET_PRIssize_t
#define ET_PRI_TENSOR_NUMEL ET_PRIssize_t
#define ET_PRI_SIZES_AND_STRIDES "d"

namespace executorch::runtime {
namespace internal {
class TensorResizerFriend;
}  // namespace internal

namespace etensor {

/// The description of a tensor: element type, sizes, dim order and strides (in elements), and the
/// address of its bytes. Owns nothing: the arrays and the bytes must outlive it. Used through
/// Tensor.
class TensorImpl {
 public:
  using SizesType = int32_t;
  using DimOrderType = uint8_t;
  using StridesType = int32_t;

  TensorImpl() = delete;

  /// `sizes`, `dim_order` and `strides` have `dim` entries each; the latter two may be null, which
  /// means the identity and what sizes and dim order give. Resizing updates `sizes` and `strides`
  /// in place. Aborts for an invalid type or a negative size, so callers with foreign bytes check
  /// those first (safe_numel).
  TensorImpl(ScalarType type, ssize_t dim, SizesType* sizes, void* data = nullptr,
             DimOrderType* dim_order = nullptr, StridesType* strides = nullptr,
             TensorShapeDynamism dynamism = TensorShapeDynamism::STATIC,
             DeviceType device_type = DeviceType::CPU, DeviceIndex device_index = 0);

  /// Bytes of the present elements.
  size_t nbytes() const;
  ssize_t size(ssize_t dim) const;
  ssize_t dim() const { return dim_; }
  ssize_t numel() const { return numel_; }
  ScalarType scalar_type() const { return type_; }
  ScalarType dtype() const { return type_; }
  /// Bytes of one element.
  ssize_t element_size() const;

  const ArrayRef<SizesType> sizes() const { return {sizes_, static_cast<size_t>(dim_)}; }
  const ArrayRef<DimOrderType> dim_order() const { return {dim_order_, static_cast<size_t>(dim_)}; }
  const ArrayRef<StridesType> strides() const { return {strides_, static_cast<size_t>(dim_)}; }
  TensorShapeDynamism shape_dynamism() const { return shape_dynamism_; }
  Device device() const { return device_; }
  DeviceType device_type() const { return device_.type(); }
  DeviceIndex device_index() const { return device_.index(); }

  template <typename T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  const void* data() const { return data_; }
  template <typename T>
  T* mutable_data() const {
    return static_cast<T*>(data_);
  }
  void* mutable_data() const { return data_; }
  /// Sets the data pointer. The memory must have room for the largest shape and must be writable.
  void set_data(void* ptr) { borrow_data(ptr, SIZE_MAX, false); }

  /// Points at memory that belongs to something else: a constant, a view's base, a caller's tensor.
  /// The tensor cannot grow beyond `capacity` elements; kernels may not write it if `read_only`.
  void borrow_data(void* ptr, size_t capacity, bool read_only) {
    data_ = ptr;
    capacity_ = capacity;
    read_only_ = read_only;
  }
  /// Removes the data pointer. Until the tensor is given memory again, it has none and no capacity.
  void drop_data() { borrow_data(nullptr, 0, false); }
  /// The number of elements that there is room for, whatever the current shape.
  size_t capacity() const { return capacity_ < numel_bound_ ? capacity_ : numel_bound_; }
  bool is_read_only() const { return read_only_; }

  /// resize_tensor() reports failure; this aborts.
  ET_DEPRECATED void set_sizes_contiguous(ArrayRef<SizesType> new_sizes);

 private:
  friend class ::executorch::runtime::internal::TensorResizerFriend;

  ET_NODISCARD Error resize(ArrayRef<SizesType> new_sizes);

  SizesType* sizes_;
  DimOrderType* dim_order_;
  StridesType* strides_;
  void* data_;
  const ssize_t dim_;
  ssize_t numel_;
  /// The element count of the initial shape, which is the largest that the tensor may have.
  const size_t numel_bound_;
  /// The element count that borrowed memory has room for.
  size_t capacity_ = SIZE_MAX;
  bool read_only_ = false;
  const ScalarType type_;
  const TensorShapeDynamism shape_dynamism_;
  const Device device_;
};

/// The product of `dim` sizes. Aborts when one is negative or the product overflows.
ssize_t compute_numel(const TensorImpl::SizesType* sizes, ssize_t dim);

/// The same with InvalidArgument instead of aborting.
Result<ssize_t> safe_numel(const TensorImpl::SizesType* sizes, ssize_t dim);

}  // namespace etensor
}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::etensor::compute_numel;
using ::executorch::runtime::etensor::safe_numel;
using ::executorch::runtime::etensor::TensorImpl;
}  // namespace torch::executor
