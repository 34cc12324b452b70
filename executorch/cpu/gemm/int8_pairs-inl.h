// Sums for instruction sets that multiply bytes as pairs of 16-bit numbers; part of
// int8_kernels-inl.h. Products of unsigned bytes with nibbles are so small that the sum of eight
// pairs (255 * 8 * 2 * 8 = 32640), which a subgroup needs, fits 16 bits.

/// Multiplies unsigned bytes by signed bytes and adds neighbouring products to 16-bit sums.
HWY_INLINE VW BytePairs(V a, V b) {
  return VW{ET_X86(maddubs_epi16)(a.raw, b.raw)};
}
HWY_INLINE V AddWords(V sum, VW x) {
  return AddPairs(sum, x, hn::Set(Words(), 1));
}
/// Loads half a vector of bytes, widened to 16 bits.
HWY_INLINE VW Widened(const void* p) {
  return hn::PromoteTo(Words(), hn::LoadU(hn::Half<Bytes>(), static_cast<const int8_t*>(p)));
}

// ---- bytes ----

// Rows of A are widened to 16 bits before the inner loop, where widening would cost as much as the
// products. prepare_tile() does it once for all panels; where rows are read in place, each tile
// does it for its panel. A vector of sums has two sums for each column, one of the even and one of
// the odd pairs, so it covers half as many columns, and a panel is read in two passes.

/// to[p] = a[p] with `flip` applied by exclusive or, p < n
HWY_INLINE void FlipRow(const int8_t* a, uint8_t flip, int64_t n, int16_t* to) {
  const hn::Half<Bytes> half;
  constexpr int64_t kStep = kVectorBytes / 2;
  const auto flips = hn::Set(half, static_cast<int8_t>(flip));
  int64_t p = 0;
  for (; p + kStep <= n; p += kStep) {
    Store(hn::PromoteTo(Words(), hn::Xor(hn::LoadU(half, a + p), flips)), to + p);
  }
  for (; p < n; ++p) to[p] = static_cast<int8_t>(a[p] ^ flip);
}

/// The most quads that are widened at once: they fit L1 beside the same quads of a panel.
constexpr int64_t kWideQuads = kLanes == 16 ? 128 : 256;
/// Elements between widened rows. It is no power of two, because rows would then map to the same
/// cache sets.
constexpr int64_t kWideRow = kWideQuads * 4 + 32;

/// The quads of the rows of a tile as 16-bit numbers, segment by segment: prepared rows where they
/// lie, otherwise widened copies.
template <int R>
class WideRows {
 public:
  HWY_INLINE explicit WideRows(const Tile& t) : t_(t) {}

  /// Makes the next quads ready, in `to` if they are copied, and returns their number; at() is then
  /// their address. Returns 0 behind the last.
  HWY_INLINE int64_t next(int16_t (&to)[R][kWideRow]) {
    int64_t n = 0;
    while (n < kWideQuads && segment_ < t_.n_segments) {
      const int64_t left = t_.quads - quad_, free = kWideQuads - n;
      const int64_t more = left < free ? left : free;
      const int64_t at = t_.segments[segment_] + 4 * quad_;
      const int8_t* const from = t_.a + (t_.prepared ? 2 * at : at);
      n += more;
      quad_ += more;
      if (quad_ == t_.quads) quad_ = 0, ++segment_;
      if (t_.prepared) {
        at_ = reinterpret_cast<const int16_t*>(from);
        return n;
      }
      for (int i = 0; i < R; ++i) FlipRow(from + i * t_.lda, 0, 4 * more, to[i] + 4 * (n - more));
    }
    at_ = to[0];
    return n;
  }
  const int16_t* at() const { return at_; }

 private:
  const Tile& t_;
  const int16_t* at_ = nullptr;
  int64_t segment_ = 0, quad_ = 0;
};

/// sums += products of `n` widened quads of R rows, `ld` apart, with those of the columns of a
/// pass.
template <int R, class Distance>
HWY_INLINE void AddWideQuads(const int16_t* a, Distance ld, int64_t n, const uint8_t* b,
                             V (&sums)[R][2]) {
  const hn::Repartition<int64_t, Ints> fours;
  // Loads can add a constant to an address, or 0, ld or 2 ld.
  constexpr int kTogether = std::is_same_v<Distance, int64_t> ? 3 : R;
  constexpr int kPointers = (R + kTogether - 1) / kTogether;
  const int16_t* at[kPointers];
  for (int g = 0; g < kPointers; ++g) at[g] = a + g * kTogether * ld;
#pragma GCC unroll 2
  for (int64_t quad = 0; quad < n; ++quad, b += kColumns * 4) {
    VW y[2];
#pragma GCC unroll 2
    for (int v = 0; v < 2; ++v) y[v] = Widened(b + v * kVectorBytes / 2);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      int64_t four;
      std::memcpy(&four, at[i / kTogether] + i % kTogether * ld, 8);
      const VW x = hn::BitCast(Words(), hn::Set(fours, four));
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) sums[i][v] = AddPairs(sums[i][v], x, y[v]);
    }
#pragma GCC unroll 4
    for (int g = 0; g < kPointers; ++g) {
      at[g] += 4;
      asm("" : "+r"(at[g]));  // otherwise the compiler keeps all addresses on the stack
    }
  }
}

