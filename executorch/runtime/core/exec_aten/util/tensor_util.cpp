#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <cstring>

#include <executorch/runtime/core/exec_aten/util/layout_of.h>

namespace executorch::ET_RUNTIME_NAMESPACE {
namespace {

using aten::ScalarType;
using aten::Tensor;

// A shape as text, for the one full expression in which it is logged.
#define SHAPE(t) tensor_shape_to_c_string({(t).sizes().data(), (t).sizes().size()}).data()

bool log_if_not(bool holds, const Tensor& t, const char* expected) {
  if (!holds) {
    ET_LOG(Error, "dtype is %s, not %s", toString(t.scalar_type()), expected);
  }
  return holds;
}

size_t product(aten::ArrayRef<aten::SizesType> sizes, size_t begin, size_t end) {
  size_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= static_cast<size_t>(sizes[i]);
  return result;
}

template <typename T>
bool equal(aten::ArrayRef<T> a, aten::ArrayRef<T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

using IsOrder = bool (*)(const aten::DimOrderType* dim_order, size_t dims);
constexpr IsOrder kIsContiguous = is_contiguous_dim_order<aten::DimOrderType>;
constexpr IsOrder kIsChannelsLast = is_channels_last_dim_order<aten::DimOrderType>;

bool dim_order_is(const Tensor& t, IsOrder is_order) {
  const auto order = internal::dim_order_of(t);
  return order.ok() && is_order(order->data(), order->size());
}

}  // namespace

bool dim_is_valid(int64_t dim, int64_t upper_bound) {
  const int64_t bound = upper_bound == 0 ? 1 : upper_bound;
  ET_LOG_MSG_AND_RETURN_IF_FALSE(
      dim >= -bound && dim < bound, "dimension %lld is outside of [-%lld, %lld)",
      static_cast<long long>(dim), static_cast<long long>(bound), static_cast<long long>(bound));
  return true;
}

ssize_t nonzero_dim(const Tensor& tensor) {
  return tensor.dim() == 0 ? 1 : tensor.dim();
}

ssize_t nonempty_size(const Tensor& tensor, ssize_t dim) {
  return tensor.dim() == 0 ? 1 : tensor.size(dim);
}

bool tensor_can_cast_to(Tensor a, ScalarType dtype) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(canCast(a.scalar_type(), dtype), "%s cannot be cast to %s",
                                 toString(a.scalar_type()), toString(dtype));
  return true;
}

bool tensor_is_bool_type(Tensor t) {
  return tensor_is_type(t, ScalarType::Bool);
}

bool tensor_is_type(Tensor t, ScalarType dtype) {
  return log_if_not(t.scalar_type() == dtype, t, toString(dtype));
}

bool tensor_is_type(Tensor t, ScalarType dtype, ScalarType dtype2) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(t.scalar_type() == dtype || t.scalar_type() == dtype2,
                                 "dtype is %s, neither %s nor %s", toString(t.scalar_type()),
                                 toString(dtype), toString(dtype2));
  return true;
}

bool tensor_is_type(Tensor t, ScalarType dtype, ScalarType dtype2, ScalarType dtype3) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(
      t.scalar_type() == dtype || t.scalar_type() == dtype2 || t.scalar_type() == dtype3,
      "dtype is %s, none of %s, %s, %s", toString(t.scalar_type()), toString(dtype),
      toString(dtype2), toString(dtype3));
  return true;
}

bool tensor_is_integral_type(Tensor t, bool includeBool) {
  return log_if_not(isIntegralType(t.scalar_type(), includeBool), t, "integral");
}
bool tensor_is_floating_type(Tensor t) {
  return log_if_not(isFloatingType(t.scalar_type()), t, "floating point");
}
bool tensor_is_real_type(Tensor t) {
  return log_if_not(isRealType(t.scalar_type()), t, "real");
}
bool tensor_is_realh_type(Tensor t) {
  return log_if_not(isRealHType(t.scalar_type()), t, "real or Half");
}
bool tensor_is_realhbf16_type(Tensor t) {
  return log_if_not(isRealHBF16Type(t.scalar_type()), t, "real, Half or BFloat16");
}
bool tensor_is_realhb_type(Tensor t) {
  return log_if_not(isRealHBType(t.scalar_type()), t, "real, Half or Bool");
}
bool tensor_is_realhbbf16_type(Tensor t) {
  return log_if_not(isRealHBBF16Type(t.scalar_type()), t, "real, Half, Bool or BFloat16");
}
bool tensor_is_complex_type(Tensor t) {
  return log_if_not(isComplexType(t.scalar_type()), t, "complex");
}
bool tensor_is_bits_type(Tensor t) {
  return log_if_not(isBitsType(t.scalar_type()), t, "a bits type");
}

