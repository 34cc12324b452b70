/// Checks and index arithmetic of kernels. Each predicate logs the reason when it is false.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>
#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/platform/assert.h>
#include <executorch/runtime/platform/compiler.h>

#define ET_NORMALIZE_IX(IX, UPPER_BOUND) ((IX) < 0 ? (IX) + (UPPER_BOUND) : (IX))
#define ET_MIN2(a, b) ((a) < (b) ? (a) : (b))
#define ET_MIN3(a, b, c) (ET_MIN2((a), ET_MIN2((b), (c))))

/// Unless `cond__`: logs, fails the context and returns `retval__` from the kernel.
#define ET_KERNEL_CHECK(context__, cond__, error__, retval__)  \
  do {                                                         \
    if (!(cond__)) {                                           \
      ET_LOG(Error, "Check failed (%s)", #cond__);             \
      (context__).fail(::executorch::runtime::Error::error__); \
      return retval__;                                         \
    }                                                          \
  } while (false)

#define ET_KERNEL_CHECK_MSG(context__, cond__, error__, retval__, message__, ...) \
  do {                                                                            \
    if (!(cond__)) {                                                              \
      ET_LOG(Error, "Check failed (%s): " message__, #cond__, ##__VA_ARGS__);     \
      (context__).fail(::executorch::runtime::Error::error__);                    \
      return retval__;                                                            \
    }                                                                             \
  } while (false)

#define ET_LOG_AND_RETURN_IF_FALSE(cond__)         \
  do {                                             \
    if (!(cond__)) {                               \
      ET_LOG(Error, "Check failed (%s)", #cond__); \
      return false;                                \
    }                                              \
  } while (false)

/// Another name of ET_CHECK_OR_RETURN_FALSE (error.h).
#define ET_LOG_MSG_AND_RETURN_IF_FALSE ET_CHECK_OR_RETURN_FALSE

// Aborting checks, for code without a context.
#define ET_TENSOR_CHECK_PREFIX__ "Tensors do not match"
#define ET_CHECK_SAME_SHAPE2(a, b) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_shape(a, b), ET_TENSOR_CHECK_PREFIX__)
#define ET_CHECK_SAME_SHAPE3(a, b, c) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_shape(a, b, c), ET_TENSOR_CHECK_PREFIX__)
#define ET_CHECK_SAME_DTYPE2(a, b) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_dtype(a, b), ET_TENSOR_CHECK_PREFIX__)
#define ET_CHECK_SAME_DTYPE3(a, b, c) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_dtype(a, b, c), ET_TENSOR_CHECK_PREFIX__)
#define ET_CHECK_SAME_SHAPE_AND_DTYPE2(a, b)                                   \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_shape_and_dtype(a, b), \
               ET_TENSOR_CHECK_PREFIX__)
#define ET_CHECK_SAME_SHAPE_AND_DTYPE3(a, b, c)                                   \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_shape_and_dtype(a, b, c), \
               ET_TENSOR_CHECK_PREFIX__)
#define ET_CHECK_SAME_STRIDES2(a, b) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_strides(a, b), ET_TENSOR_CHECK_PREFIX__)
#define ET_CHECK_SAME_STRIDES3(a, b, c) \
  ET_CHECK_MSG(::executorch::runtime::tensors_have_same_strides(a, b, c), ET_TENSOR_CHECK_PREFIX__)
#define ET_CHECK_CONTIGUOUS(a) \
  ET_CHECK_MSG(::executorch::runtime::tensor_is_contiguous(a), "not contiguous")
#define ET_CHECK_DEFAULT_OR_CHANNELSLAST_DIMORDER(t)                                   \
  ET_CHECK_MSG(::executorch::runtime::tensor_is_default_or_channels_last_dim_order(t), \
               "neither contiguous nor channels last")
#define ET_CHECK_VALID_IX(IX, UPPER_BOUND)                                                    \
  ET_CHECK_MSG(                                                                               \
      (IX) >= -static_cast<int64_t>(UPPER_BOUND) && (IX) < static_cast<int64_t>(UPPER_BOUND), \
      "index %lld is outside of [-%lld, %lld)", static_cast<long long>(IX),                   \
      static_cast<long long>(UPPER_BOUND), static_cast<long long>(UPPER_BOUND))
#define ET_CHECK_VALID_DIM(DIM, UPPER_BOUND) ET_CHECK_VALID_IX(DIM, UPPER_BOUND)
#define ET_CHECK_NON_ZERO_DIM_SIZE(DIM, T)                                      \
  ET_CHECK_MSG((T).dim() == 0 || (T).size(ET_NORMALIZE_IX(DIM, (T).dim())) > 0, \
               "dimension %lld is empty", static_cast<long long>(DIM))
#define ET_EXTRACT_SCALAR_TENSOR(scalar_tensor, out_val)                                \
  ET_CHECK_MSG(::executorch::runtime::extract_scalar_tensor(scalar_tensor, &(out_val)), \
               "the tensor holds no single number of the type wanted")

namespace executorch::ET_RUNTIME_NAMESPACE {

/// dim in [-upper_bound, upper_bound), where a scalar (upper_bound 0) counts as one dimension.
bool dim_is_valid(int64_t dim, int64_t upper_bound);

/// The rank, at least 1: a scalar counts as a vector of one element. The size likewise.
ssize_t nonzero_dim(const aten::Tensor& tensor);
ssize_t nonempty_size(const aten::Tensor& tensor, ssize_t dim);

bool tensor_can_cast_to(aten::Tensor a, aten::ScalarType dtype);
bool tensor_is_bool_type(aten::Tensor t);
bool tensor_is_type(aten::Tensor t, aten::ScalarType dtype);
bool tensor_is_type(aten::Tensor t, aten::ScalarType dtype, aten::ScalarType dtype2);
bool tensor_is_type(aten::Tensor t, aten::ScalarType dtype, aten::ScalarType dtype2,
                    aten::ScalarType dtype3);
bool tensor_is_integral_type(aten::Tensor t, bool includeBool = false);
bool tensor_is_floating_type(aten::Tensor t);
bool tensor_is_real_type(aten::Tensor t);
bool tensor_is_realh_type(aten::Tensor t);
bool tensor_is_realhbf16_type(aten::Tensor t);
bool tensor_is_realhb_type(aten::Tensor t);
bool tensor_is_realhbbf16_type(aten::Tensor t);
bool tensor_is_complex_type(aten::Tensor t);
bool tensor_is_bits_type(aten::Tensor t);
bool tensors_have_same_dtype(aten::Tensor a, aten::Tensor b);
bool tensors_have_same_dtype(aten::Tensor a, aten::Tensor b, aten::Tensor c);

bool tensor_is_rank(aten::Tensor t, size_t rank);
bool tensor_has_rank_greater_or_equal_to(aten::Tensor t, size_t rank);
bool tensor_has_rank_smaller_or_equal_to(aten::Tensor t, size_t rank);
bool tensors_have_same_rank(aten::Tensor a, aten::Tensor b);
/// One element and no dimension.
bool tensor_is_scalar(aten::Tensor t);
/// `d` may count from the end; a scalar has dimensions 0 and -1.
bool tensor_has_dim(aten::Tensor t, int64_t d);
bool tensor_has_non_empty_dim(aten::Tensor t, int64_t d);
/// ix in [-size, size) of dimension d.
bool tensor_dim_has_index(aten::Tensor t, int64_t d, int64_t ix);

bool tensors_have_same_size_at_dims(aten::Tensor a, size_t dim_a, aten::Tensor b, size_t dim_b);
/// Equal sizes; tensors of one element match whatever their rank.
bool tensors_have_same_shape(aten::Tensor a, aten::Tensor b);
bool tensors_have_same_shape(aten::Tensor a, aten::Tensor b, aten::Tensor c);
bool tensors_have_same_shape_and_dtype(aten::Tensor a, aten::Tensor b);
bool tensors_have_same_shape_and_dtype(aten::Tensor a, aten::Tensor b, aten::Tensor c);
bool tensor_has_expected_size(aten::Tensor a, aten::ArrayRef<aten::SizesType> expected_sizes);
bool tensors_have_same_strides(aten::Tensor a, aten::Tensor b);
bool tensors_have_same_strides(aten::Tensor a, aten::Tensor b, aten::Tensor c);
/// Strides fall from the first dimension to the last without gaps.
bool tensor_is_contiguous(aten::Tensor t);

/// Writes the tensor's dim order to `out_dim_order`, which has `out_dim_order_size` entries, as
/// many as the tensor has dimensions (else InvalidArgument).
ET_NODISCARD Error get_dim_order(const aten::Tensor& tensor, aten::DimOrderType* out_dim_order,
                                 size_t out_dim_order_size);
bool tensor_has_valid_dim_order(aten::Tensor t);
bool tensor_is_default_or_channels_last_dim_order(aten::Tensor t);
bool tensor_is_default_dim_order(aten::Tensor t);
bool tensor_is_channels_last_dim_order(aten::Tensor t);
bool tensors_have_same_dim_order(const aten::ArrayRef<aten::Tensor> tensor_list);
bool tensors_have_same_dim_order(const aten::Tensor& a, const aten::Tensor& b);
bool tensors_have_same_dim_order(const aten::Tensor& a, const aten::Tensor& b,
                                 const aten::Tensor& c);
bool tensors_have_same_dim_order(const aten::Tensor& a, const aten::Tensor& b,
                                 const aten::Tensor& c, const aten::Tensor& d);

/// The product of the sizes before `dim`, and of those after it.
size_t getLeadingDims(const aten::Tensor& tensor, int64_t dim);
size_t getTrailingDims(const aten::Tensor& tensor, int64_t dim);

/// Between coordinates (one for each dimension) and the index of an element in row-major order of
/// a contiguous tensor.
size_t coordinateToIndex(const aten::Tensor& tensor, const size_t* const coordinate);
void indexToCoordinate(const aten::Tensor& tensor, size_t index, size_t* coordinate);
/// The same with the products of getTrailingDims computed once.
void memoizeTrailingDims(const aten::Tensor& tensor,
                         size_t trailing_dims_memo[kTensorDimensionLimit]);
size_t coordinateToIndexWithTrailingDimsMemo(
    const aten::Tensor& tensor, const size_t* const coordinate,
    const size_t trailing_dims_memo[kTensorDimensionLimit]);
/// sum of coordinate[d] * strides[d], in elements.
size_t calculate_linear_index(const aten::SizesType* coordinate, const aten::StridesType* strides,
                              const size_t ndim);

namespace internal {
// The single element of an integral, a real or a Bool tensor; false, logged, when there is not
// exactly one or it is of another type.
bool read_single_integer(const aten::Tensor& tensor, int64_t* out);
bool read_single_number(const aten::Tensor& tensor, double* out);
bool read_single_bool(const aten::Tensor& tensor, bool* out);
bool log_out_of_range();
}  // namespace internal

/// Stores the only element of `tensor`; false when it is not a single integer or out of INT_T's
/// range.
template <typename INT_T, typename std::enable_if<std::is_integral<INT_T>::value &&
                                                      !std::is_same<INT_T, bool>::value,
                                                  bool>::type = true>
bool extract_scalar_tensor(aten::Tensor tensor, INT_T* out_val) {
  int64_t value;
  if (!internal::read_single_integer(tensor, &value)) return false;
  const INT_T narrow = static_cast<INT_T>(value);
  if (static_cast<int64_t>(narrow) != value || (narrow < INT_T(0)) != (value < 0)) {
    return internal::log_out_of_range();
  }
  *out_val = narrow;
  return true;
}

/// From any real type; false when a finite number is out of FLOAT_T's range.
template <typename FLOAT_T, typename std::enable_if<std::is_floating_point_v<FLOAT_T> ||
                                                        std::is_same_v<FLOAT_T, aten::BFloat16> ||
                                                        std::is_same_v<FLOAT_T, aten::Half>,
                                                    bool>::type = true>
bool extract_scalar_tensor(aten::Tensor tensor, FLOAT_T* out_val) {
  double value;
  if (!internal::read_single_number(tensor, &value)) return false;
  const double limit = static_cast<double>(std::numeric_limits<FLOAT_T>::max());
  const double magnitude = value < 0 ? -value : value;
  if (magnitude > limit && magnitude <= std::numeric_limits<double>::max()) {
    return internal::log_out_of_range();
  }
  *out_val = static_cast<FLOAT_T>(value);
  return true;
}

/// From a Bool tensor only.
template <typename BOOL_T,
          typename std::enable_if<std::is_same<BOOL_T, bool>::value, bool>::type = true>
bool extract_scalar_tensor(aten::Tensor tensor, BOOL_T* out_val) {
  return internal::read_single_bool(tensor, out_val);
}

namespace internal {

/// The way into TensorImpl for the one function below.
class TensorResizerFriend final {
 public:
  ET_NODISCARD static Error resize_tensor_impl(aten::TensorImpl* impl,
                                               aten::ArrayRef<aten::SizesType> new_sizes) {
    return impl->resize(new_sizes);
  }
};

/// resize_tensor() of a tensor's memory.
ET_NODISCARD inline Error resize_tensor_impl(aten::TensorImpl* impl,
                                             aten::ArrayRef<aten::SizesType> new_sizes) {
  return TensorResizerFriend::resize_tensor_impl(impl, new_sizes);
}

ET_NODISCARD Error resize_tensor_int64(aten::Tensor t, const int64_t* new_sizes, size_t n);

/// Points `t` at `buffer`; InvalidArgument where that is shorter than its elements.
ET_NODISCARD Error set_tensor_data(const aten::Tensor& t, void* buffer, size_t buffer_size);
/// Points `t_dst` at the memory of `t_src`, which has as many bytes: else InvalidArgument.
ET_NODISCARD Error share_tensor_data(const aten::Tensor& t_dst, const aten::Tensor& t_src);
/// Copies what `t_src` holds to the memory of `t_dst`, which has as many bytes: else
/// InvalidArgument.
ET_NODISCARD Error copy_tensor_data(const aten::Tensor& t_dst, const aten::Tensor& t_src);
/// Leaves `t` without memory.
void reset_data_ptr(const aten::Tensor& t);

}  // namespace internal

/// Gives `t` new sizes and the strides of its dim order. The rank stays; a STATIC tensor takes only
/// its own sizes, others at most as many elements as they were made with: else NotSupported.
/// InvalidArgument for a negative size.
ET_NODISCARD inline Error resize_tensor(aten::Tensor t, aten::ArrayRef<aten::SizesType> new_sizes) {
  return internal::resize_tensor_impl(t.unsafeGetTensorImpl(), new_sizes);
}

template <typename T,
          typename std::enable_if<!std::is_same<aten::SizesType, T>::value, int>::type = 0>
ET_NODISCARD Error resize_tensor(aten::Tensor t, aten::ArrayRef<T> new_sizes) {
  static_assert(std::is_integral_v<T>, "sizes are integers");
  int64_t wide[kTensorDimensionLimit];
  ET_CHECK_OR_RETURN_ERROR(new_sizes.size() <= kTensorDimensionLimit, NotSupported,
                           "resize: %zu dimensions; at most %zu are supported", new_sizes.size(),
                           kTensorDimensionLimit);
  for (size_t i = 0; i < new_sizes.size(); ++i) wide[i] = static_cast<int64_t>(new_sizes[i]);
  return internal::resize_tensor_int64(t, wide, new_sizes.size());
}

/// Aborts where resize_tensor() fails.
ET_DEPRECATED inline void resize(aten::Tensor t, aten::ArrayRef<aten::SizesType> new_sizes) {
  const Error error = resize_tensor(t, new_sizes);
  ET_CHECK_MSG(error == Error::Ok, "resize: %s", to_string(error));
}

}  // namespace executorch::ET_RUNTIME_NAMESPACE

namespace torch::executor {
using ::executorch::runtime::calculate_linear_index;
using ::executorch::runtime::coordinateToIndex;
using ::executorch::runtime::coordinateToIndexWithTrailingDimsMemo;
using ::executorch::runtime::dim_is_valid;
using ::executorch::runtime::extract_scalar_tensor;
using ::executorch::runtime::get_dim_order;
using ::executorch::runtime::getLeadingDims;
using ::executorch::runtime::getTrailingDims;
using ::executorch::runtime::indexToCoordinate;
using ::executorch::runtime::kTensorDimensionLimit;
using ::executorch::runtime::memoizeTrailingDims;
using ::executorch::runtime::nonempty_size;
using ::executorch::runtime::nonzero_dim;
using ::executorch::runtime::resize;
using ::executorch::runtime::resize_tensor;
using ::executorch::runtime::tensor_can_cast_to;
using ::executorch::runtime::tensor_dim_has_index;
using ::executorch::runtime::tensor_has_dim;
using ::executorch::runtime::tensor_has_expected_size;
using ::executorch::runtime::tensor_has_non_empty_dim;
using ::executorch::runtime::tensor_has_rank_greater_or_equal_to;
using ::executorch::runtime::tensor_has_rank_smaller_or_equal_to;
using ::executorch::runtime::tensor_has_valid_dim_order;
using ::executorch::runtime::tensor_is_bits_type;
using ::executorch::runtime::tensor_is_bool_type;
using ::executorch::runtime::tensor_is_channels_last_dim_order;
using ::executorch::runtime::tensor_is_complex_type;
using ::executorch::runtime::tensor_is_contiguous;
using ::executorch::runtime::tensor_is_default_dim_order;
using ::executorch::runtime::tensor_is_default_or_channels_last_dim_order;
using ::executorch::runtime::tensor_is_floating_type;
using ::executorch::runtime::tensor_is_integral_type;
using ::executorch::runtime::tensor_is_rank;
using ::executorch::runtime::tensor_is_real_type;
using ::executorch::runtime::tensor_is_realh_type;
using ::executorch::runtime::tensor_is_realhb_type;
using ::executorch::runtime::tensor_is_realhbbf16_type;
using ::executorch::runtime::tensor_is_realhbf16_type;
using ::executorch::runtime::tensor_is_scalar;
using ::executorch::runtime::tensor_is_type;
using ::executorch::runtime::tensors_have_same_dim_order;
using ::executorch::runtime::tensors_have_same_dtype;
using ::executorch::runtime::tensors_have_same_rank;
using ::executorch::runtime::tensors_have_same_shape;
using ::executorch::runtime::tensors_have_same_shape_and_dtype;
using ::executorch::runtime::tensors_have_same_size_at_dims;
using ::executorch::runtime::tensors_have_same_strides;

namespace internal {
using ::executorch::runtime::internal::copy_tensor_data;
using ::executorch::runtime::internal::reset_data_ptr;
using ::executorch::runtime::internal::resize_tensor_impl;
using ::executorch::runtime::internal::set_tensor_data;
using ::executorch::runtime::internal::share_tensor_data;
}  // namespace internal
}  // namespace torch::executor
