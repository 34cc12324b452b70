#include <executorch/runtime/core/evalue.h>

namespace executorch::runtime {
namespace {

/// Logs the mismatch; every accessor below goes through one of these two.
bool has_tag(const EValue& value, Tag expected) {
  if (ET_LIKELY(value.tag == expected)) return true;
  ET_LOG(Error, "EValue holds %s, not %s", tag_to_string(value.tag), tag_to_string(expected));
  return false;
}

void check_tag(const EValue& value, Tag expected) {
  if (!has_tag(value, expected)) runtime_abort();
}

Error element_error(const EValue* element, size_t index, Tag expected) {
  ET_CHECK_OR_RETURN_ERROR(element != nullptr, InvalidState, "list: element %zu is an empty slot",
                           index);
  ET_LOG(Error, "list: element %zu is %s, not %s", index, tag_to_string(element->tag),
         tag_to_string(expected));
  return Error::InvalidType;
}

}  // namespace

// The element types differ only in the line that stores one.

template <>
Result<aten::ArrayRef<int64_t>> BoxedEvalueList<int64_t>::tryGet() const {
  for (size_t i = 0; i < wrapped_vals_.size(); i++) {
    const EValue* element = wrapped_vals_[i];
    if (element == nullptr || !element->isInt()) return element_error(element, i, Tag::Int);
    unwrapped_vals_[i] = element->payload.copyable_union.as_int;
  }
  return aten::ArrayRef<int64_t>(unwrapped_vals_, wrapped_vals_.size());
}

template <>
Result<aten::ArrayRef<aten::Tensor>> BoxedEvalueList<aten::Tensor>::tryGet() const {
  for (size_t i = 0; i < wrapped_vals_.size(); i++) {
    const EValue* element = wrapped_vals_[i];
    if (element == nullptr || !element->isTensor()) return element_error(element, i, Tag::Tensor);
    new (&unwrapped_vals_[i]) aten::Tensor(element->payload.as_tensor);
  }
  return aten::ArrayRef<aten::Tensor>(unwrapped_vals_, wrapped_vals_.size());
}

template <>
Result<aten::ArrayRef<std::optional<aten::Tensor>>>
BoxedEvalueList<std::optional<aten::Tensor>>::tryGet() const {
  for (size_t i = 0; i < wrapped_vals_.size(); i++) {
    const EValue* element = wrapped_vals_[i];
    if (element == nullptr || element->isNone()) {
      new (&unwrapped_vals_[i]) std::optional<aten::Tensor>(std::nullopt);
    } else if (element->isTensor()) {
      new (&unwrapped_vals_[i]) std::optional<aten::Tensor>(element->payload.as_tensor);
    } else {
      return element_error(element, i, Tag::Tensor);
    }
  }
  return aten::ArrayRef<std::optional<aten::Tensor>>(unwrapped_vals_, wrapped_vals_.size());
}

EValue::EValue(aten::Scalar s) {
  if (s.isIntegral(false)) {
    tag = Tag::Int;
    payload.copyable_union.as_int = s.to<int64_t>();
  } else if (s.isBoolean()) {
    tag = Tag::Bool;
    payload.copyable_union.as_bool = s.to<bool>();
  } else {
    tag = Tag::Double;
    payload.copyable_union.as_double = s.to<double>();
  }
}

aten::Scalar EValue::toScalar() const {
  return *tryToScalar();
}

Result<aten::Scalar> EValue::tryToScalar() const {
  switch (tag) {
    case Tag::Int:
      return aten::Scalar(payload.copyable_union.as_int);
    case Tag::Double:
      return aten::Scalar(payload.copyable_union.as_double);
    case Tag::Bool:
      return aten::Scalar(payload.copyable_union.as_bool);
    default:
      ET_LOG(Error, "EValue holds %s, not a number", tag_to_string(tag));
      return Error::InvalidType;
  }
}

aten::Tensor& EValue::mutable_tensor() {
  check_tag(*this, Tag::Tensor);
  return payload.as_tensor;
}

Result<aten::Tensor> EValue::tryToTensor() const {
  if (!has_tag(*this, Tag::Tensor)) return Error::InvalidType;
  ET_CHECK_OR_RETURN_ERROR(payload.as_tensor.unsafeGetTensorImpl() != nullptr, InvalidState,
                           "EValue: null pointer to a Tensor");
  return payload.as_tensor;
}

// One aborting and one failing accessor for each type that is stored in the union itself.
#define ET_EVALUE_NUMBER(T, Name, member) \
  T EValue::to##Name() const {            \
    check_tag(*this, Tag::Name);          \
    return payload.copyable_union.member; \
  }                                       \
  Result<T> EValue::tryTo##Name() const { \
    if (!has_tag(*this, Tag::Name)) {     \
      return Error::InvalidType;          \
    }                                     \
    return payload.copyable_union.member; \
  }
