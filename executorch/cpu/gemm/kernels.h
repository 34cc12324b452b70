/// The table of microkernels: for each instruction set a row for each type that B has, chosen at run
/// time. Declarations, dispatch, tests and benchmarks know a type by its row.
///   float, F16, BF16           ET_STORED_FLOATS; sums are floats
///   double, uint32_t, uint64_t  the other accumulators: integers of Gemm are added up as these,
///                              for their overflow wraps; tiles only
///   int8, int4, int4 in groups  int8::Form; A is int8, sums are int32, those of groups float
/// A source file fills in the rows, or the functions of rows, that it compiles for each of Highway's
/// targets. Sets of integer rows are finer than targets: some of a target's machines multiply and
/// add quads of bytes, or blocks, in one instruction.
#pragma once

#include <executorch/cpu/gemm/float_kernels.h>
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/split_kernels.h>

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace executorch::cpu::gemm {

/// Whether the row of T is its own, and packs, multiplies few rows and finishes; else it is that of
/// Accumulator<T>.
template <class T>
constexpr bool kIsStoredFloat = !std::is_integral_v<T> && !std::is_same_v<T, double>;
template <class T>
using RowType = std::conditional_t<kIsStoredFloat<T>, T, Accumulator<T>>;

/// The rows of one instruction set.
struct Kernels {
#define ET_ROW(T, name) Microkernels<Types<T>>,
  std::tuple<ET_STORED_FLOATS(ET_ROW) Microkernels<Types<double>>, Microkernels<Types<uint32_t>>,
             Microkernels<Types<uint64_t>>>
      rows = {};
#undef ET_ROW
  int8::Kernels int8 = {};
  SplitKernels split[kMostParts + 1] = {};  // of elements of so many parts
  /// sums[j] += sums[i * stride + j] for i = 1 ... slices - 1 in this order, j < n.
  void (*add_slices)(float* sums, int64_t slices, int64_t stride, int64_t n) = nullptr;

  template <class T>
  Microkernels<Types<T>>& row() {
    return std::get<Microkernels<Types<T>>>(rows);
  }
  template <class T>
  const Microkernels<Types<T>>& row() const {
    return std::get<Microkernels<Types<T>>>(rows);
  }
};

/// Those that products use: of the best set that this machine has, unless another one is chosen.
const Kernels& kernels();

/// The row of operands of type T.
template <class T>
const Microkernels<Types<RowType<T>>>& row() {
  return kernels().row<RowType<T>>();
}

/// For tests: the sets that this machine has, the best one first, and which of them kernels() gives
/// from now on.
int count_sets();
void use_set(int set);
/// The best set of one of Highway's targets from now on; 0: that this machine has.
void use_target(int64_t target);

// ---- what fills the table ----

enum class Source { Tiles, Storage, Int8, Int8Dot, Int8Blocks, Split };

/// Fills in what a source file compiles for one of Highway's targets; false if the build does not
/// contain it, or this machine lacks its instructions.
template <Source kSource, int64_t kTarget>
bool fill(Kernels&) {
  return false;
}

/// The same where a number says the target. For the source file alone, which specialises fill().
template <Source kSource>
bool fill_for(int64_t target, Kernels& kernels) {
  return [&]<int... kBits>(std::integer_sequence<int, kBits...>) {
    return ((target == int64_t{1} << kBits && fill<kSource, int64_t{1} << kBits>(kernels)) || ...);
  }
  (std::make_integer_sequence<int, 63>());
}

bool fill_tiles(int64_t target, Kernels& kernels);
bool fill_storage(int64_t target, Kernels& kernels);
bool fill_int8(Source set, int64_t target, Kernels& kernels);
void fill_split(int64_t target, Kernels& kernels);

}  // namespace executorch::cpu::gemm

namespace executorch::cpu::int8 {

inline const Kernels& kernels() {
  return gemm::kernels().int8;
}

}  // namespace executorch::cpu::int8
