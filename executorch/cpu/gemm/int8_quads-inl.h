// Sums for instruction sets that multiply and add quads by Dot(); part of int8_kernels-inl.h.

/// sums += products of `n` quads of R rows with those of panel b; afterwards b points behind them.
/// kFlip: rows are not prepared, so the function makes their bytes unsigned. That takes half as
/// many instructions as the products.
template <bool kFlip = false, int R>
HWY_INLINE void AddQuads(const int8_t* a, int64_t lda, int64_t n, const uint8_t*& b,
                         V (&sums)[R][kVectors]) {
  V flip = Repeated(0x80);
  if constexpr (kFlip) Keep(flip);  // otherwise GCC would flip a quad before broadcasting it
#pragma GCC unroll 2
  for (int64_t quad = 0; quad < n; ++quad, a += 4, b += kColumns * 4) {
    V y[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) y[v] = Load(b + v * kVectorBytes);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      V x = Broadcast(a + i * lda);
      if constexpr (kFlip) x = hn::Xor(x, flip);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = Dot(sums[i][v], x, y[v]);
    }
  }
}

// ---- dots ----

using DotElement = int8_t;  // of a row of A

HWY_INLINE V ByteDots(V sum, const uint8_t* a, V b) {
  return Dot(sum, Load(a), b);
}

/// The number of vectors of nibbles whose products add up in one vector of sums.
constexpr int kDotBlock = 1;

/// Returns start + products of a vector of nibbles with the even and odd elements of a row.
template <bool>
HWY_INLINE V NibbleDots(V start, const uint8_t* a, const V (&y)[kDotBlock]) {
  return Dot(Dot(start, LowNibbles(y[0]), Load(a)), HighNibbles(y[0]), Load(a + kVectorBytes));
}
