// Units of tiles for instruction sets with a multiply-add of quads, Dot; see int8_kernels-inl.h.

constexpr int64_t kPanelBytes[2] = {kUnit * kVectors * kLanes, kUnit* kVectors* kLanes};
constexpr int64_t kRowBytes[2] = {kUnit, kUnit};
constexpr int kBytesOffset = kQuadOffset, kNibblesOffset = kQuadOffset, kDotOffset = kQuadOffset;
constexpr int64_t kDotRowBytes = kLanes * 4;

template <int R>
ET_INLINE void BytesUnit(const uint8_t* a, int64_t lda, const uint8_t* b,
                         Ints (&sums)[R][kVectors]) {
#pragma GCC unroll 2
  for (int quad = 0; quad < kUnit / 4; ++quad, a += 4, b += kVectors * kLanes * 4) {
    Ints y[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) y[v] = Load(b + v * kLanes * 4);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const Ints x = Broadcast(a + i * lda);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[i][v] = Dot(sums[i][v], x, y[v]);
    }
  }
}
template <int R>
ET_INLINE void NibblesUnit(const uint8_t* a, int64_t lda, const uint8_t* b,
                           Ints (&sums)[R][kVectors]) {
  BytesUnit<R>(a, lda, b, sums);
}
ET_INLINE void WriteBytes(uint8_t* panel, int64_t d, int v, Ints x) {
  Store(x, panel + (d * kVectors + v) * kLanes * 4);
}
ET_INLINE Ints ByteDots(Ints sum, const uint8_t* a, Ints b) {
  return Dot(sum, Load(a), b);
}
ET_INLINE void PrepareQuads(const int8_t* a, uint8_t flip, int64_t k, int64_t block, uint8_t* to) {
  const int64_t padded = (k + block - 1) / block * block;
  flip ^= kQuadOffset;
  for (int64_t p = 0; p < k; ++p) to[p] = static_cast<uint8_t>(a[p] ^ flip);
  for (int64_t p = k; p < padded; ++p) to[p] = 0;
}
void PrepareBytes(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  PrepareQuads(a, flip, k, kUnit, to);
}
void PrepareDotBytes(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  PrepareQuads(a, flip, k, kLanes * 4, to);
}
