/// Boxing: turns an ordinary C++ function into a kernel that the executor can call.
///
///   Tensor& add_out(KernelRuntimeContext& ctx, const Tensor& a, const Tensor& b,
///                   const Scalar& alpha, Tensor& out);
///   constexpr Kernel kOps[] = {ET_OP("aten::add.out", add_out)};
///
/// Each parameter is read from the argument at its place by its type: Tensor (any reference),
/// int64_t, double, bool, Scalar, std::string_view, ScalarType, MemoryFormat, Layout, Device,
/// ArrayRef of int64_t, double, bool, Tensor or std::optional<Tensor>, and std::optional of any of
/// these. A leading KernelRuntimeContext& is optional. Callers may pass one argument more: programs
/// repeat the output at the end. A number that the function returns by value is stored there.
///
/// A wrong count of arguments fails the context with InvalidProgram, an argument of another type
/// with InvalidType, a constant where the function writes (a Tensor&, or the list of a function
/// without result) with InvalidProgram; the function is not called then. InvalidProgram, too, where
/// one tensor is written and is another argument as well: to give a result its shape would change
/// the operand. A function whose first argument is written works in place, and sees to that itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>

namespace executorch {
namespace ET_RUNTIME_NAMESPACE {
namespace internal {

/// The kind of value that an argument must be. Arguments are checked from a table of these, which
/// keeps the code of each kernel's wrapper small.
enum class ArgKind : uint8_t {
  kTensor,
  kInt,
  kDouble,
  kBool,
  kScalar,
  kString,
  kScalarType,
  kEnum,
  kIntList,
  kDoubleList,
  kBoolList,
  kTensorList,
  kOptionalTensorList,
  /// Added to the others: None is allowed too; the function writes it.
  kOptional = 0x80,
  kWritten = 0x40,
};

/// Checks the count (`n`, or `n` + 1; exactly the latter when `returns_number`) and each kind; on
/// a mismatch logs, fails the context and returns false.
bool check_arguments(KernelRuntimeContext& context, Span<EValue*> args, const ArgKind* kinds,
                     size_t n, bool returns_number);

/// The ArgKind of a parameter type T, and the unchecked read of such an argument.
template <typename T>
struct Argument;

#define ET_INTERNAL_ARGUMENT(T, kind_name, expression)       \
  template <>                                                \
  struct Argument<T> {                                       \
    static constexpr ArgKind kind = ArgKind::kind_name;      \
    static T get(const EValue& value) { return expression; } \
  };
ET_INTERNAL_ARGUMENT(int64_t, kInt, value.payload.copyable_union.as_int)
ET_INTERNAL_ARGUMENT(bool, kBool, value.payload.copyable_union.as_bool)
ET_INTERNAL_ARGUMENT(double, kDouble,
                     value.isInt() ? static_cast<double>(value.payload.copyable_union.as_int)
                                   : value.payload.copyable_union.as_double)
ET_INTERNAL_ARGUMENT(aten::Scalar, kScalar, value.toScalar())
ET_INTERNAL_ARGUMENT(std::string_view, kString, value.toString())
ET_INTERNAL_ARGUMENT(aten::ScalarType, kScalarType, value.toScalarType())
ET_INTERNAL_ARGUMENT(aten::MemoryFormat, kEnum, value.toMemoryFormat())
ET_INTERNAL_ARGUMENT(aten::Layout, kEnum, value.toLayout())
ET_INTERNAL_ARGUMENT(aten::Device, kEnum, value.toDevice())
ET_INTERNAL_ARGUMENT(aten::ArrayRef<int64_t>, kIntList, value.toIntList())
ET_INTERNAL_ARGUMENT(aten::ArrayRef<double>, kDoubleList, value.toDoubleList())
ET_INTERNAL_ARGUMENT(aten::ArrayRef<bool>, kBoolList, value.toBoolList())
ET_INTERNAL_ARGUMENT(aten::ArrayRef<aten::Tensor>, kTensorList, value.toTensorList())
ET_INTERNAL_ARGUMENT(aten::ArrayRef<std::optional<aten::Tensor>>, kOptionalTensorList,
                     value.toListOptionalTensor())
#undef ET_INTERNAL_ARGUMENT

template <>
struct Argument<aten::Tensor> {
  static constexpr ArgKind kind = ArgKind::kTensor;
  static aten::Tensor& get(EValue& value) { return value.payload.as_tensor; }
};

template <typename T>
struct Argument<std::optional<T>> {
  static constexpr ArgKind kind = static_cast<ArgKind>(static_cast<uint8_t>(ArgKind::kOptional) |
                                                       static_cast<uint8_t>(Argument<T>::kind));
  static std::optional<T> get(EValue& value) {
    return value.isNone() ? std::nullopt : std::optional<T>(Argument<T>::get(value));
  }
};

/// The ArgKind of a parameter as declared, in a function that returns Ret.
template <typename Ret, typename Param>
constexpr ArgKind kind_of() {
  constexpr bool kWritten =
      std::is_same_v<Param, aten::Tensor&> ||
      (std::is_void_v<Ret> && std::is_same_v<std::decay_t<Param>, aten::ArrayRef<aten::Tensor>>);
  return static_cast<ArgKind>(static_cast<uint8_t>(Argument<std::decay_t<Param>>::kind) |
                              (kWritten ? static_cast<uint8_t>(ArgKind::kWritten) : 0));
}

template <bool kHasContext, typename Ret, typename... Params>
struct BoxedCall {
  template <auto Fn>
  static void call(KernelRuntimeContext& context, Span<EValue*> args) {
    call_unpacked<Fn>(context, args, std::index_sequence_for<Params...>());
  }

