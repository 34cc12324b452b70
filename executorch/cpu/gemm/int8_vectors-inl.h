// Vectors of kLanes 32-bit numbers in the compiler's own notation, which
// becomes the instructions of whatever set it is included for: inside its
// namespace and target, without a guard.

constexpr int64_t kVectorBytes = kLanes * 4;
typedef int32_t Ints __attribute__((vector_size(kLanes * 4), may_alias));
typedef float Floats __attribute__((vector_size(kLanes * 4), may_alias));

ET_INLINE Ints Load(const void* p) {
  typedef int32_t Anywhere __attribute__((vector_size(kLanes * 4), may_alias, aligned(1)));
  return *static_cast<const Anywhere*>(p);
}
ET_INLINE void Store(Ints x, void* p) {
  typedef int32_t Anywhere __attribute__((vector_size(kLanes * 4), may_alias, aligned(1)));
  *static_cast<Anywhere*>(p) = x;
}
ET_INLINE Floats LoadFloats(const float* p) {
  return reinterpret_cast<Floats>(Load(p));
}
ET_INLINE void StoreFloats(Floats x, float* p) {
  Store(reinterpret_cast<Ints>(x), p);
}
ET_INLINE Floats ToFloat(Ints x) {
  return __builtin_convertvector(x, Floats);
}
ET_INLINE Ints Broadcast(const void* p) {
  int32_t quad;
  std::memcpy(&quad, p, 4);
  return Ints{} + quad;
}
ET_INLINE Ints LowNibbles(Ints x) {
  return x & 0x0F0F0F0F;
}
ET_INLINE Ints HighNibbles(Ints x) {
  return (x >> 4) & 0x0F0F0F0F;
}

