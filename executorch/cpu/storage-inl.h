/// Loads and stores vectors of float from and to memory that holds F32, F16 or BF16. Stores round
/// to nearest even; NaN stays NaN.
// clang-format off
#if defined(EXECUTORCH_CPU_STORAGE_INL_H_) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef EXECUTORCH_CPU_STORAGE_INL_H_
#undef EXECUTORCH_CPU_STORAGE_INL_H_
#else
#define EXECUTORCH_CPU_STORAGE_INL_H_
#endif
// clang-format on

#include <executorch/cpu/machine.h>
#include <executorch/cpu/types.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// On targets without an instruction that converts half, Highway's substitute loses infinities and
// rounds denormals down.
#undef ET_F16_BY_HAND
#define ET_F16_BY_HAND \
  (HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET >= HWY_EMU128)

/// Loads the Lanes(d) elements at p as floats. p needs the alignment of its element type only.
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const float* HWY_RESTRICT p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const F16* HWY_RESTRICT p) {
#if ET_F16_BY_HAND
  const hn::Rebind<uint16_t, D> dh;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::PromoteTo(du, hn::LoadU(dh, reinterpret_cast<const uint16_t*>(p)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFF)));
  const auto finite = hn::BitCast(du, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f)));
  const auto special = hn::Or(magnitude, hn::Set(du, 0x7F800000));
  const auto is_special = hn::Gt(magnitude, hn::Set(du, 0x7BFFu << 13));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
  return hn::BitCast(d, hn::Or(hn::IfThenElse(is_special, special, finite), sign));
#else
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p)));
#endif
}
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const uint8_t* HWY_RESTRICT p) {
  const hn::Rebind<uint8_t, D> bytes;
  return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<D>(), hn::LoadU(bytes, p)));
}
template <class D>
HWY_INLINE hn::Vec<D> LoadFloats(D d, const BF16* HWY_RESTRICT p) {
  const hn::Rebind<uint16_t, D> dh;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::PromoteTo(du, hn::LoadU(dh, reinterpret_cast<const uint16_t*>(p)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}

/// Rounds floats to BF16, whose bits are the upper halves of the 32-bit lanes of the result. The
/// lower halves hold no particular value.
template <class D, class V>
HWY_INLINE auto RoundToBF16([[maybe_unused]] D d, V v) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, v);
  // Adding half a unit of the kept bits minus one, plus the last kept bit, rounds ties to even.
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));  // rounding could make a NaN infinite
  return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
}

/// Stores Lanes(d) elements at p.
template <class D, class V>
HWY_INLINE void StoreFloats(V v, D d, float* HWY_RESTRICT p) {
  hn::StoreU(v, d, p);
}
template <class D, class V>
HWY_INLINE void StoreFloats(V v, D d, F16* HWY_RESTRICT p) {
#if ET_F16_BY_HAND
  const hn::Rebind<uint16_t, D> dh;
  const hn::RebindToUnsigned<D> du;
  const V a = hn::Abs(v), half = hn::Set(d, 0.5f);
  const auto bits = hn::BitCast(du, a);
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1));
  const auto rebias = hn::Set(du, 0xFFFu - (112u << 23));  // includes half a unit minus one
  const auto normal = hn::ShiftRight<13>(hn::Add(bits, hn::Add(odd, rebias)));
  // The last bit of the float a + 1/2 is worth 2^-24, the unit of half denormals, so this addition
  // rounds to that unit.
  const auto small = hn::Sub(hn::BitCast(du, hn::Add(a, half)), hn::BitCast(du, half));
  const auto where = [&](auto mask) { return hn::RebindMask(du, mask); };
  auto result = hn::IfThenElse(where(hn::Lt(a, hn::Set(d, 0x1p-14f))), small, normal);
  result = hn::IfThenElse(where(hn::Ge(a, hn::Set(d, 65520.0f))), hn::Set(du, 0x7C00), result);
  result = hn::IfThenElse(where(hn::IsNaN(v)), hn::Set(du, 0x7E00), result);
  const auto sign = hn::And(hn::ShiftRight<16>(hn::BitCast(du, v)), hn::Set(du, 0x8000));
  hn::StoreU(hn::TruncateTo(dh, hn::Or(result, sign)), dh, reinterpret_cast<uint16_t*>(p));
#else
  (void)d;
  const hn::Rebind<hwy::float16_t, D> dh;
  hn::StoreU(hn::DemoteTo(dh, v), dh, reinterpret_cast<hwy::float16_t*>(p));
#endif
}
template <class D, class V>
HWY_INLINE void StoreFloats(V v, [[maybe_unused]] D d, BF16* HWY_RESTRICT p) {
  const hn::Rebind<uint16_t, D> dh;
  const auto kept = hn::ShiftRight<16>(RoundToBF16(d, v));
  hn::StoreU(hn::TruncateTo(dh, kept), dh, reinterpret_cast<uint16_t*>(p));
}

/// Loads the 2 * Lanes(d) elements at p into two vectors, in an order that StorePair() reverses.
template <class D, class T>
HWY_INLINE void LoadPair(D d, const T* HWY_RESTRICT p, hn::Vec<D>& a, hn::Vec<D>& b) {
  a = LoadFloats(d, p);
  b = LoadFloats(d, p + hn::Lanes(d));
}
template <class D>
HWY_INLINE void LoadPair(D d, const BF16* HWY_RESTRICT p, hn::Vec<D>& a, hn::Vec<D>& b) {
  const hn::RebindToUnsigned<D> du;
  const auto both = hn::LoadU(du, reinterpret_cast<const uint32_t*>(p));
  a = hn::BitCast(d, hn::ShiftLeft<16>(both));
  b = hn::BitCast(d, hn::And(both, hn::Set(du, 0xFFFF0000)));
}
template <class D, class V, class T>
HWY_INLINE void StorePair(V a, V b, D d, T* HWY_RESTRICT p) {
  StoreFloats(a, d, p);
  StoreFloats(b, d, p + hn::Lanes(d));
}
template <class D, class V>
HWY_INLINE void StorePair(V a, V b, D d, BF16* HWY_RESTRICT p) {
  const hn::RebindToUnsigned<D> du;
  const auto low = hn::ShiftRight<16>(RoundToBF16(d, a));
  const auto high = hn::And(RoundToBF16(d, b), hn::Set(du, 0xFFFF0000));
  hn::StoreU(hn::Or(low, high), du, reinterpret_cast<uint32_t*>(p));
}

/// Loads the first n < Lanes(d) elements at p, followed by zeros. Memory beyond them is not read.
template <class D, class T>
HWY_INLINE hn::Vec<D> LoadFloatsN(D d, const T* HWY_RESTRICT p, size_t n) {
#if ET_MASKED_FLOATS
  if constexpr (sizeof(T) == 4) return hn::MaskedLoad(hn::FirstN(d, n), d, p);
#endif
  HWY_ALIGN T lanes[hn::MaxLanes(d)] = {};
  memcpy(lanes, p, n * sizeof(T));
  return LoadFloats(d, lanes);
}

template <class D, class T, class V>
HWY_INLINE void StoreFloatsN(V v, D d, T* HWY_RESTRICT p, size_t n) {
#if ET_MASKED_FLOATS
  if constexpr (sizeof(T) == 4) {
    hn::BlendedStore(v, hn::FirstN(d, n), d, p);
    return;
  }
#endif
  HWY_ALIGN T lanes[hn::MaxLanes(d)];
  StoreFloats(v, d, lanes);
  memcpy(p, lanes, n * sizeof(T));
}

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