bool tensors_have_same_dtype(Tensor a, Tensor b) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(a.scalar_type() == b.scalar_type(), "dtypes are %s and %s",
                                 toString(a.scalar_type()), toString(b.scalar_type()));
  return true;
}

bool tensors_have_same_dtype(Tensor a, Tensor b, Tensor c) {
  return tensors_have_same_dtype(a, b) && tensors_have_same_dtype(b, c);
}

bool tensor_is_rank(Tensor t, size_t rank) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(static_cast<size_t>(t.dim()) == rank,
                                 "shape is %s, rank is not %zu", SHAPE(t), rank);
  return true;
}

bool tensor_has_rank_greater_or_equal_to(Tensor t, size_t rank) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(static_cast<size_t>(t.dim()) >= rank,
                                 "shape is %s, rank is below %zu", SHAPE(t), rank);
  return true;
}

bool tensor_has_rank_smaller_or_equal_to(Tensor t, size_t rank) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(static_cast<size_t>(t.dim()) <= rank,
                                 "shape is %s, rank is above %zu", SHAPE(t), rank);
  return true;
}

bool tensors_have_same_rank(Tensor a, Tensor b) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(a.dim() == b.dim(), "shapes are %s and %s", SHAPE(a), SHAPE(b));
  return true;
}

bool tensor_is_scalar(Tensor t) {
  return t.dim() == 0 && t.numel() == 1;
}

bool tensor_has_dim(Tensor t, int64_t d) {
  return dim_is_valid(d, t.dim());
}

bool tensor_has_non_empty_dim(Tensor t, int64_t d) {
  if (!tensor_has_dim(t, d)) return false;
  const int64_t dim = ET_NORMALIZE_IX(d, nonzero_dim(t));
  ET_LOG_MSG_AND_RETURN_IF_FALSE(nonempty_size(t, dim) != 0, "dimension %lld of shape %s is empty",
                                 static_cast<long long>(d), SHAPE(t));
  return true;
}

bool tensor_dim_has_index(Tensor t, int64_t d, int64_t ix) {
  if (!tensor_has_dim(t, d)) return false;
  const int64_t size = nonempty_size(t, ET_NORMALIZE_IX(d, nonzero_dim(t)));
  ET_LOG_MSG_AND_RETURN_IF_FALSE(ix >= -size && ix < size,
                                 "index %lld is outside of dimension %lld of shape %s",
                                 static_cast<long long>(ix), static_cast<long long>(d), SHAPE(t));
  return true;
}

bool tensors_have_same_size_at_dims(Tensor a, size_t dim_a, Tensor b, size_t dim_b) {
  if (!tensor_has_rank_greater_or_equal_to(a, dim_a + 1) ||
      !tensor_has_rank_greater_or_equal_to(b, dim_b + 1)) {
    return false;
  }
  ET_LOG_MSG_AND_RETURN_IF_FALSE(
      a.size(static_cast<ssize_t>(dim_a)) == b.size(static_cast<ssize_t>(dim_b)),
      "dimension %zu of %s and dimension %zu of %s differ", dim_a, SHAPE(a), dim_b, SHAPE(b));
  return true;
}

bool tensors_have_same_shape(Tensor a, Tensor b) {
  if (a.numel() == 1 && b.numel() == 1) return true;
  ET_LOG_MSG_AND_RETURN_IF_FALSE(equal(a.sizes(), b.sizes()), "shapes are %s and %s", SHAPE(a),
                                 SHAPE(b));
  return true;
}

