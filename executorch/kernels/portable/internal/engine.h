/// How tensors are handed to the compute engine (executorch/cpu).
#pragma once

#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/types.h>
#include <executorch/kernels/portable/internal/dtype.h>

#include <optional>
#include <type_traits>

namespace torch::executor::native::internal {

/// The engine's name of a floating type it stores; none for Double and others.
constexpr std::optional<executorch::cpu::Type> engine_type(ScalarType t) {
  switch (t) {
    case ScalarType::Float:
      return executorch::cpu::Type::F32;
    case ScalarType::Half:
      return executorch::cpu::Type::F16;
    case ScalarType::BFloat16:
      return executorch::cpu::Type::BF16;
    default:
      return std::nullopt;
  }
}

/// An activation of the engine's as an inner loop of elementwise.h; `activation` points to it.
inline void activation_loop(const void* const* in, void* out, int64_t n, const void* activation) {
  executorch::cpu::apply(*static_cast<const executorch::cpu::Activation*>(activation),
                         static_cast<const float*>(in[0]), static_cast<float*>(out), n);
}

/// The engine's type for elements of T.
template <class T>
using EngineType =
    std::conditional_t<std::is_same_v<T, Half>, executorch::cpu::F16,
                       std::conditional_t<std::is_same_v<T, BFloat16>, executorch::cpu::BF16, T>>;

}  // namespace torch::executor::native::internal
