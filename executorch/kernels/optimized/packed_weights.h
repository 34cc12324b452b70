/// Constant matrices that a program multiplies by, packed once.
#pragma once

#include <executorch/cpu/gemm/gemm.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>

#include <cstdint>

namespace executorch::optimized {

/// The weight of one call. It is packed, for all methods of the program, when some hundred rows have
/// been multiplied by it; its own memory is given back then, so that it exists once. Weights that
/// the program's loader cannot read again stay as they are.
class PackedWeights {
 public:
  /// Whether so many floats are enough: smaller weights stay in a cache.
  static bool is_worth(int64_t count);

  /// The panels to multiply m rows with, or none. `weights` are k rows of n elements.
  cpu::Panels<float> panels(runtime::KernelRuntimeContext& context,
                            const cpu::Matrix<const float>& weights, int64_t k, int64_t n,
                            int64_t m);

 private:
  struct Entry;
  enum class State : uint8_t { Waiting, Packed, Never };

  bool find(const runtime::DerivedData& derived, const Entry& sizes);
  void pack(runtime::DerivedData& derived, const cpu::Matrix<const float>& weights,
            const Entry& sizes);

  State state_ = State::Waiting;
  int64_t rows_ = 0;  // that were multiplied so far
  cpu::Panels<float> panels_;
};

}  // namespace executorch::optimized
