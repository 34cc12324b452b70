// For instruction sets with a multiply-add of quads, Dot; see
// int8_kernels-inl.h.

/// Sums of a tile, one vector for each kLanes columns.
struct Quads {
  static constexpr int kOffset = kFlip == 0 ? 0 : 128;
  static constexpr bool kWide = false;

  /// sums += `n` quads of R rows times those of a panel, which is behind them
  /// afterwards.
  template <int R>
  ET_INLINE static void Add(const int8_t* a, int64_t lda, int64_t n, const uint8_t*& b,
                            Ints (&sums)[R][kVectors]) {
    Ints flip = Ints{} + kFlip;
    if constexpr (kFlip != 0) Keep(flip);  // or GCC would flip before a quad becomes a vector
#pragma GCC unroll 2
    for (int64_t quad = 0; quad < n; ++quad, a += 4, b += kColumns * 4) {
      Ints y[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) y[v] = Load(b + v * kVectorBytes);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
        const Ints x = kFlip == 0 ? Broadcast(a + i * lda) : Broadcast(a + i * lda) ^ flip;
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[i][v] = Dot(sums[i][v], x, y[v]);
      }
    }
  }
  ET_INLINE static void Write(const Ints (&sums)[kVectors], int32_t* to) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) Store(sums[v], to + v * kLanes);
  }
};
using ByteSums = Quads;
using NibbleSums = Quads;

constexpr int kDepthwiseOffset = Quads::kOffset;
ET_INLINE Ints DepthwiseDot(Ints sum, Ints a, Ints b) {
  return Dot(sum, a, b);
}

// ---- dots ----

constexpr int kDotOffset = Quads::kOffset;
constexpr int64_t kDotRowBytes = kVectorBytes;

ET_INLINE Ints ByteDots(Ints sum, const uint8_t* a, Ints b) {
  return Dot(sum, Load(a), b);
}
ET_INLINE Ints NibbleDots(Ints start, Ints low, Ints high, Ints even, Ints odd) {
  return Dot(Dot(start, low, even), high, odd);
}
void PrepareDotBytes(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  const int64_t padded = (k + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  flip ^= static_cast<uint8_t>(kDotOffset);
  for (int64_t p = 0; p < k; ++p) to[p] = static_cast<uint8_t>(a[p] ^ flip);
  for (int64_t p = k; p < padded; ++p) to[p] = 0;
}
