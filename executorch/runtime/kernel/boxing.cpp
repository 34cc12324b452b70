#include <executorch/runtime/kernel/boxing.h>

#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

namespace executorch::ET_RUNTIME_NAMESPACE::internal {
namespace {

// In the order of ArgKind; numbers and enumerators have rules of their own below.
constexpr Tag kTags[] = {Tag::Tensor,
                         Tag::Int,
                         Tag::Double,
                         Tag::Bool,
                         Tag::Double,
                         Tag::String,
                         Tag::Int,
                         Tag::Int,
                         Tag::ListInt,
                         Tag::ListDouble,
                         Tag::ListBool,
                         Tag::ListTensor,
                         Tag::ListOptionalTensor};

Error element_error(const EValue& value, ArgKind kind) {
  switch (kind) {
    case ArgKind::kScalarType:
      return value.toInt() >= 0 && value.toInt() < static_cast<int64_t>(aten::ScalarType::Undefined)
                 ? Error::Ok
                 : Error::InvalidArgument;
    case ArgKind::kEnum:
      return value.toInt() >= 0 && value.toInt() <= INT8_MAX ? Error::Ok : Error::InvalidArgument;
    case ArgKind::kIntList:
      return value.tryToIntList().error();
    case ArgKind::kTensorList:
      return value.tryToTensorList().error();
    case ArgKind::kOptionalTensorList:
      return value.tryToListOptionalTensor().error();
    default:
      return Error::Ok;
  }
}

bool is_read_only(const EValue& value) {
  if (value.isTensor()) return value.toTensor().unsafeGetTensorImpl()->is_read_only();
  for (const aten::Tensor& tensor : value.toTensorList()) {
    if (tensor.unsafeGetTensorImpl()->is_read_only()) return true;
  }
  return false;
}

Error check_argument(const EValue& value, ArgKind kind, size_t index) {
  constexpr auto kOptional = static_cast<uint8_t>(ArgKind::kOptional);
  constexpr auto kWritten = static_cast<uint8_t>(ArgKind::kWritten);
  const auto bits = static_cast<uint8_t>(kind);
  if ((bits & kOptional) != 0 && value.isNone()) return Error::Ok;
  const auto plain = static_cast<ArgKind>(bits & ~(kOptional | kWritten));
  const Tag expected = kTags[static_cast<uint8_t>(plain)];
  const bool matches = value.tag == expected || (plain == ArgKind::kDouble && value.isInt()) ||
                       (plain == ArgKind::kScalar && value.isScalar());
  ET_CHECK_OR_RETURN_ERROR(matches, InvalidType, "argument %zu is %s, not %s", index,
                           tag_to_string(value.tag),
                           plain == ArgKind::kScalar ? "a number" : tag_to_string(expected));
  const Error error = element_error(value, plain);
  if (error == Error::InvalidArgument) {
    ET_LOG(Error, "argument %zu: %lld is no such enumerator", index,
           static_cast<long long>(value.toInt()));
  }
  ET_CHECK_OR_RETURN_ERROR(error != Error::Ok || (bits & kWritten) == 0 || !is_read_only(value),
                           InvalidProgram, "argument %zu is written, but it is a constant", index);
  return error;
}

bool is_written(ArgKind kind) {
  return (static_cast<uint8_t>(kind) & static_cast<uint8_t>(ArgKind::kWritten)) != 0;
}

// The TensorImpl that is resized when `tensor` is.
const aten::TensorImpl* impl(const aten::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl();
}

/// Whether one of the tensors in `value` is `tensor`, not another one over the same memory.
bool holds(const EValue& value, const aten::Tensor& tensor) {
  if (value.isTensor()) return impl(value.toTensor()) == impl(tensor);
  if (value.isTensorList()) {
    for (const aten::Tensor& item : value.toTensorList()) {
      if (impl(item) == impl(tensor)) return true;
    }
  } else if (value.isListOptionalTensor()) {
    for (const std::optional<aten::Tensor>& item : value.toListOptionalTensor()) {
      if (item.has_value() && impl(*item) == impl(tensor)) return true;
    }
  }
  return false;
}

bool holds_any(const EValue& value, const EValue& results) {
  if (results.isTensor()) return holds(value, results.toTensor());
  if (results.isTensorList()) {
    for (const aten::Tensor& result : results.toTensorList()) {
      if (holds(value, result)) return true;
    }
  }
  return false;
}

/// A function that gave a result its shape would have changed that of the operand it still reads,
/// or of another result. Functions in place write their first argument, whose shape stays.
Error check_results_are_distinct(Span<EValue*> args, const ArgKind* kinds, size_t n) {
  const size_t first = n > 0 && is_written(kinds[0]) ? 1 : 0;
  for (size_t r = first; r < n; ++r) {
    for (size_t i = 0; is_written(kinds[r]) && i < n; ++i) {
      const bool is_seen_from_there = i > r && is_written(kinds[i]);
      ET_CHECK_OR_RETURN_ERROR(
          i == r || is_seen_from_there || !holds_any(*args[i], *args[r]), InvalidProgram,
          "argument %zu is written, but argument %zu is the same tensor", r, i);
    }
  }
  return Error::Ok;
}

}  // namespace

bool check_arguments(KernelRuntimeContext& context, Span<EValue*> args, const ArgKind* kinds,
                     size_t n, bool returns_number) {
  const size_t fewest = returns_number ? n + 1 : n;
  if (args.size() < fewest || args.size() > n + 1) {
    ET_LOG(Error, "%zu arguments for a kernel with %zu parameters", args.size(), n);
    context.fail(Error::InvalidProgram);
    return false;
  }
  // Other instructions, inputs and outputs know a tensor or list as what it is.
  if (returns_number && !args[n]->isScalar() && !args[n]->isNone()) {
    ET_LOG(Error, "argument %zu takes a number, it is %s", n, tag_to_string(args[n]->tag));
    context.fail(Error::InvalidType);
    return false;
  }
  for (size_t i = 0; i < n; ++i) {
    const Error error = check_argument(*args[i], kinds[i], i);
    if (error != Error::Ok) {
      context.fail(error);
      return false;
    }
  }
  const Error error = check_results_are_distinct(args, kinds, n);
  if (error != Error::Ok) context.fail(error);
  return error == Error::Ok;
}

}  // namespace executorch::ET_RUNTIME_NAMESPACE::internal