 private:
  static constexpr bool kReturnsNumber =
      std::is_arithmetic_v<Ret> || std::is_same_v<Ret, aten::Scalar>;

  template <auto Fn, size_t... I>
  static void call_unpacked(KernelRuntimeContext& context, Span<EValue*> args,
                            std::index_sequence<I...>) {
    // The last entry keeps the array from being empty.
    static constexpr ArgKind kKinds[] = {kind_of<Ret, Params>()..., ArgKind::kOptional};
    if (!check_arguments(context, args, kKinds, sizeof...(Params), kReturnsNumber)) return;
    EValue* const* values = args.data();
    const auto run = [&]() -> Ret {
      (void)values;
      if constexpr (kHasContext) {
        return Fn(context, Argument<std::decay_t<Params>>::get(*values[I])...);
      } else {
        return Fn(Argument<std::decay_t<Params>>::get(*values[I])...);
      }
    };
    if constexpr (kReturnsNumber) {
      *values[sizeof...(Params)] = EValue(run());
    } else {
      run();
    }
  }
};

template <typename Function>
struct BoxedSignature;
template <typename Ret, typename... Params>
struct BoxedSignature<Ret (*)(Params...)> : BoxedCall<false, Ret, Params...> {};
template <typename Ret, typename... Params>
struct BoxedSignature<Ret (*)(KernelRuntimeContext&, Params...)> : BoxedCall<true, Ret, Params...> {
};

/// Whether `text` has the form of a kernel key; "" stands for none.
constexpr bool is_kernel_key(const char* text) {
  if (text[0] == '\0') return true;
  if (text[0] != 'v' || text[1] != '1' || text[2] != '/') return false;
  bool has_digit = false;
  bool in_order = false;
  for (text += 3; *text != '\0'; ++text) {
    if (*text >= '0' && *text <= '9') {
      has_digit = true;
      continue;
    }
    const bool separates = in_order ? *text == ',' || *text == '|' : *text == ';';
    // Only a scalar's order, between ";" and "|", is empty.
    if (!separates || (!has_digit && !(*text == '|' && text[-1] == ';'))) return false;
    in_order = *text != '|';
    has_digit = false;
  }
  return in_order && (has_digit || text[-1] == ';');
}

}  // namespace internal

/// The function `Fn` (a pointer) with the signature of a kernel.
template <auto Fn>
void boxed(KernelRuntimeContext& context, Span<EValue*> args) {
  internal::BoxedSignature<decltype(Fn)>::template call<Fn>(context, args);
}

}  // namespace ET_RUNTIME_NAMESPACE

namespace extension {

/// A function as a type; made by EXECUTORCH_FN.
template <auto Fn>
struct CompileTimeFunctionPointer {
  static constexpr auto func_ptr() { return Fn; }
};

template <class FuncType>
struct WrapUnboxedIntoFunctor {
  static void call(::executorch::ET_RUNTIME_NAMESPACE::KernelRuntimeContext& context,
                   runtime::Span<runtime::EValue*> args) {
    ::executorch::ET_RUNTIME_NAMESPACE::boxed<FuncType::func_ptr()>(context, args);
  }
};

/// A row for the function in `FuncType`, under the operator's whole name.
template <class FuncType>
static runtime::Kernel make_boxed_kernel(const char* name, FuncType) {
  return runtime::Kernel(name, WrapUnboxedIntoFunctor<FuncType>::call);
}

}  // namespace extension
}  // namespace executorch