/// n < kVectorBytes bytes, by pieces that overlap.
ET_INLINE void StorePieces(Ints x, int64_t n, uint8_t* to) {
  uint8_t from[kVectorBytes];
  Store(x, from);
  const auto ends = [=](auto piece) ET_TARGET_LAMBDA {
    constexpr int64_t kSize = sizeof(piece);
    std::memcpy(to, from, kSize);
    std::memcpy(to + n - kSize, from + n - kSize, kSize);
  };
  if constexpr (kVectorBytes > 32) {
    if (n >= 32) return ends(std::array<uint64_t, 4>());
  }
  if constexpr (kVectorBytes > 16) {
    if (n >= 16) return ends(std::array<uint64_t, 2>());
  }
  if (n >= 8) return ends(uint64_t());
  if (n >= 4) return ends(uint32_t());
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

template <int kSize>
using Element = std::conditional_t<
    kSize == 1, int8_t,
    std::conditional_t<kSize == 2, int16_t, std::conditional_t<kSize == 4, int32_t, int64_t>>>;

template <int kSize, int... kIndex>
ET_INLINE Ints Shuffle(Ints a, Ints b, std::integer_sequence<int, kIndex...>) {
  typedef Element<kSize> Vector __attribute__((vector_size(kLanes * 4)));
  return reinterpret_cast<Ints>(
      __builtin_shufflevector(reinterpret_cast<Vector>(a), reinterpret_cast<Vector>(b), kIndex...));
}
/// Elements of kSize bytes in turns, of the low or the high halves of each 16
/// bytes.
template <int kSize, bool kHigh, int... kIndex>
constexpr auto ZipOrder(std::integer_sequence<int, kIndex...>) {
  constexpr int kBlock = 16 / kSize, kCount = kLanes * 4 / kSize;
  return std::integer_sequence<int, (kIndex / kBlock * kBlock + kIndex % kBlock / 2 +
                                     (kHigh ? kBlock / 2 : 0) + kIndex % 2 * kCount)...>();
}
template <int kSize, bool kHigh>
ET_INLINE Ints Zip(Ints a, Ints b) {
  using Index = std::make_integer_sequence<int, kLanes * 4 / kSize>;
  return Shuffle<kSize>(a, b, ZipOrder<kSize, kHigh>(Index()));
}
/// The even or the odd ones of a's and b's blocks of 16 bytes.
template <bool kOdd, int... kIndex>
constexpr auto BlockOrder(std::integer_sequence<int, kIndex...>) {
  return std::integer_sequence<int, (kIndex / 2 * 4 + kIndex % 2 + (kOdd ? 2 : 0))...>();
}
template <bool kOdd>
ET_INLINE Ints Blocks(Ints a, Ints b) {
  return Shuffle<8>(a, b, BlockOrder<kOdd>(std::make_integer_sequence<int, kLanes / 2>()));
}

/// kLanes rows of kLanes numbers to columns.
ET_INLINE void Transpose(Ints (&x)[kLanes]) {
  Ints y[kLanes];
#pragma GCC unroll 4
  for (int i = 0; i < kLanes; i += 4) {
    const Ints a = Zip<4, false>(x[i], x[i + 1]), b = Zip<4, true>(x[i], x[i + 1]);
    const Ints c = Zip<4, false>(x[i + 2], x[i + 3]), d = Zip<4, true>(x[i + 2], x[i + 3]);
    y[i] = Zip<8, false>(a, c);
    y[i + 1] = Zip<8, true>(a, c);
    y[i + 2] = Zip<8, false>(b, d);
    y[i + 3] = Zip<8, true>(b, d);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    if constexpr (kLanes == 4) {
      x[i] = y[i];
    } else if constexpr (kLanes == 8) {
      x[i] = Blocks<false>(y[i], y[i + 4]);
      x[i + 4] = Blocks<true>(y[i], y[i + 4]);
    } else {
      const Ints a = Blocks<false>(y[i], y[i + 4]), b = Blocks<true>(y[i], y[i + 4]);
      const Ints c = Blocks<false>(y[i + 8], y[i + 12]), d = Blocks<true>(y[i + 8], y[i + 12]);
      x[i] = Blocks<false>(a, c);
      x[i + 4] = Blocks<false>(b, d);
      x[i + 8] = Blocks<true>(a, c);
      x[i + 12] = Blocks<true>(b, d);
    }
  }
}

/// The bytes of four rows to quads: a block's first quads in x[0], its next ones in x[1], ...
ET_INLINE void Interleave(Ints (&x)[4]) {
  const Ints a = Zip<1, false>(x[0], x[1]), b = Zip<1, true>(x[0], x[1]);
  const Ints c = Zip<1, false>(x[2], x[3]), d = Zip<1, true>(x[2], x[3]);
  x[0] = Zip<2, false>(a, c);
  x[1] = Zip<2, true>(a, c);
  x[2] = Zip<2, false>(b, d);
  x[3] = Zip<2, true>(b, d);
}

/// to[j] = the sum of v[j]'s lanes, of T, which Ints stand for.
template <class T>
ET_INLINE void SumLanes(const Ints (&v)[4], int32_t* to) {
  typedef T Vector __attribute__((vector_size(kLanes * 4)));
  const auto sum = [](Ints a, Ints b) ET_TARGET_LAMBDA {
    return reinterpret_cast<Ints>(reinterpret_cast<Vector>(a) + reinterpret_cast<Vector>(b));
  };
  const Ints x = sum(Zip<4, false>(v[0], v[1]), Zip<4, true>(v[0], v[1]));
  const Ints y = sum(Zip<4, false>(v[2], v[3]), Zip<4, true>(v[2], v[3]));
  T sums[kLanes];
  Store(sum(Zip<8, false>(x, y), Zip<8, true>(x, y)), sums);
#pragma GCC unroll 2
  for (int n = kLanes / 2; n >= 4; n /= 2) {
    for (int j = 0; j < n; ++j) sums[j] += sums[j + n];
  }
  std::memcpy(to, sums, 16);
}
ET_INLINE void SumLanes(const Ints (&v)[4], int32_t* to) {
  SumLanes<int32_t>(v, to);
}
ET_INLINE void SumLanes(const Floats (&v)[4], int32_t* to) {
  const Ints bits[4] = {reinterpret_cast<Ints>(v[0]), reinterpret_cast<Ints>(v[1]),
                        reinterpret_cast<Ints>(v[2]), reinterpret_cast<Ints>(v[3])};
  SumLanes<float>(bits, to);
}