bool tensors_have_same_shape(Tensor a, Tensor b, Tensor c) {
  return tensors_have_same_shape(a, b) && tensors_have_same_shape(b, c);
}

bool tensors_have_same_shape_and_dtype(Tensor a, Tensor b) {
  return tensors_have_same_shape(a, b) && tensors_have_same_dtype(a, b);
}

bool tensors_have_same_shape_and_dtype(Tensor a, Tensor b, Tensor c) {
  return tensors_have_same_shape(a, b, c) && tensors_have_same_dtype(a, b, c);
}

bool tensor_has_expected_size(Tensor a, aten::ArrayRef<aten::SizesType> expected_sizes) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(
      equal<aten::SizesType>(a.sizes(), expected_sizes), "shape is %s, expected %s", SHAPE(a),
      tensor_shape_to_c_string({expected_sizes.data(), expected_sizes.size()}).data());
  return true;
}

bool tensors_have_same_strides(Tensor a, Tensor b) {
  aten::StridesType room_a[kTensorDimensionLimit], room_b[kTensorDimensionLimit];
  const auto of_a = internal::strides_of(a, room_a);
  const auto of_b = internal::strides_of(b, room_b);
  if (!of_a.ok() || !of_b.ok()) return false;
  ET_LOG_MSG_AND_RETURN_IF_FALSE(equal(*of_a, *of_b), "strides are %s and %s",
                                 tensor_shape_to_c_string({of_a->data(), of_a->size()}).data(),
                                 tensor_shape_to_c_string({of_b->data(), of_b->size()}).data());
  return true;
}

bool tensors_have_same_strides(Tensor a, Tensor b, Tensor c) {
  return tensors_have_same_strides(a, b) && tensors_have_same_strides(b, c);
}

bool tensor_is_contiguous(Tensor t) {
  aten::StridesType room[kTensorDimensionLimit];
  const auto strides = internal::strides_of(t, room);
  if (!strides.ok()) return false;
  const auto sizes = t.sizes();
  int64_t expected = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    const aten::StridesType stride = (*strides)[i];
    ET_LOG_MSG_AND_RETURN_IF_FALSE(
        stride == expected, "stride %d of dimension %zu of shape %s is not %lld",
        static_cast<int>(stride), i, SHAPE(t), static_cast<long long>(expected));
    if (sizes[i] != 0) expected *= sizes[i];
  }
  return true;
}

Error get_dim_order(const Tensor& tensor, aten::DimOrderType* out_dim_order,
                    size_t out_dim_order_size) {
  ET_ASSIGN_OR_RETURN(const auto dim_order, internal::dim_order_of(tensor));
  ET_CHECK_OR_RETURN_ERROR(out_dim_order_size == dim_order.size(), InvalidArgument,
                           "room for %zu dimensions, the tensor has %zu", out_dim_order_size,
                           dim_order.size());
  if (!dim_order.empty()) {
    std::memcpy(out_dim_order, dim_order.data(), dim_order.size() * sizeof(aten::DimOrderType));
  }
  return Error::Ok;
}

bool tensor_has_valid_dim_order(Tensor t) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(dim_order_is(t, validate_dim_order<aten::DimOrderType>),
                                 "dim order of shape %s is no permutation", SHAPE(t));
  return true;
}

bool tensor_is_default_or_channels_last_dim_order(Tensor t) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(dim_order_is(t, kIsContiguous) || dim_order_is(t, kIsChannelsLast),
                                 "dim order of shape %s is neither contiguous nor channels last",
                                 SHAPE(t));
  return true;
}

bool tensor_is_default_dim_order(Tensor t) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(dim_order_is(t, kIsContiguous),
                                 "dim order of shape %s is not contiguous", SHAPE(t));
  return true;
}

bool tensor_is_channels_last_dim_order(Tensor t) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(dim_order_is(t, kIsChannelsLast),
                                 "dim order of shape %s is not channels last", SHAPE(t));
  return true;
}

