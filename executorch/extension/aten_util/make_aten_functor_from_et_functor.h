/// WRAP_TO_ATEN: a kernel of the runtime as a function on at::Tensor, to call or to register.
///
///   Tensor& scale_out(const Tensor& x, double factor, Tensor& out);
///   at::Tensor y = at::empty_like(x);
///   WRAP_TO_ATEN(scale_out, 2)(x, 0.5, y);
///   TORCH_LIBRARY(my_ops, m) {
///     m.def("scale.out(Tensor x, float factor, *, Tensor(a!) out) -> Tensor(a!)",
///           WRAP_TO_ATEN(scale_out, 2));
///   }
///
/// The second argument is the index of the (first) out tensor among the parameters, not counting a
/// KernelRuntimeContext&. It is left out for a kernel that returns by value or nothing.
///
/// Parameters become those of torch: Tensor is at::Tensor, ScalarType c10::ScalarType, ArrayRef
/// at::ArrayRef (of optional tensors: c10::List), integers int64_t, floating types double, and so
/// on; optionals stay optionals.
///   Tensors  are on the CPU. Kernels see them contiguous: an argument with other strides is copied
///            before the call and, if the kernel writes it (Tensor&), copied back after it.
///   Out      takes the sizes that the kernel gives it, at most as many elements as it came with.
///   Errors   a failure reported through the context is thrown as c10::Error.
///
/// Header only; compile with torch's headers, exceptions and RTTI.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/List.h>

#include <executorch/extension/aten_util/aten_bridge.h>
#include <executorch/extension/memory_allocator/malloc_memory_allocator.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace executorch::extension::internal {

/// How a value of the runtime's type T looks in torch (Aten), and its conversion, which lives as
/// long as the call. Numbers and strings are the same on both sides but for their width.
template <typename T>
struct FromAten {
  using Aten = std::conditional_t<
      std::is_same_v<T, bool>, bool,
      std::conditional_t<std::is_integral_v<T>, int64_t,
                         std::conditional_t<std::is_floating_point_v<T>, double, T>>>;
  explicit FromAten(const Aten& aten) : value(static_cast<T>(aten)) {}
  T value;
};

template <>
struct FromAten<aten::ScalarType> {
  using Aten = c10::ScalarType;
  explicit FromAten(Aten aten) : value(torch_to_executorch_scalar_type(aten)) {}
  aten::ScalarType value;
};

template <>
struct FromAten<aten::Scalar> {
  using Aten = at::Scalar;
  explicit FromAten(const Aten& aten)
      : value(aten.isBoolean()         ? aten::Scalar(aten.toBool())
              : aten.isFloatingPoint() ? aten::Scalar(aten.toDouble())
                                       : aten::Scalar(aten.toLong())) {}
  aten::Scalar value;
};

template <>
struct FromAten<aten::MemoryFormat> {
  using Aten = c10::MemoryFormat;
  explicit FromAten(Aten aten) : value(static_cast<aten::MemoryFormat>(aten)) {
    TORCH_CHECK(aten == c10::MemoryFormat::Contiguous || aten == c10::MemoryFormat::Preserve,
                "ExecuTorch has no memory format ", aten);
  }
  aten::MemoryFormat value;
};

template <>
struct FromAten<aten::Layout> {
  using Aten = c10::Layout;
  explicit FromAten(Aten aten) : value(aten::Layout::Strided) {
    TORCH_CHECK(aten == c10::Layout::Strided, "ExecuTorch has no layout ", aten);
  }
  aten::Layout value;
};

template <>
struct FromAten<aten::Device> {
  using Aten = c10::Device;
  explicit FromAten(Aten aten) : value(checked(aten)) {}
  static aten::Device checked(Aten aten) {
    const auto device = torch_to_executorch_device(aten);
    TORCH_CHECK(device.has_value(), "ExecuTorch has no device ", aten);
    return *device;
  }
  aten::Device value;
};

template <>
struct FromAten<aten::Tensor> {
  using Aten = at::Tensor;
  explicit FromAten(const Aten& aten)
      : memory(with_data(aten).resolve_conj().resolve_neg().contiguous()),
        tensor(alias_tensor_ptr_to_attensor(memory)),
        value(*tensor) {}

