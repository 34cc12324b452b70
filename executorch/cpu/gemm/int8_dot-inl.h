// The parts of int8_kernels-inl.h that differ between instruction sets: the shape of a tile, and
// the multiply-add of quads or its substitute. Intrinsics are used where Highway 1.0.3 has no
// equivalent: its float-to-int conversion corrects overflow, its packing restores the order of
// lanes, and it has no products of bytes.

// The architecture whose registers the vectors use.
#undef ET_INT8_X86
#define ET_INT8_X86 (HWY_ARCH_X86 && HWY_TARGET < HWY_EMU128)
#undef ET_INT8_ARM
#define ET_INT8_ARM (HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_NEON)
// Which kind of instruction multiplies small matrices, if any.
#undef ET_INT8_AMX
#define ET_INT8_AMX (ET_INT8_MATMUL && ET_INT8_X86)
#undef ET_INT8_I8MM
#define ET_INT8_I8MM (ET_INT8_MATMUL && ET_INT8_ARM)
// Without a multiply-add of quads, x86 multiplies bytes as pairs of 16-bit numbers.
#undef ET_INT8_PAIRS
#define ET_INT8_PAIRS (ET_INT8_X86 && !ET_INT8_DOT)

#undef ET_X86
#if HWY_MAX_BYTES == 64
#define ET_X86(op) _mm512_##op
#elif HWY_MAX_BYTES == 32
#define ET_X86(op) _mm256_##op
#else
#define ET_X86(op) _mm_##op
#endif

// The rows of a tile. 32 vector registers hold 12 x 2 or 6 x 4 vectors of sums, 16 hold 6 x 2. An
// AMX tile register has 16 rows, and two of them share the loads of a panel.
constexpr int kRows = ET_INT8_AMX ? 32 : kLanes == 16 ? 12 : (ET_INT8_X86 || ET_INT8_ARM ? 6 : 4);
constexpr int kRowsInL1 = ET_INT8_AMX ? 16 : kRows;
/// The rows that take several times as long to multiply by a panel as packing it takes.
constexpr int kLeastBlockRows = ET_INT8_AMX ? 512 : 48;
/// The most rows for which dots are faster than tiles, because dots need no packing.
constexpr int kMostDotRows = ET_INT8_AMX ? 12 : 8;
static_assert(kMostDotRows <= kMostDotRowsOfAnySet);
constexpr int kVectors = ET_INT8_ARM ? 4 : 2, kColumns = kVectors * kLanes;
/// The most rows whose sums of a group and whose scaled sums stay in registers together.
constexpr int kGroupRows = kRows / 2;
/// What is added to the elements of A to make them unsigned: in products with nibbles, and in
/// products with bytes.
constexpr int kNibbleOffset = ET_INT8_X86 ? 128 : 0,
              kByteOffset = ET_INT8_PAIRS ? 0 : kNibbleOffset;

/// Keeps a sum in its register. Otherwise GCC copies registers at the end of loops.
template <class Vec>
HWY_INLINE void Keep([[maybe_unused]] Vec& x) {
#if ET_INT8_X86 && HWY_COMPILER_GCC
  asm("" : "+v"(x.raw));
#elif ET_INT8_ARM && HWY_COMPILER_GCC
  asm("" : "+w"(x.raw));
#endif
}

/// Rounds to the nearest integer, ties to even. A number too large for 16 bits becomes one beyond
/// the range of 8 bits on the same side. A NaN becomes a number below it.
HWY_INLINE V Rounded(VF x) {
#if ET_INT8_X86
  return V{ET_X86(cvtps_epi32)(hn::Min(hn::Set(Floats(), 16384.0f), x).raw)};
#else
  const VF least = hn::Set(Floats(), -16384.0f);
  return hn::NearestInt(hn::IfThenElse(hn::Gt(x, least), x, least));
#endif
}

/// Saturates 16-bit numbers to 8 bits. Two vectors become one; in each 16-byte block on x86, and in
/// the whole vector elsewhere, the numbers of a come first.
HWY_INLINE VB PackWords(VW a, VW b) {
#if ET_INT8_X86
  return VB{ET_X86(packs_epi16)(a.raw, b.raw)};
#else
  const hn::Half<Bytes> half;
  return hn::Combine(Bytes(), hn::DemoteTo(half, b), hn::DemoteTo(half, a));
#endif
}

/// sum += the two products of 16-bit numbers in each lane.
HWY_INLINE V AddPairs(V sum, VW a, VW b) {
  const Ints d;
#if ET_INT8_X86 || HWY_ARCH_WASM  // on other targets it adds products that are not neighbours
  V none = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, a, b, sum, none);
#else
  const V x = hn::BitCast(d, a), y = hn::BitCast(d, b);
  const auto even = [](V v) ET_INT8_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
  const V odd = hn::Mul(hn::ShiftRight<16>(x), hn::ShiftRight<16>(y));
  return hn::Add(sum, hn::Add(hn::Mul(even(x), even(y)), odd));
#endif
}

/// sum += the products of the four bytes in each lane; those of `a` are unsigned if kByteOffset is
/// not 0.
HWY_INLINE V Dot(V sum, V a, V b) {
#if ET_INT8_DOT && HWY_MAX_BYTES == 64
  return V{_mm512_dpbusd_epi32(sum.raw, a.raw, b.raw)};
#elif ET_INT8_DOT && ET_INT8_X86
  return V{_mm256_dpbusd_avx_epi32(sum.raw, a.raw, b.raw)};
#elif ET_INT8_ARM
  const int8x16_t x = hn::BitCast(Bytes(), a).raw, y = hn::BitCast(Bytes(), b).raw;
#if ET_INT8_DOT
  return V(vdotq_s32(sum.raw, x, y));
#else
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)));
  return hn::Add(sum, V(vpaddq_s32(low, vpaddlq_s16(vmull_high_s8(x, y)))));
#endif
#else
  const auto even = [](V v) ET_INT8_ATTR {
    return hn::ShiftRight<8>(hn::ShiftLeft<8>(hn::BitCast(Words(), v)));
  };
  const auto odd = [](V v) ET_INT8_ATTR { return hn::ShiftRight<8>(hn::BitCast(Words(), v)); };
  return AddPairs(AddPairs(sum, even(a), even(b)), odd(a), odd(b));
#endif
}
