#pragma once

#include <cstdint>
#include <new>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/tag.h>
#include <executorch/runtime/platform/assert.h>

namespace executorch::runtime {

struct EValue;

/// A list whose elements are values of a program: a table of pointers to them, and room where
/// their present contents are gathered by each get(). Both tables are borrowed.
template <typename T>
class BoxedEvalueList {
 public:
  BoxedEvalueList() = default;
  /// `wrapped_vals` and `unwrapped_vals` have `size` entries; the latter need not be initialised.
  BoxedEvalueList(EValue** wrapped_vals, T* unwrapped_vals, int size)
      : wrapped_vals_(checked(wrapped_vals, unwrapped_vals, size), static_cast<size_t>(size)),
        unwrapped_vals_(unwrapped_vals) {}

  /// The elements, valid until the next call. Aborts where tryGet() fails.
  aten::ArrayRef<T> get() const;
  /// InvalidState for an empty slot, InvalidType for an element of another type.
  Result<aten::ArrayRef<T>> tryGet() const;

  /// The values themselves; null for an empty slot.
  aten::ArrayRef<EValue*> values() const { return wrapped_vals_; }

  /// Ends the life of the gathered elements.
  void destroy_elements() {
    for (size_t i = 0; i < wrapped_vals_.size(); i++) unwrapped_vals_[i].~T();
  }

 private:
  static EValue** checked(EValue** wrapped_vals, T* unwrapped_vals, int size) {
    ET_CHECK_MSG(wrapped_vals != nullptr && unwrapped_vals != nullptr && size >= 0,
                 "a list needs both tables and a size of at least 0, not %d", size);
    return wrapped_vals;
  }

  aten::ArrayRef<EValue*> wrapped_vals_;
  mutable T* unwrapped_vals_ = nullptr;
};

template <>
Result<aten::ArrayRef<int64_t>> BoxedEvalueList<int64_t>::tryGet() const;
template <>
Result<aten::ArrayRef<aten::Tensor>> BoxedEvalueList<aten::Tensor>::tryGet() const;
/// A null slot or a None is an absent tensor.
template <>
Result<aten::ArrayRef<std::optional<aten::Tensor>>>
BoxedEvalueList<std::optional<aten::Tensor>>::tryGet() const;

template <typename T>
aten::ArrayRef<T> BoxedEvalueList<T>::get() const {
  return *tryGet();
}

namespace internal {

// What to<T>() of an lvalue returns: a reference for Tensor, a value for all others.
template <typename T>
struct evalue_to_const_ref_overload_return {
  using type = T;
};
template <>
struct evalue_to_const_ref_overload_return<aten::Tensor> {
  using type = const aten::Tensor&;
};
template <typename T>
struct evalue_to_ref_overload_return {
  using type = T;
};
template <>
struct evalue_to_ref_overload_return<aten::Tensor> {
  using type = aten::Tensor&;
};

// Reads a T out of an EValue; specialised below the class for every type that it can hold.
template <typename T>
struct EValueReader;

}  // namespace internal

/// A value of a program: none, a number, a string, a tensor handle, or a list. Tensors are held by
/// handle, strings and lists by pointer; what they point to is borrowed.
///
/// `toX()` aborts when the value is of another type; `tryToX()` returns InvalidType instead, and
/// InvalidState for a null pointer and for a list with an empty slot.
struct EValue {
  union Payload {
    union TriviallyCopyablePayload {
      TriviallyCopyablePayload() : as_int(0) {}
      int64_t as_int;
      double as_double;
      bool as_bool;
      aten::ArrayRef<char>* as_string_ptr;
      aten::ArrayRef<double>* as_double_list_ptr;
      aten::ArrayRef<bool>* as_bool_list_ptr;
      BoxedEvalueList<int64_t>* as_int_list_ptr;
      BoxedEvalueList<aten::Tensor>* as_tensor_list_ptr;
      BoxedEvalueList<std::optional<aten::Tensor>>* as_list_optional_tensor_ptr;
    } copyable_union;
    aten::Tensor as_tensor;

    Payload() {}
    ~Payload() {}
  };

  /// `tag` says which member is valid.
  Payload payload;
  Tag tag;

