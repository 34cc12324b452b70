/// A dim order lists the dimensions from the outermost to the innermost in memory. With the sizes
/// it fixes the strides of a dense tensor: contiguous is {0, 1, 2, 3}, channels last {0, 2, 3, 1}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>

namespace executorch::runtime {

/// Whether `dim_order` is a permutation of 0 .. dims - 1.
template <typename DimOrderType>
bool validate_dim_order(const DimOrderType* dim_order, const size_t dims) {
  static_assert(kTensorDimensionLimit < 32, "the set of dimensions seen is one word");
  if (dims > kTensorDimensionLimit) return false;
  uint32_t seen = 0;
  for (size_t i = 0; i < dims; ++i) {
    if (dim_order[i] >= static_cast<DimOrderType>(dims)) return false;
    seen |= 1u << dim_order[i];
  }
  return seen == (1u << dims) - 1;
}

template <typename DimOrderType>
bool is_contiguous_dim_order(const DimOrderType* dim_order, const size_t dims) {
  for (size_t i = 0; i < dims; ++i) {
    if (dim_order[i] != static_cast<DimOrderType>(i)) return false;
  }
  return true;
}

/// {0, 2, 3, 1} or {0, 2, 3, 4, 1}: other ranks have no channels-last order.
template <typename DimOrderType>
bool is_channels_last_dim_order(const DimOrderType* dim_order, const size_t dims) {
  if (dims != 4 && dims != 5) return false;
  if (dim_order[0] != 0 || dim_order[dims - 1] != 1) return false;
  for (size_t i = 1; i + 1 < dims; ++i) {
    if (dim_order[i] != static_cast<DimOrderType>(i + 1)) return false;
  }
  return true;
}

/// strides[d] in elements, for a valid `dim_order`. A size of 0 counts as 1, so that strides of
/// empty tensors still tell their order; what a StridesType does not hold is its largest number.
template <typename SizesType, typename DimOrderType, typename StridesType>
void dim_order_to_stride_nocheck(const SizesType* sizes, const DimOrderType* dim_order,
                                 const size_t dims, StridesType* strides) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<StridesType>::max());
  uint64_t stride = 1;
  for (size_t i = dims; i-- > 0;) {
    const auto d = dim_order[i];
    strides[d] = static_cast<StridesType>(stride < kMost ? stride : kMost);
    const auto size = static_cast<uint64_t>(sizes[d]);
    if (size > 1) stride = stride > kMost / size ? UINT64_MAX : stride * size;
  }
}

/// The same after checking: InvalidArgument when `dim_order` is no permutation, or a stride of a
/// tensor that is not empty is more than a StridesType holds.
template <typename SizesType, typename DimOrderType, typename StridesType>
ET_NODISCARD Error dim_order_to_stride(const SizesType* sizes, const DimOrderType* dim_order,
                                       const size_t dims, StridesType* strides) {
  ET_CHECK_OR_RETURN_ERROR(dims == 0 || validate_dim_order(dim_order, dims), InvalidArgument,
                           "dim order is no permutation of %zu dimensions", dims);
  bool is_empty = false;
  for (size_t d = 0; d < dims; ++d) is_empty |= sizes[d] == 0;
  auto left = static_cast<uint64_t>(std::numeric_limits<StridesType>::max());
  for (size_t i = dims; !is_empty && i-- > 1;) {
    left /= static_cast<uint64_t>(sizes[dim_order[i]]);
    ET_CHECK_OR_RETURN_ERROR(left > 0, InvalidArgument,
                             "the stride of dimension %zu does not fit into %zu bits",
                             static_cast<size_t>(dim_order[i - 1]), 8 * sizeof(StridesType));
  }
  dim_order_to_stride_nocheck(sizes, dim_order, dims, strides);
  return Error::Ok;
}

/// Orders dimensions by falling stride; equal strides keep their place. InvalidArgument for a
/// stride of 0 (a broadcast dimension has no place in memory) or too many dimensions.
template <typename DimOrderType, typename StridesType>
ET_NODISCARD Error stride_to_dim_order(const StridesType* strides, const size_t dims,
                                       DimOrderType* dim_order) {
  ET_CHECK_OR_RETURN_ERROR(dim_order != nullptr, MemoryAllocationFailed, "dim_order is null");
  ET_CHECK_OR_RETURN_ERROR(dims <= kTensorDimensionLimit, InvalidArgument,
                           "%zu dimensions; at most %zu are supported", dims,
                           kTensorDimensionLimit);
  for (size_t i = 0; i < dims; ++i) {
    ET_CHECK_OR_RETURN_ERROR(strides[i] > 0, InvalidArgument, "stride of dimension %zu is %lld", i,
                             static_cast<long long>(strides[i]));
    size_t place = i;
    for (; place > 0 && strides[dim_order[place - 1]] < strides[i]; --place) {
      dim_order[place] = dim_order[place - 1];
    }
    dim_order[place] = static_cast<DimOrderType>(i);
  }
  return Error::Ok;
}

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::dim_order_to_stride;
using ::executorch::runtime::dim_order_to_stride_nocheck;
using ::executorch::runtime::is_channels_last_dim_order;
using ::executorch::runtime::is_contiguous_dim_order;
using ::executorch::runtime::stride_to_dim_order;
}  // namespace torch::executor