namespace torch::executor {
using ::executorch::extension::make_boxed_kernel;
using ::executorch::extension::WrapUnboxedIntoFunctor;
}  // namespace torch::executor

/// A table row: an operator's whole name and the function that computes it. What follows is not
/// compiled; the build reads it from the source (tools/cmake/OperatorRows.cmake):
///   "(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"  the schema, of an operator that torch lacks
///   copy                                           the work, where it is not that of the family
#define ET_OP(name, func, ...) \
  ::executorch::runtime::Kernel(name, ::executorch::runtime::boxed<&func>)

/// A function as a type and as an object of that type. A second argument, a name for profiling, is
/// accepted; events carry the operator's own name.
#define EXECUTORCH_FN_TYPE(func, ...) ::executorch::extension::CompileTimeFunctionPointer<&func>
#define EXECUTORCH_FN(func, ...) EXECUTORCH_FN_TYPE(func)()

/// EXECUTORCH_LIBRARY(my_ops, "scale.out", scale_out): registers my_ops::scale.out before main(),
/// or when the shared library that contains it is loaded. A fourth argument, the text of a
/// KernelKey, makes it a kernel for those element types and dim orders only:
///   EXECUTORCH_LIBRARY(my_ops, "scale.out", scale_float_2d_out, "v1/6;0,1|6;0,1")
/// An operator that another library registered before keeps that kernel; the log names both places.
#define EXECUTORCH_LIBRARY(ns, op_name, ...) \
  ET_INTERNAL_LIBRARY(ns, op_name, __COUNTER__, __VA_ARGS__, "", "")
#define ET_INTERNAL_LIBRARY(ns, op_name, id, ...) \
  ET_INTERNAL_LIBRARY_AT(ns, op_name, id, __VA_ARGS__)
#define ET_INTERNAL_LIBRARY_AT(ns, op_name, id, func, key, ...)                               \
  static_assert(::executorch::runtime::internal::is_kernel_key(key),                          \
                "a kernel key reads v1/<dtype>;<dim>,<dim>|<dtype>;...");                     \
  [[maybe_unused]] static const ::executorch::runtime::Error executorch_library_##ns##_##id = \
      ::executorch::runtime::register_kernel(::executorch::runtime::Kernel(                   \
          #ns "::" op_name, ::executorch::runtime::KernelKey(key[0] == '\0' ? nullptr : key), \
          ::executorch::extension::WrapUnboxedIntoFunctor<EXECUTORCH_FN_TYPE(func)>::call,    \
          __FILE__ ":" ET_INTERNAL_TEXT(__LINE__)))
#define ET_INTERNAL_TEXT(line) ET_INTERNAL_TEXT_OF(line)
#define ET_INTERNAL_TEXT_OF(line) #line
