#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/layout_of.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/platform/assert.h>

#include <sys/types.h>

#include <algorithm>
#include <cstddef>

namespace executorch::extension {
namespace internal {

template <typename T, ssize_t N>
class TensorAccessorBase {
 public:
  /// Aborts unless 0 <= i < N.
  aten::SizesType size(ssize_t i) const {
    ET_CHECK_MSG(i >= 0 && i < N, "TensorAccessor: dimension %zd of %zd", i, N);
    return sizes_[i];
  }

  /// In elements. Aborts unless 0 <= i < N.
  aten::StridesType stride(ssize_t i) const {
    ET_CHECK_MSG(i >= 0 && i < N, "TensorAccessor: dimension %zd of %zd", i, N);
    return strides_[i];
  }

 protected:
  TensorAccessorBase(T* data, const aten::SizesType* sizes, const aten::StridesType* strides)
      : data_(data), sizes_(sizes) {
    std::copy(strides, strides + N, strides_);
  }

  T* data_;
  const aten::SizesType* sizes_;
  // A copy: the tensor may have none.
  aten::StridesType strides_[N];
};

}  // namespace internal

template <typename T, ssize_t N>
class TensorAccessor;

template <typename T, ssize_t N>
runtime::Result<TensorAccessor<T, N>> make_tensor_accessor(const aten::Tensor& tensor);

/// Indexes the elements of a tensor of rank N as a[i][j]... without checking the indices; the
/// tensor must outlive the accessor and keep its shape.
template <typename T, ssize_t N>
class TensorAccessor : public internal::TensorAccessorBase<T, N> {
 public:
  TensorAccessor<T, N - 1> operator[](ssize_t i) {
    return TensorAccessor<T, N - 1>(this->data_ + this->strides_[0] * i, this->sizes_ + 1,
                                    this->strides_ + 1);
  }

  const TensorAccessor<T, N - 1> operator[](ssize_t i) const {
    return TensorAccessor<T, N - 1>(this->data_ + this->strides_[0] * i, this->sizes_ + 1,
                                    this->strides_ + 1);
  }

 private:
  using internal::TensorAccessorBase<T, N>::TensorAccessorBase;

  friend class TensorAccessor<T, N + 1>;
  friend runtime::Result<TensorAccessor<T, N>> make_tensor_accessor<T, N>(
      const aten::Tensor& tensor);
};

template <typename T>
class TensorAccessor<T, 1> : public internal::TensorAccessorBase<T, 1> {
 public:
  T& operator[](ssize_t i) { return this->data_[this->strides_[0] * i]; }
  const T& operator[](ssize_t i) const { return this->data_[this->strides_[0] * i]; }

 private:
  using internal::TensorAccessorBase<T, 1>::TensorAccessorBase;

  friend class TensorAccessor<T, 2>;
  friend runtime::Result<TensorAccessor<T, 1>> make_tensor_accessor<T, 1>(
      const aten::Tensor& tensor);
};

/// InvalidArgument when the rank is not N or the elements are not sizeof(T) bytes,
/// InvalidState when they have no memory, NotSupported when the dim order is not the identity.
template <typename T, ssize_t N>
runtime::Result<TensorAccessor<T, N>> make_tensor_accessor(const aten::Tensor& tensor) {
  static_assert(N > 0, "a tensor without dimensions has nothing to index");
  ET_CHECK_OR_RETURN_ERROR(tensor.dim() == N, InvalidArgument,
                           "TensorAccessor: rank %zd asked for, the tensor has %zd", N,
                           static_cast<ssize_t>(tensor.dim()));
  ET_CHECK_OR_RETURN_ERROR(static_cast<size_t>(tensor.element_size()) == sizeof(T), InvalidArgument,
                           "TensorAccessor: elements of %zu bytes asked for, the tensor has %zd",
                           sizeof(T), static_cast<ssize_t>(tensor.element_size()));
  ET_CHECK_OR_RETURN_ERROR(tensor.numel() == 0 || tensor.const_data_ptr() != nullptr, InvalidState,
                           "TensorAccessor: the tensor of %zd elements has no memory",
                           static_cast<ssize_t>(tensor.numel()));
  ET_ASSIGN_OR_RETURN(const auto dim_order, runtime::internal::dim_order_of(tensor));
  for (ssize_t i = 0; i < N; ++i) {
    ET_CHECK_OR_RETURN_ERROR(dim_order[i] == i, NotSupported,
                             "TensorAccessor: the dim order of the tensor is not the identity");
  }
  aten::StridesType room[runtime::kTensorDimensionLimit];
  ET_ASSIGN_OR_RETURN(const auto strides, runtime::internal::strides_of(tensor, room));
  return TensorAccessor<T, N>(static_cast<T*>(tensor.mutable_data_ptr()), tensor.sizes().data(),
                              strides.data());
}

}  // namespace executorch::extension
