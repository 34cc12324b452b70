/// The table of microkernels. Each instruction set has a table with one row for each element type
/// of B; the table is chosen at run time. Declarations, dispatch, tests and benchmarks expand the
/// rows.
///   float, F16, BF16           ET_STORED_FLOATS; sums are floats
///   double, uint32_t, uint64_t  the other accumulators, with tiles only. Integers are added up as
///                              unsigned ones, because their overflow wraps
///   int8, int4, int4 in groups  the rows of int8::Form: A is int8; sums are int32, or float for
///                              weights in groups
/// Each source file fills in the rows, or the functions of rows, that it compiles for each of
/// Highway's targets. There are more instruction sets of integer rows than targets, because only
/// some machines of a target have an instruction that multiplies and adds quads of bytes, or one
/// that multiplies small matrices of them.
#pragma once

#include <executorch/cpu/gemm/float_kernels.h>
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/quantized_kernels.h>
#include <executorch/cpu/gemm/split_kernels.h>

#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace executorch::cpu::gemm {

/// Whether T has a row of its own, with functions for packing, few rows and finishing. The other
/// types use the row of Accumulator<T>, which has tiles only.
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
  QuantizedKernels quantized = {};
  SplitKernels split[kMostParts + 1] = {};  // indexed by the number of parts of an element
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

/// The kernels that products use: those of the best instruction set that this machine has, unless
/// use_set() or use_target() chose another one.
const Kernels& kernels();

/// The row of microkernels for operands of type T.
template <class T>
const Microkernels<Types<RowType<T>>>& row() {
  return kernels().row<RowType<T>>();
}

/// For tests: count_sets() returns the number of instruction sets that this machine has, which are
/// numbered from the best one on. use_set() makes kernels() return the set of that number.
int count_sets();
void use_set(int set);
/// Makes kernels() return the best set of one of Highway's targets, or for 0 the best set that this
/// machine has.
void use_target(int64_t target);

// ---- what fills the table ----

enum class Source { Tiles, Storage, Int8, Int8Dot, Int8Matmul, Split, SplitDots };

/// Fills in the kernels that source file `kSource` compiles for Highway's target `kTarget`. Returns
/// false if the build does not contain the target or this machine lacks its instructions.
template <Source kSource, int64_t kTarget>
bool fill(Kernels&) {
  return false;
}

/// The same for a target that is known at run time only. To be called only in the source file
/// that specialises fill().
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
void fill_split_dots(int64_t target, Kernels& kernels);

}  // namespace executorch::cpu::gemm

namespace executorch::cpu::int8 {

inline const Kernels& kernels() {
  return gemm::kernels().int8;
}

}  // namespace executorch::cpu::int8
