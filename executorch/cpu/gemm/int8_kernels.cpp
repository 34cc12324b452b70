// The choice of instruction set, and kernels for any machine.
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/gemm/int8_sets.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#define ET_INLINE inline
#define ET_TARGET_LAMBDA

namespace executorch::cpu::int8 {
namespace portable {

constexpr int kRows = 2, kVectors = 2, kLanes = 4, kQuadOffset = 0;

template <class T>
struct Lanes {
  T of[kLanes];
};
using Ints = Lanes<int32_t>;
using Floats = Lanes<float>;

template <class T>
void Clear(Lanes<T>& x) {
  x = {};
}
template <class F>
Ints EachInt(const F& f) {
  return {{f(0), f(1), f(2), f(3)}};
}
void Keep(Ints&) {}
Ints Load(const void* p) {
  Ints x;
  std::memcpy(&x, p, sizeof(x));
  return x;
}
void Store(Ints x, void* p) {
  std::memcpy(p, &x, sizeof(x));
}
Floats LoadFloats(const float* p) {
  return {{p[0], p[1], p[2], p[3]}};
}
void StoreFloats(Floats x, float* p) {
  std::memcpy(p, &x, sizeof(x));
}
Floats ToFloat(Ints x) {
  Floats y;
  for (int l = 0; l < kLanes; ++l) y.of[l] = static_cast<float>(x.of[l]);
  return y;
}
Floats MulAdd(Floats x, Floats y, Floats z) {
  for (int l = 0; l < kLanes; ++l) z.of[l] += x.of[l] * y.of[l];
  return z;
}
Ints Add(Ints x, Ints y) {
  return EachInt([&](int l) { return x.of[l] + y.of[l]; });
}
Ints Broadcast(const uint8_t* p) {
  int32_t quad;
  std::memcpy(&quad, p, 4);
  return EachInt([quad](int) { return quad; });
}
Ints Dot(Ints sum, Ints a, Ints b) {
  const auto x = std::bit_cast<std::array<int8_t, 16>>(a),
             y = std::bit_cast<std::array<int8_t, 16>>(b);
  for (size_t l = 0; l < kLanes; ++l) {
    for (size_t q = 4 * l; q < 4 * l + 4; ++q) sum.of[l] += x[q] * y[q];
  }
  return sum;
}
Ints EachWord(Ints x, uint32_t (*f)(uint32_t)) {
  return EachInt([&](int l) { return static_cast<int32_t>(f(static_cast<uint32_t>(x.of[l]))); });
}
Ints LowNibbles(Ints x) {
  return EachWord(x, [](uint32_t w) { return w & 0x0F0F0F0F; });
}
Ints HighNibbles(Ints x) {
  return EachWord(x, [](uint32_t w) { return w >> 4 & 0x0F0F0F0F; });
}
Ints NibblesLessEight(Ints x) {
  // Byte by byte: no borrow leaves a byte whose highest bit is set.
  return EachWord(x, [](uint32_t w) { return ((w | 0x80808080) - 0x08080808) ^ 0x80808080; });
}
Ints LowHalvesAsFloats(Ints x) {
  return EachWord(x, [](uint32_t w) { return w << 16; });
}
Ints HighHalvesAsFloats(Ints x) {
  return EachWord(x, [](uint32_t w) { return w & 0xFFFF0000; });
}
Ints NibbleDots(Ints start, Ints low, Ints high, Ints even, Ints odd) {
  return Dot(Dot(start, low, even), high, odd);
}
Floats GroupScales(const BF16* scales, int64_t unit, int64_t group_units, int64_t groups) {
  const int64_t group = unit / group_units;
  const uint32_t bits = uint32_t{scales[group < groups ? group : groups - 1].bits} << 16;
  const float scale = std::bit_cast<float>(bits);
  return {{scale, scale, scale, scale}};
}
void Transpose(Ints (&x)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    for (int j = 0; j < i; ++j) std::swap(x[i].of[j], x[j].of[i]);
  }
}
template <class T>
void SumLanes(const Lanes<T> (&v)[4], int32_t* to) {
  for (int j = 0; j < 4; ++j) {
    const T sum = (v[j].of[0] + v[j].of[1]) + (v[j].of[2] + v[j].of[3]);
    std::memcpy(to + j, &sum, 4);
  }
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
    found.add(portable::kKernels);
    return found;
  }();
  return all;
}

std::atomic<const Kernels*>& in_use() {
  static std::atomic<const Kernels*> kernels = sets().of[0];
  return kernels;
}

}  // namespace

const Kernels* const* all_kernels() {
  return sets().of;
}

const Kernels& kernels() {
  return *in_use().load(std::memory_order_relaxed);
}

void use_kernels(const Kernels& kernels) {
  in_use() = &kernels;
}

}  // namespace executorch::cpu::int8
