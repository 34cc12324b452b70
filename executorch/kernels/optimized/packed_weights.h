/// Prepacking of the constant matrices that a program multiplies by.
#pragma once

#include <executorch/cpu/gemm/gemm.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>

#include <cstdint>

namespace executorch::optimized {

/// The weight of one call. When products that panels speed up have multiplied some thousand rows by
/// it, it is packed for all methods of the program. The memory of the unpacked weight is then given
/// back to the loader, so that only one copy is in memory. A weight that the program's loader could
/// not read again is not packed.
class PackedWeights {
 public:
  /// Whether a weight of `count` floats is large enough to be packed. Smaller weights stay in a
  /// cache.
  static bool is_worth(int64_t count);

  /// Returns the panels by which m rows are to be multiplied, or empty Panels if the weight is not
  /// packed. `weights` are k rows of n elements.
  cpu::Panels<float> panels(runtime::KernelRuntimeContext& context,
                            const cpu::Matrix<const float>& weights, int64_t k, int64_t n,
                            int64_t m);

 private:
  struct Entry;
  struct Memory;
  enum class State : uint8_t { Waiting, Packed, Never };

  bool find(const runtime::DerivedData& derived, const Entry& sizes);
  void pack(runtime::DerivedData& derived, const cpu::Matrix<const float>& weights,
            const Entry& sizes);

  State state_ = State::Waiting;
  int64_t rows_ = 0;  // the number of rows that were multiplied by the weight so far
  cpu::Panels<float> panels_;
};

}  // namespace executorch::optimized