bool tensors_have_same_dim_order(const aten::ArrayRef<Tensor> tensor_list) {
  // Compared by what they are: ranks may differ when all are contiguous or all are channels last.
  bool all_contiguous = true;
  bool all_channels_last = true;
  bool all_equal = true;
  for (const Tensor& t : tensor_list) {
    const auto order = internal::dim_order_of(t);
    const auto first = internal::dim_order_of(tensor_list[0]);
    if (!order.ok() || !first.ok()) return false;
    all_contiguous &= kIsContiguous(order->data(), order->size());
    all_channels_last &= kIsChannelsLast(order->data(), order->size());
    all_equal &= equal(*order, *first);
  }
  ET_LOG_MSG_AND_RETURN_IF_FALSE(all_contiguous || all_channels_last || all_equal,
                                 "%zu tensors with different dim orders", tensor_list.size());
  return true;
}

bool tensors_have_same_dim_order(const Tensor& a, const Tensor& b) {
  const Tensor list[] = {a, b};
  return tensors_have_same_dim_order(aten::ArrayRef<Tensor>(list));
}

bool tensors_have_same_dim_order(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor list[] = {a, b, c};
  return tensors_have_same_dim_order(aten::ArrayRef<Tensor>(list));
}

bool tensors_have_same_dim_order(const Tensor& a, const Tensor& b, const Tensor& c,
                                 const Tensor& d) {
  const Tensor list[] = {a, b, c, d};
  return tensors_have_same_dim_order(aten::ArrayRef<Tensor>(list));
}

size_t getLeadingDims(const Tensor& tensor, int64_t dim) {
  ET_CHECK_MSG(dim >= 0 && dim <= tensor.dim(), "dimension %lld of %zd",
               static_cast<long long>(dim), tensor.dim());
  return product(tensor.sizes(), 0, static_cast<size_t>(dim));
}

size_t getTrailingDims(const Tensor& tensor, int64_t dim) {
  ET_CHECK_MSG(dim >= -1 && dim < tensor.dim(), "dimension %lld of %zd",
               static_cast<long long>(dim), tensor.dim());
  return product(tensor.sizes(), static_cast<size_t>(dim + 1), static_cast<size_t>(tensor.dim()));
}

size_t coordinateToIndex(const Tensor& tensor, const size_t* const coordinate) {
  size_t index = 0;
  for (ssize_t d = 0; d < tensor.dim(); ++d) {
    index = index * static_cast<size_t>(tensor.size(d)) + coordinate[d];
  }
  return index;
}

void indexToCoordinate(const Tensor& tensor, size_t index, size_t* coordinate) {
  for (ssize_t d = tensor.dim(); d-- > 0;) {
    const auto size = static_cast<size_t>(tensor.size(d));
    coordinate[d] = index % size;
    index /= size;
  }
}

void memoizeTrailingDims(const Tensor& tensor, size_t trailing_dims_memo[kTensorDimensionLimit]) {
  size_t trailing = 1;
  for (ssize_t d = tensor.dim(); d-- > 0;) {
    trailing_dims_memo[d] = trailing;
    trailing *= static_cast<size_t>(tensor.size(d));
  }
}

size_t coordinateToIndexWithTrailingDimsMemo(
    const Tensor& tensor, const size_t* const coordinate,
    const size_t trailing_dims_memo[kTensorDimensionLimit]) {
  size_t index = 0;
  for (ssize_t d = 0; d < tensor.dim(); ++d) index += coordinate[d] * trailing_dims_memo[d];
  return index;
}

size_t calculate_linear_index(const aten::SizesType* coordinate, const aten::StridesType* strides,
                              const size_t ndim) {
  size_t index = 0;
  for (size_t i = 0; i < ndim; ++i) {
    index += static_cast<size_t>(coordinate[i]) * static_cast<size_t>(strides[i]);
  }
  return index;
}

