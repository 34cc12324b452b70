// The choice of instruction set, and kernels for any machine.
#include <executorch/cpu/bit_cast.h>
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/int8_sets.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#endif

#define ET_INLINE inline
#define ET_TARGET_LAMBDA

namespace executorch::cpu::int8 {
namespace portable {

constexpr int kRows = 4, kGroupRows = 2, kVectors = 2, kLanes = 4, kColumns = kVectors * kLanes;
constexpr int kFlip = 0;

#include <executorch/cpu/gemm/int8_vectors-inl.h>

typedef int16_t Words __attribute__((vector_size(16)));

void Keep(Ints&) {}
Floats MulAdd(Floats x, Floats y, Floats z) {
  return x * y + z;
}
Ints Rounded(Floats x) {
  constexpr float kMost = 16384, kRounder = 12582912;  // 1.5 * 2^23: its sum ends with the integer
  const Floats least = Floats{} - kMost, most = Floats{} + kMost;
  x = x > least ? x : least;
  return reinterpret_cast<Ints>((x < most ? x : most) + kRounder) - bit_cast<int32_t>(kRounder);
}
/// Both vectors' numbers of T as such of Narrow.
template <class T, class Narrow>
Ints Pack(Ints a, Ints b) {
  constexpr size_t kCount = 16 / sizeof(T);
  std::array<Narrow, 2 * kCount> packed;
  for (size_t i = 0; i < 2 * kCount; ++i) {
    const auto numbers = bit_cast<std::array<T, kCount>>(i < kCount ? a : b);
    using Limits = std::numeric_limits<Narrow>;
    packed[i] =
        static_cast<Narrow>(std::clamp<int>(numbers[i % kCount], Limits::min(), Limits::max()));
  }
  return bit_cast<Ints>(packed);
}
Ints PackInts(Ints a, Ints b) {
  return Pack<int32_t, int16_t>(a, b);
}
Ints PackWords(Ints a, Ints b) {
  return Pack<int16_t, int8_t>(a, b);
}
Ints AddWords(Ints a, Ints b) {  // Rounded() leaves room
  return reinterpret_cast<Ints>(reinterpret_cast<Words>(a) + reinterpret_cast<Words>(b));
}
ET_INLINE void StoreFew(Ints x, int64_t n, uint8_t* to) {
  StorePieces(x, n, to);
}
/// The two products of 16-bit numbers in each lane, added.
ET_INLINE Ints MultiplyPairs(Ints a, Ints b) {
#if defined(__SSE2__)
  return reinterpret_cast<Ints>(
      _mm_madd_epi16(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#elif defined(__wasm_simd128__)
  return reinterpret_cast<Ints>(
      wasm_i32x4_dot_i16x8(reinterpret_cast<v128_t>(a), reinterpret_cast<v128_t>(b)));
#else
  return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}
/// Bytes 0 and 2 of each lane as 16-bit numbers, and bytes 1 and 3.
ET_INLINE Ints EvenBytes(Ints x) {
  return reinterpret_cast<Ints>(reinterpret_cast<Words>(x) << 8 >> 8);
}
ET_INLINE Ints OddBytes(Ints x) {
  return reinterpret_cast<Ints>(reinterpret_cast<Words>(x) >> 8);
}
ET_INLINE Ints Dot(Ints sum, Ints a, Ints b) {
  return sum + MultiplyPairs(EvenBytes(a), EvenBytes(b)) + MultiplyPairs(OddBytes(a), OddBytes(b));
}
Floats GroupScales(const BF16* scales, int64_t unit, int64_t group_units, int64_t groups) {
  const int64_t group = unit / group_units;
  const uint32_t bits = uint32_t{scales[group < groups ? group : groups - 1].bits} << 16;
  return Floats{} + bit_cast<float>(bits);
}

#include <executorch/cpu/gemm/int8_quads-inl.h>
//
#include <executorch/cpu/gemm/int8_kernels-inl.h>

}  // namespace portable

namespace {

const Sets& sets() {
  static const Sets all = [] {
    Sets found;
    add_x86(found);
    add_arm(found);
    found.add(portable::kKernels, std::numeric_limits<int64_t>::max());
    return found;
  }();
  return all;
}

std::atomic<const Kernels*>& in_use() {
  static std::atomic<const Kernels*> kernels = sets().list[0];
  return kernels;
}

}  // namespace

const Kernels* const* all_kernels() {
  return sets().list;
}

const Kernels& kernels() {
  return *in_use().load(std::memory_order_relaxed);
}

void use_kernels(const Kernels& kernels) {
  in_use() = &kernels;
}

void use_target(int64_t target) {
  int i = 0;
  while (i + 1 < sets().n && sets().targets[i] < target) ++i;
  use_kernels(*sets().list[i]);
}

}  // namespace executorch::cpu::int8