  static const Aten& with_data(const Aten& aten) {
    TORCH_CHECK(!aten.is_meta() && !aten.unsafeGetTensorImpl()->is_python_dispatch(),
                "a kernel of ExecuTorch was called with a tensor without data, as when a model is "
                "exported: define the operator by its schema alone, give the kernel to one "
                "device, TORCH_LIBRARY_IMPL(ns, CPU, m) { m.impl(\"op\", fn); }, and its shapes "
                "to Meta or torch.library.register_fake");
    TORCH_CHECK(aten.is_cpu(), "kernels of ExecuTorch run on CPU tensors, not on ", aten.device());
    return aten;
  }

  /// After the call: gives `written` the sizes and elements that the kernel left.
  void copy_back(Aten& written) const {
    const std::vector<int64_t> sizes(value.sizes().begin(), value.sizes().end());
    const bool shared = memory.is_alias_of(written) && written.is_contiguous();
    if (written.sizes() != at::IntArrayRef(sizes)) written.resize_(sizes);
    if (!shared) written.copy_(alias_attensor_to_etensor(value));
  }

  at::Tensor memory;
  TensorPtr tensor;
  aten::Tensor value;
};

/// Numbers of equal type are used where they lie, others converted one by one.
template <typename T>
struct FromAten<aten::ArrayRef<T>> {
  using Aten = at::ArrayRef<typename FromAten<T>::Aten>;
  explicit FromAten(Aten aten) {
    items.reserve(aten.size());
    values.reserve(aten.size());
    for (const auto& item : aten) {
      items.emplace_back(item);
      values.push_back(items.back().value);
    }
    value = {values.data(), values.size()};
  }
  std::vector<FromAten<T>> items;
  std::vector<T> values;
  aten::ArrayRef<T> value;
};

template <>
struct FromAten<aten::ArrayRef<bool>> {
  using Aten = at::ArrayRef<bool>;
  explicit FromAten(Aten aten) : value(aten.data(), aten.size()) {}
  aten::ArrayRef<bool> value;
};

template <typename T>
struct FromAten<std::optional<T>> {
  using Aten = std::optional<typename FromAten<T>::Aten>;
  explicit FromAten(const Aten& aten) {
    if (aten.has_value()) {
      item.emplace(*aten);
      value.emplace(item->value);
    }
  }
  std::optional<FromAten<T>> item;
  std::optional<T> value;
};

template <typename T>
struct FromAten<std::optional<aten::ArrayRef<T>>> {
  // std::optional<at::ArrayRef> would dangle, so that torch refuses it in operators.
  using Aten = c10::OptionalArrayRef<typename FromAten<T>::Aten>;
  explicit FromAten(const Aten& aten) {
    if (aten.has_value()) {
      item.emplace(*aten);
      value.emplace(item->value);
    }
  }
  std::optional<FromAten<aten::ArrayRef<T>>> item;
  std::optional<aten::ArrayRef<T>> value;
};

template <>
struct FromAten<aten::ArrayRef<std::optional<aten::Tensor>>> {
  using Aten = c10::List<std::optional<at::Tensor>>;
  explicit FromAten(const Aten& aten) {
    items.reserve(aten.size());
    for (size_t i = 0; i < aten.size(); ++i) {
      items.emplace_back(aten.get(i));
      values.push_back(items.back().value);
    }
    value = {values.data(), values.size()};
  }
  std::vector<FromAten<std::optional<aten::Tensor>>> items;
  std::vector<std::optional<aten::Tensor>> values;
  aten::ArrayRef<std::optional<aten::Tensor>> value;
};

/// A parameter declared as P, in torch.
template <typename P>
struct AtenParameter {
  using type = typename FromAten<std::decay_t<P>>::Aten;
};
template <>
struct AtenParameter<aten::Tensor&> {
  using type = at::Tensor&;
};
template <>
struct AtenParameter<const aten::Tensor&> {
  using type = const at::Tensor&;
};

/// A result of type R, in torch: the out arguments, or a value.
template <typename R>
struct AtenResult {
  using type = typename FromAten<std::decay_t<R>>::Aten;
  static constexpr size_t kOuts = 0;
  static type convert(const R& result) { return static_cast<type>(result); }
};
template <>
struct AtenResult<void> {
  using type = void;
  static constexpr size_t kOuts = 0;
};
template <>
struct AtenResult<aten::Tensor> {
  using type = at::Tensor;
  static constexpr size_t kOuts = 0;
  static type convert(const aten::Tensor& result) {
    return alias_attensor_to_etensor(result).clone();
  }
};
template <>
struct AtenResult<aten::Tensor&> {
  using type = at::Tensor&;
  static constexpr size_t kOuts = 1;
};
template <typename... R>
struct AtenResult<std::tuple<R...>> {
  using type = std::tuple<typename AtenResult<R>::type...>;
  static constexpr size_t kOuts = (std::is_same_v<R, aten::Tensor&> + ... + 0);
  static_assert(kOuts == 0 || kOuts == sizeof...(R), "a kernel returns out tensors or values");
  static type convert(const std::tuple<R...>& result) {
    return std::apply([](const R&... r) { return type{AtenResult<R>::convert(r)...}; }, result);
  }
};