ET_EVALUE_NUMBER(int64_t, Int, as_int)
ET_EVALUE_NUMBER(double, Double, as_double)
ET_EVALUE_NUMBER(bool, Bool, as_bool)
#undef ET_EVALUE_NUMBER

// The same, and a constructor, for each type behind a pointer. `read` has the pointer as `list`.
#define ET_EVALUE_POINTER(Stored, T, Name, tag_name, member, read)            \
  EValue::EValue(Stored* list) : tag(Tag::tag_name) {                         \
    ET_CHECK_MSG(list != nullptr, "EValue: null pointer to a %s", #tag_name); \
    payload.copyable_union.member = list;                                     \
  }                                                                           \
  T EValue::to##Name() const {                                                \
    return *tryTo##Name();                                                    \
  }                                                                           \
  Result<T> EValue::tryTo##Name() const {                                     \
    if (!has_tag(*this, Tag::tag_name)) {                                     \
      return Error::InvalidType;                                              \
    }                                                                         \
    Stored* list = payload.copyable_union.member;                             \
    if (list == nullptr) {                                                    \
      ET_LOG(Error, "EValue: null pointer to a %s", #tag_name);               \
      return Error::InvalidState;                                             \
    }                                                                         \
    return read;                                                              \
  }
ET_EVALUE_POINTER(aten::ArrayRef<char>, std::string_view, String, String, as_string_ptr,
                  std::string_view(list->data(), list->size()))
ET_EVALUE_POINTER(aten::ArrayRef<bool>, aten::ArrayRef<bool>, BoolList, ListBool, as_bool_list_ptr,
                  *list)
ET_EVALUE_POINTER(aten::ArrayRef<double>, aten::ArrayRef<double>, DoubleList, ListDouble,
                  as_double_list_ptr, *list)
ET_EVALUE_POINTER(BoxedEvalueList<int64_t>, aten::ArrayRef<int64_t>, IntList, ListInt,
                  as_int_list_ptr, list->tryGet())
ET_EVALUE_POINTER(BoxedEvalueList<aten::Tensor>, aten::ArrayRef<aten::Tensor>, TensorList,
                  ListTensor, as_tensor_list_ptr, list->tryGet())
ET_EVALUE_POINTER(BoxedEvalueList<std::optional<aten::Tensor>>,
                  aten::ArrayRef<std::optional<aten::Tensor>>, ListOptionalTensor,
                  ListOptionalTensor, as_list_optional_tensor_ptr, list->tryGet())
#undef ET_EVALUE_POINTER

#define ET_EVALUE_ENUM(T, Name, made)     \
  Result<T> EValue::tryTo##Name() const { \
    if (!has_tag(*this, Tag::Int)) {      \
      return Error::InvalidType;          \
    }                                     \
    return made;                          \
  }
ET_EVALUE_ENUM(aten::ScalarType, ScalarType, toScalarType())
ET_EVALUE_ENUM(aten::MemoryFormat, MemoryFormat, toMemoryFormat())
ET_EVALUE_ENUM(aten::Layout, Layout, toLayout())
ET_EVALUE_ENUM(aten::Device, Device, toDevice())
#undef ET_EVALUE_ENUM

}  // namespace executorch::runtime