  /// None.
  EValue() : tag(Tag::None) { payload.copyable_union.as_int = 0; }
  EValue(const EValue& rhs) : tag(rhs.tag) { copy_payload(rhs); }
  /// Leaves `rhs` None.
  EValue(EValue&& rhs) noexcept : tag(rhs.tag) {
    copy_payload(rhs);
    rhs.clearToNone();
  }
  EValue& operator=(EValue&& rhs) & noexcept {
    if (this != &rhs) {
      tag = rhs.tag;
      copy_payload(rhs);
      rhs.clearToNone();
    }
    return *this;
  }
  EValue& operator=(EValue const& rhs) & {
    tag = rhs.tag;
    copy_payload(rhs);
    return *this;
  }
  ~EValue() {}

  EValue(int64_t i) : tag(Tag::Int) { payload.copyable_union.as_int = i; }
  /// Any other integer type, such as that of a literal.
  template <typename T,
            typename std::enable_if<std::is_integral<T>::value && !std::is_same<T, bool>::value &&
                                        !std::is_same<T, int64_t>::value,
                                    bool>::type = true>
  EValue(T i) : EValue(static_cast<int64_t>(i)) {}
  EValue(double d) : tag(Tag::Double) { payload.copyable_union.as_double = d; }
  EValue(bool b) : tag(Tag::Bool) { payload.copyable_union.as_bool = b; }
  EValue(aten::Scalar s);
  EValue(aten::Tensor t) : tag(Tag::Tensor) { new (&payload.as_tensor) aten::Tensor(t); }
  // A pointer would silently become a Bool.
  template <typename T>
  explicit EValue(T* value) = delete;
  EValue(aten::ArrayRef<char>* s);
  EValue(BoxedEvalueList<int64_t>* i);
  EValue(aten::ArrayRef<bool>* b);
  EValue(aten::ArrayRef<double>* d);
  EValue(BoxedEvalueList<aten::Tensor>* t);
  EValue(BoxedEvalueList<std::optional<aten::Tensor>>* t);

  /// Takes the value that a smart pointer or another handle points to. Aborts if it is null.
  template <typename T, typename = typename std::enable_if<std::is_convertible<
                            decltype(*std::forward<T>(std::declval<T>())), EValue>::value>::type>
  EValue(T&& value) : EValue(dereferenced(value)) {}

  bool isNone() const { return tag == Tag::None; }
  bool isInt() const { return tag == Tag::Int; }
  bool isDouble() const { return tag == Tag::Double; }
  bool isBool() const { return tag == Tag::Bool; }
  /// Int, Double or Bool.
  bool isScalar() const { return isInt() || isDouble() || isBool(); }
  bool isTensor() const { return tag == Tag::Tensor; }
  bool isString() const { return tag == Tag::String; }
  bool isIntList() const { return tag == Tag::ListInt; }
  bool isBoolList() const { return tag == Tag::ListBool; }
  bool isDoubleList() const { return tag == Tag::ListDouble; }
  bool isTensorList() const { return tag == Tag::ListTensor; }
  bool isListOptionalTensor() const { return tag == Tag::ListOptionalTensor; }

  int64_t toInt() const;
  Result<int64_t> tryToInt() const;
  double toDouble() const;
  Result<double> tryToDouble() const;
  bool toBool() const;
  Result<bool> tryToBool() const;
  aten::Scalar toScalar() const;
  Result<aten::Scalar> tryToScalar() const;
  aten::Tensor toTensor() && { return mutable_tensor(); }
  aten::Tensor& toTensor() & { return mutable_tensor(); }
  const aten::Tensor& toTensor() const& { return const_cast<EValue*>(this)->mutable_tensor(); }
  Result<aten::Tensor> tryToTensor() const;
  std::string_view toString() const;
  Result<std::string_view> tryToString() const;
  aten::ArrayRef<int64_t> toIntList() const;
  Result<aten::ArrayRef<int64_t>> tryToIntList() const;
  aten::ArrayRef<bool> toBoolList() const;
  Result<aten::ArrayRef<bool>> tryToBoolList() const;
  aten::ArrayRef<double> toDoubleList() const;
  Result<aten::ArrayRef<double>> tryToDoubleList() const;
  aten::ArrayRef<aten::Tensor> toTensorList() const;
  Result<aten::ArrayRef<aten::Tensor>> tryToTensorList() const;
  aten::ArrayRef<std::optional<aten::Tensor>> toListOptionalTensor() const;
  Result<aten::ArrayRef<std::optional<aten::Tensor>>> tryToListOptionalTensor() const;