inline void check_context(const runtime::KernelRuntimeContext& context) {
  const runtime::Error error = context.failure_state();
  TORCH_CHECK(error == runtime::Error::Ok, "the kernel failed: ", runtime::to_string(error));
}

template <bool kHasContext, auto Fn, int kOut, typename R, typename... P>
struct AtenCall {
  using Result = AtenResult<R>;
  static constexpr size_t kOuts = Result::kOuts;
  static_assert(kOuts == 0 || kOut >= 0,
                "WRAP_TO_ATEN(fn, n): the kernel returns its out tensor; n is its index");
  static_assert(kOut < static_cast<int>(sizeof...(P)) &&
                    (kOuts == 0 || kOut + kOuts <= sizeof...(P)),
                "WRAP_TO_ATEN(fn, n): n is not the index of a parameter");
  template <size_t... I>
  static constexpr bool outs_are_tensors(std::index_sequence<I...>) {
    using Params = std::tuple<P..., void*>;
    return (
        std::is_same_v<std::tuple_element_t<(kOut < 0 ? 0 : kOut) + I, Params>, aten::Tensor&> &&
        ...);
  }
  static_assert(outs_are_tensors(std::make_index_sequence<kOuts>()),
                "WRAP_TO_ATEN(fn, n): parameter n is no Tensor&, which the kernel returns");

  static typename Result::type call(typename AtenParameter<P>::type... arguments) {
    return call_converted(std::index_sequence_for<P...>(),
                          std::tuple<typename AtenParameter<P>::type&...>(arguments...));
  }

 private:
  template <size_t... I, typename Arguments>
  static typename Result::type call_converted(std::index_sequence<I...>, Arguments arguments) {
    std::tuple<FromAten<std::decay_t<P>>...> converted{
        FromAten<std::decay_t<P>>(std::get<I>(arguments))...};
    MallocMemoryAllocator temp_memory;
    runtime::KernelRuntimeContext context(nullptr, &temp_memory);
    const auto run = [&]() -> R {
      if constexpr (kHasContext) {
        return Fn(context, std::get<I>(converted).value...);
      } else {
        return Fn(std::get<I>(converted).value...);
      }
    };
    const auto finish = [&] {
      check_context(context);
      (copy_back<P>(std::get<I>(converted), std::get<I>(arguments)), ...);
    };
    if constexpr (std::is_void_v<R>) {
      run();
      finish();
    } else if constexpr (kOuts == 0) {
      const R result = run();
      finish();
      return Result::convert(result);
    } else {
      run();
      finish();
      return outs(arguments, std::make_index_sequence<kOuts>());
    }
  }

  template <typename Param, typename Converted, typename Argument>
  static void copy_back(const Converted& converted, Argument& argument) {
    if constexpr (std::is_same_v<Param, aten::Tensor&>) {
      converted.copy_back(argument);
    }
  }

  template <typename Arguments, size_t... I>
  static typename Result::type outs(Arguments& arguments, std::index_sequence<I...>) {
    if constexpr (kOuts == 1) {
      return {std::get<kOut>(arguments)};
    } else {
      return typename Result::type(std::get<kOut + I>(arguments)...);
    }
  }
};

template <auto Fn, int kOut, typename Function = decltype(Fn)>
struct AtenFunction;
template <auto Fn, int kOut, typename R, typename... P>
struct AtenFunction<Fn, kOut, R (*)(P...)> : AtenCall<false, Fn, kOut, R, P...> {};
template <auto Fn, int kOut, typename R, typename... P>
struct AtenFunction<Fn, kOut, R (*)(runtime::KernelRuntimeContext&, P...)>
    : AtenCall<true, Fn, kOut, R, P...> {};

}  // namespace executorch::extension::internal

/// WRAP_TO_ATEN(fn) or WRAP_TO_ATEN(fn, index of the first out parameter): a function pointer.
#define WRAP_TO_ATEN(...) ET_INTERNAL_WRAP_TO_ATEN(__VA_ARGS__, -1, )
#define ET_INTERNAL_WRAP_TO_ATEN(func, out_index, ...) \
  (&::executorch::extension::internal::AtenFunction<&func, out_index>::call)