namespace internal {
namespace {

// Lets the dispatch macros say that the type is none of theirs.
struct Refusal {
  bool refused = false;
  void fail(Error) { refused = true; }
};

bool has_one_element(const Tensor& tensor) {
  ET_LOG_MSG_AND_RETURN_IF_FALSE(tensor.numel() == 1, "shape %s, not a single element",
                                 SHAPE(tensor));
  return true;
}

}  // namespace

bool read_single_integer(const Tensor& tensor, int64_t* out) {
  Refusal ctx;
  if (!has_one_element(tensor)) return false;
  ET_SWITCH_INT_TYPES(tensor.scalar_type(), ctx, "extract_scalar_tensor", CTYPE,
                      [&]() { *out = *tensor.const_data_ptr<CTYPE>(); });
  return !ctx.refused;
}

bool read_single_number(const Tensor& tensor, double* out) {
  Refusal ctx;
  if (!has_one_element(tensor)) return false;
  ET_SWITCH_REALHBF16_TYPES(tensor.scalar_type(), ctx, "extract_scalar_tensor", CTYPE,
                            [&]() { *out = static_cast<double>(*tensor.const_data_ptr<CTYPE>()); });
  return !ctx.refused;
}

bool read_single_bool(const Tensor& tensor, bool* out) {
  if (!has_one_element(tensor) || !tensor_is_bool_type(tensor)) return false;
  // From outside: any byte but 0 is true.
  *out = *static_cast<const uint8_t*>(tensor.const_data_ptr()) != 0;
  return true;
}

bool log_out_of_range() {
  ET_LOG(Error, "extract_scalar_tensor: the number does not fit in the type wanted");
  return false;
}

Error resize_tensor_int64(Tensor t, const int64_t* new_sizes, size_t n) {
  aten::SizesType sizes[kTensorDimensionLimit];
  for (size_t i = 0; i < n; ++i) {
    sizes[i] = static_cast<aten::SizesType>(new_sizes[i]);
    ET_CHECK_OR_RETURN_ERROR(sizes[i] == new_sizes[i], InvalidArgument,
                             "resize: size %lld of dimension %zu is out of range",
                             static_cast<long long>(new_sizes[i]), i);
  }
  return resize_tensor(t, {sizes, n});
}

}  // namespace internal
namespace internal {

Error set_tensor_data(const Tensor& t, void* buffer, size_t buffer_size) {
  ET_CHECK_OR_RETURN_ERROR(buffer_size >= t.nbytes(), InvalidArgument,
                           "%zu bytes for a tensor of %zu", buffer_size, t.nbytes());
  const size_t capacity = buffer_size / static_cast<size_t>(t.element_size());
  t.unsafeGetTensorImpl()->borrow_data(buffer, capacity, false);
  return Error::Ok;
}

Error share_tensor_data(const Tensor& t_dst, const Tensor& t_src) {
  ET_CHECK_OR_RETURN_ERROR(t_dst.nbytes() == t_src.nbytes(), InvalidArgument,
                           "a tensor of %zu bytes cannot share those of one of %zu", t_dst.nbytes(),
                           t_src.nbytes());
  ET_CHECK_OR_RETURN_ERROR(t_src.const_data_ptr() != nullptr || t_src.nbytes() == 0,
                           InvalidArgument, "the source has no memory");
  const aten::TensorImpl& source = *t_src.unsafeGetTensorImpl();
  t_dst.unsafeGetTensorImpl()->borrow_data(
      source.mutable_data(), static_cast<size_t>(t_dst.numel()), source.is_read_only());
  return Error::Ok;
}

Error copy_tensor_data(const Tensor& t_dst, const Tensor& t_src) {
  const size_t size = t_src.nbytes();
  ET_CHECK_OR_RETURN_ERROR(t_dst.nbytes() == size, InvalidArgument,
                           "%zu bytes do not go into a tensor of %zu", size, t_dst.nbytes());
  if (size == 0) return Error::Ok;
  ET_CHECK_OR_RETURN_ERROR(t_dst.const_data_ptr() != nullptr && t_src.const_data_ptr() != nullptr,
                           InvalidArgument, "a tensor has no memory");
  std::memcpy(t_dst.mutable_data_ptr(), t_src.const_data_ptr(), size);
  return Error::Ok;
}

void reset_data_ptr(const Tensor& t) {
  t.unsafeGetTensorImpl()->set_data(nullptr);
}

}  // namespace internal

}  // namespace executorch::ET_RUNTIME_NAMESPACE