  // These are Ints that hold the enumerator; tryTo... does not check its value.
  aten::ScalarType toScalarType() const { return static_cast<aten::ScalarType>(toInt()); }
  Result<aten::ScalarType> tryToScalarType() const;
  aten::MemoryFormat toMemoryFormat() const { return static_cast<aten::MemoryFormat>(toInt()); }
  Result<aten::MemoryFormat> tryToMemoryFormat() const;
  aten::Layout toLayout() const { return static_cast<aten::Layout>(toInt()); }
  Result<aten::Layout> tryToLayout() const;
  aten::Device toDevice() const { return {static_cast<aten::DeviceType>(toInt()), -1}; }
  Result<aten::Device> tryToDevice() const;

  /// T: Scalar, int64_t, bool, double, string_view, ScalarType, MemoryFormat, Layout, Device,
  /// Tensor, the ArrayRef types above, or std::optional of any of these.
  template <typename T>
  T to() && {
    return internal::EValueReader<T>::get(*this);
  }
  template <typename T>
  typename internal::evalue_to_const_ref_overload_return<T>::type to() const& {
    return internal::EValueReader<T>::get(*this);
  }
  template <typename T>
  typename internal::evalue_to_ref_overload_return<T>::type to() & {
    return internal::EValueReader<T>::get(*this);
  }
  template <typename T>
  Result<T> tryTo() const {
    return internal::EValueReader<T>::try_get(*this);
  }

  /// nullopt for None.
  template <typename T>
  std::optional<T> toOptional() const {
    return isNone() ? std::nullopt : std::optional<T>(to<T>());
  }
  template <typename T>
  Result<std::optional<T>> tryToOptional() const {
    if (isNone()) return std::optional<T>(std::nullopt);
    ET_ASSIGN_OR_RETURN(T value, tryTo<T>());
    return std::optional<T>(std::move(value));
  }

 private:
  void clearToNone() noexcept {
    payload.copyable_union.as_int = 0;
    tag = Tag::None;
  }

  void copy_payload(const EValue& rhs) noexcept {
    static_assert(std::is_trivially_copyable_v<aten::Tensor>, "a Tensor is copied as bytes");
    if (tag == Tag::Tensor) {
      new (&payload.as_tensor) aten::Tensor(rhs.payload.as_tensor);
    } else {
      payload.copyable_union = rhs.payload.copyable_union;
    }
  }

  template <typename T>
  static auto dereferenced(T&& value) -> decltype(*std::forward<T>(value)) {
    ET_CHECK_MSG(static_cast<bool>(value), "an EValue cannot be made from a null pointer");
    return *std::forward<T>(value);
  }

  aten::Tensor& mutable_tensor();
};

namespace internal {

#define EVALUE_DEFINE_TO(T, method)                                                 \
  template <>                                                                       \
  struct EValueReader<T> {                                                          \
    static T get(const EValue& value) { return value.to##method(); }                \
    static Result<T> try_get(const EValue& value) { return value.tryTo##method(); } \
  };
EVALUE_DEFINE_TO(aten::Scalar, Scalar)
EVALUE_DEFINE_TO(int64_t, Int)
EVALUE_DEFINE_TO(bool, Bool)
EVALUE_DEFINE_TO(double, Double)
EVALUE_DEFINE_TO(std::string_view, String)
EVALUE_DEFINE_TO(aten::ScalarType, ScalarType)
EVALUE_DEFINE_TO(aten::MemoryFormat, MemoryFormat)
EVALUE_DEFINE_TO(aten::Layout, Layout)
EVALUE_DEFINE_TO(aten::Device, Device)
EVALUE_DEFINE_TO(aten::ArrayRef<int64_t>, IntList)
EVALUE_DEFINE_TO(aten::ArrayRef<double>, DoubleList)
EVALUE_DEFINE_TO(aten::ArrayRef<bool>, BoolList)
EVALUE_DEFINE_TO(aten::ArrayRef<aten::Tensor>, TensorList)
EVALUE_DEFINE_TO(aten::ArrayRef<std::optional<aten::Tensor>>, ListOptionalTensor)
#undef EVALUE_DEFINE_TO

template <>
struct EValueReader<aten::Tensor> {
  static aten::Tensor& get(EValue& value) { return value.toTensor(); }
  static const aten::Tensor& get(const EValue& value) { return value.toTensor(); }
  static Result<aten::Tensor> try_get(const EValue& value) { return value.tryToTensor(); }
};

template <typename T>
struct EValueReader<std::optional<T>> {
  static std::optional<T> get(const EValue& value) { return value.toOptional<T>(); }
  static Result<std::optional<T>> try_get(const EValue& value) { return value.tryToOptional<T>(); }
};

}  // namespace internal
}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::BoxedEvalueList;
using ::executorch::runtime::EValue;
}  // namespace torch::executor