template <int R>
HWY_INLINE void AddWideTile(const Tile& t, V (&sums)[R][kVectors]) {
  static_assert(kVectors == 2);
  alignas(64) int16_t wide[R][kWideRow];
  V all[2][R][2];
  for (auto& pass : all) Fill(pass, hn::Zero(Ints()));
  WideRows<R> rows(t);
  const uint8_t* b = t.panel;
  while (const int64_t n = rows.next(wide)) {
    for (int pass = 0; pass < 2; ++pass) {
      V part[R][2];
      ForAll(part, [&](V& sum, int i, int v) ET_INT8_ATTR { sum = all[pass][i][v]; });
      const uint8_t* const of_pass = b + pass * kVectorBytes;
      if (t.prepared) {
        AddWideQuads(rows.at(), t.lda / 2, n, of_pass, part);
      } else {
        AddWideQuads(rows.at(), std::integral_constant<int64_t, kWideRow>(), n, of_pass, part);
      }
      KeepAll(part);
      ForAll(part, [&](V sum, int i, int v) ET_INT8_ATTR { all[pass][i][v] = sum; });
    }
    b += n * kColumns * 4;
  }
  const Ints d;
  ForAll(sums, [&](V& sum, int i, int v) ET_INT8_ATTR {
    const V low = all[v][i][0], high = all[v][i][1];
    sum = hn::Add(sum, hn::Add(hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)));
  });
}

// ---- nibbles ----

/// Adds the products of rows [i0, i0 + N) of R and at most a subgroup of quads.
template <int N, int R>
HWY_INLINE void AddSubgroup(int i0, const int8_t* a, int64_t lda, int64_t n, const uint8_t* b,
                            V (&sums)[R][kVectors]) {
  VW part[N][kVectors];
  Fill(part, hn::Zero(Words()));
#pragma GCC unroll 2
  for (int64_t quad = 0; quad < n; ++quad, a += 4, b += kColumns * 4) {
    V y[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) y[v] = Load(b + v * kVectorBytes);
#pragma GCC unroll 3
    for (int i = 0; i < N; ++i) {
      const V x = Broadcast(a + (i0 + i) * lda);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) part[i][v] = hn::Add(part[i][v], BytePairs(x, y[v]));
    }
  }
  KeepAll(part);
  ForAll(part,
         [&](VW x, int i, int v) ET_INT8_ATTR { sums[i0 + i][v] = AddWords(sums[i0 + i][v], x); });
}

/// sums += products of `n` quads of R rows with those of a panel of nibbles. Afterwards b points
/// behind them.
template <int R>
HWY_INLINE void AddQuads(const int8_t* a, int64_t lda, int64_t n, const uint8_t*& b,
                         V (&sums)[R][kVectors]) {
  while (n > 0) {
    const int64_t subgroup = n < kSubgroup / 4 ? n : kSubgroup / 4;
    // 16-bit sums of more rows would not stay in registers beside the others.
#pragma GCC unroll 4
    for (int i = 0; i + 3 <= R; i += 3) AddSubgroup<3>(i, a, lda, subgroup, b, sums);
    if constexpr (R % 3 != 0) AddSubgroup<R % 3>(R - R % 3, a, lda, subgroup, b, sums);
    n -= subgroup;
    a += 4 * subgroup;
    b += subgroup * kColumns * 4;
  }
}

// ---- dots ----

using DotElement = int16_t;  // of a row of A

HWY_INLINE V ByteDots(V sum, const uint8_t* a, V b) {
  const hn::Half<Bytes> half;
  const VB bytes = hn::BitCast(Bytes(), b);
  const auto widened = [](auto x) ET_INT8_ATTR { return hn::PromoteTo(Words(), x); };
  sum = AddPairs(sum, widened(hn::LowerHalf(half, bytes)), hn::BitCast(Words(), LoadBytes(a)));
  return AddPairs(sum, widened(hn::UpperHalf(half, bytes)),
                  hn::BitCast(Words(), LoadBytes(a + kVectorBytes)));
}

/// The number of vectors of nibbles whose products add up in one vector of sums. It is so small
/// that the scales of their subgroups fit 16 bytes.
constexpr int kDotBlock = kLanes == 16 ? 2 : 4;

/// Returns start + products of a block of nibbles with the even and odd elements of a row. If
/// kBySubgroup, the sums are ordered by subgroup: those of the u-th subgroup of each vector are in
/// 16-byte block u, in the order of the vectors.
template <bool kBySubgroup>
HWY_INLINE V NibbleDots(V start, const uint8_t* a, const V (&y)[kDotBlock]) {
  VW x[kDotBlock];
#pragma GCC unroll 4
  for (int v = 0; v < kDotBlock; ++v, a += 2 * kVectorBytes) {
    V b = y[v];
    Keep(b);  // or it would be loaded twice
    x[v] = hn::Add(BytePairs(LowNibbles(b), Load(a)),
                   BytePairs(HighNibbles(b), Load(a + kVectorBytes)));
  }
  if constexpr (!kBySubgroup) {  // four of them fit 16 bits: 15 * 128 * 4 * 4 = 30720
    for (int v = 1; v < kDotBlock; ++v) x[0] = hn::Add(x[0], x[v]);
    return AddWords(start, x[0]);
  }
  const auto halved = [](VW p, VW q) ET_INT8_ATTR {
    const V none = hn::Zero(Ints());
    return hn::ReorderDemote2To(Words(), AddWords(none, p), AddWords(none, q));
  };
  if constexpr (kDotBlock == 2) return AddWords(start, halved(x[0], x[1]));
  if constexpr (kDotBlock == 4) {
    return AddWords(start, halved(halved(x[0], x[1]), halved(x[2], x[3])));
  }
}
