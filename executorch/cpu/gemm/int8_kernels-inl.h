// The kernels over the vector operations of one instruction set; included behind them and
// int8_vectors-inl.h, inside its namespace and target, without a guard. It needs
//   kRows, kVectors, kLanes   of the tallest tile; a vector has kLanes 32-bit numbers
//   kGroupRows                rows whose sums of a group and scaled sums stay in registers
//   Keep                      holds a sum in its register: GCC copies what loops end with
//   MulAdd                    x * y + z, rounded once where the set can
//   Rounded                   to nearest even; numbers that 16 bits do not hold to such that lie
//                             outside of 8 bits on the same side; a NaN to the least
//   PackInts, PackWords       numbers of 32 bits to 16, of 16 to 8, held within
//   AddWords                  sums of numbers of 16 bits, held within
//   StoreFew                  the first 1 to kVectorBytes - 1 bytes of a vector
//   ByteSums, NibbleSums      sums of a tile: how quads are added, and where sums then lie
//   DepthwiseDot              sums += quads of an image times quads of weights
//   kDotOffset, kDotRowBytes, PrepareDotBytes, ByteDots, NibbleDots, GroupScales   for dots
// Nothing else may contract products and sums: results are equal on every machine.

// ---- panels ----

/// The `bytes` of a row from p on, zeros behind.
ET_INLINE Ints LoadRest(const uint8_t* row, int64_t p, int64_t bytes) {
  if (bytes - p >= kVectorBytes) return Load(row + p);
  uint8_t rest[kVectorBytes] = {};
  std::memcpy(rest, row + p, static_cast<size_t>(bytes - p));
  return Load(rest);
}

/// write(d, v, x) for each quad d of the rows: x has those of the v-th kLanes
/// rows.
template <class F>
ET_INLINE void EachQuad(const uint8_t* b, int64_t ldb, int64_t n, int64_t bytes, const F& write) {
  for (int v = 0; v < kVectors; ++v) {
    const uint8_t* rows[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      const int64_t column = v * kLanes + j;
      rows[j] = b + (column < n ? column : n - 1) * ldb;
    }
    for (int64_t p = 0; p < bytes; p += kVectorBytes) {
      Ints x[kLanes];
      if (bytes - p >= kVectorBytes) {
#pragma GCC unroll 16
        for (int j = 0; j < kLanes; ++j) {
          __builtin_prefetch(rows[j] + p + 4 * kVectorBytes);
          x[j] = Load(rows[j] + p);
        }
      } else {
        for (int j = 0; j < kLanes; ++j) x[j] = LoadRest(rows[j], p, bytes);
      }
      Transpose(x);
#pragma GCC unroll 16
      for (int d = 0; d < kLanes; ++d) write(p / 4 + d, v, x[d]);
    }
  }
}

void PackBytes(const uint8_t* b, int64_t ldb, int64_t n, int64_t bytes, uint8_t* panel) {
  EachQuad(b, ldb, n, bytes, [panel](int64_t d, int v, Ints x) ET_TARGET_LAMBDA {
    Store(x, panel + d * kColumns * 4 + v * kVectorBytes);
  });
}

/// Four nibbles, the low half of each number, as bytes that are 8 less.
ET_INLINE Ints SpreadNibbles(Ints x) {
  x = (x | x << 8) & 0x00FF00FF;
  x = (x | x << 4) & 0x0F0F0F0F;
  // Byte by byte: no borrow leaves a byte whose highest bit is set.
  typedef uint32_t Numbers __attribute__((vector_size(kLanes * 4), may_alias));
  const Numbers raised = (reinterpret_cast<Numbers>(x) | 0x80808080) - 0x08080808;
  return reinterpret_cast<Ints>(raised ^ 0x80808080);
}

void PackNibbles(const uint8_t* b, int64_t ldb, int64_t n, int64_t bytes, uint8_t* panel) {
  EachQuad(b, ldb, n, bytes, [panel](int64_t d, int v, Ints x) ET_TARGET_LAMBDA {
    uint8_t* const to = panel + 2 * d * kColumns * 4 + v * kVectorBytes;
    Store(SpreadNibbles(x & 0xFFFF), to);
    Store(SpreadNibbles((x >> 16) & 0xFFFF), to + kColumns * 4);
  });
}

void PackScales(const BF16* from, int64_t groups, int64_t n, float* to) {
  EachQuad(reinterpret_cast<const uint8_t*>(from), groups * 2, n, groups * 2,
           [=](int64_t d, int v, Ints x) ET_TARGET_LAMBDA {
             if (2 * d >= groups) return;
             float* const at = to + 2 * d * kColumns + v * kLanes;
             Store(x << 16, at);
             if (2 * d + 1 < groups) Store(x & static_cast<int32_t>(0xFFFF0000), at + kColumns);
           });
}

#include <executorch/cpu/gemm/int8_bytes-inl.h>
//
#include <executorch/cpu/gemm/int8_results-inl.h>

// ---- tiles ----

/// Copies quads of the rows of a tile, segment after segment, as numbers of 16 bits.
template <class Sums, int R>
class WideRows {
 public:
  ET_INLINE WideRows(const Tile& t, int i0) : t_(t), a_(t.a + i0 * t.lda) {}

  /// The next ones, and how many there are; 0 behind the last.
  ET_INLINE int64_t next(int16_t (&to)[R][Sums::kWideRow]) {
    int64_t n = 0;
    while (n < Sums::kWideQuads && segment_ < t_.n_segments) {
      const int64_t left = t_.quads - quad_, free = Sums::kWideQuads - n;
      const int64_t more = left < free ? left : free;
      for (int i = 0; i < R; ++i) {
        Sums::Widen(a_ + i * t_.lda + t_.segments[segment_] + 4 * quad_, more, to[i] + 4 * n);
      }
      n += more;
      quad_ += more;
      if (quad_ == t_.quads) quad_ = 0, ++segment_;
    }
    return n;
  }

 private:
  const Tile& t_;
  const int8_t* a_;
  int64_t segment_ = 0, quad_ = 0;
};

/// Sums of rows [i0, i0 + R) of a tile, whose rows of A are widened first.
template <class Sums, int R>
ET_INLINE void SumWideRows(const Tile& t, int i0) {
  constexpr int kPassColumns = kColumns / Sums::kPasses;
  alignas(kVectorBytes) int16_t wide[R][Sums::kWideRow];
  Ints all[Sums::kPasses][R][kVectors];
  for (auto& pass : all) {
    for (auto& row : pass) {
      for (Ints& sums : row) sums = Ints{};
    }
  }
  WideRows<Sums, R> rows(t, i0);
  const uint8_t* b = t.panel;
  while (const int64_t n = rows.next(wide)) {
    for (int pass = 0; pass < Sums::kPasses; ++pass) {
      Ints sums[R][kVectors];
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[i][v] = all[pass][i][v];
      }
      Sums::template Add<R>(wide, n, b + pass * kPassColumns * 4, sums);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          Keep(sums[i][v]);
          all[pass][i][v] = sums[i][v];
        }
      }
    }
    b += n * kColumns * 4;
  }
  for (int pass = 0; pass < Sums::kPasses; ++pass) {
    for (int i = 0; i < R; ++i) {
      Sums::Write(all[pass][i],
                  static_cast<int32_t*>(t.sums) + (i0 + i) * kColumns + pass * kPassColumns);
    }
  }
}

/// Sums of rows [i0, i0 + R) of a tile.
template <class Sums, int R>
ET_INLINE void SumRows(const Tile& t, int i0) {
  if constexpr (Sums::kWide) {
    SumWideRows<Sums, R>(t, i0);
  } else {
    const uint8_t* b = t.panel;
    Ints sums[R][kVectors] = {};
    for (int64_t s = 0; s < t.n_segments; ++s) {
      Sums::template Add<R>(t.a + i0 * t.lda + t.segments[s], t.lda, t.quads, b, sums);
    }
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) Keep(sums[i][v]);
      Sums::Write(sums[i], static_cast<int32_t*>(t.sums) + (i0 + i) * kColumns);
    }
  }
}

template <class Sums, int R>
void RunTile(const Tile& t) {
  SumRows<Sums, R>(t, 0);
}

template <class Sums, int R>
void RunByteTile(const Tile& t, const ByteResults& results) {
  if constexpr (Sums::kWide) {
    SumRows<Sums, R>(t, 0);
    FinishBytes(static_cast<const int32_t*>(t.sums), kColumns, R, results);
  } else {
    Ints sums[R][kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Ints start = Load(results.columns->start + v * kLanes);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) sums[i][v] = start;
    }
    const uint8_t* b = t.panel;
    for (int64_t s = 0; s < t.n_segments; ++s) {
      Sums::template Add<R>(t.a + t.segments[s], t.lda, t.quads, b, sums);
    }
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) Keep(sums[i][v]);
    }
    const ByteRows store(results);
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) store(sums[i], i);
  }
}

/// One segment; each group's sums are scaled.
template <int R>
ET_INLINE void SumGroups(const Tile& t, int i0) {
  Floats all[R][kVectors] = {};
  const int8_t* a = t.a + i0 * t.lda;
  const uint8_t* b = t.panel;
  const float* scales = t.scales;
  for (int64_t q = 0; q < t.quads; q += t.group_quads, scales += kColumns) {
    const int64_t n = t.group_quads < t.quads - q ? t.group_quads : t.quads - q;
    Ints sums[R][kVectors] = {};
    NibbleSums::template Add<R>(a, t.lda, n, b, sums);
    a += 4 * n;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Floats scale = LoadFloats(scales + v * kLanes);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
        Keep(sums[i][v]);
        all[i][v] = MulAdd(ToFloat(sums[i][v]), scale, all[i][v]);
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      StoreFloats(all[i][v], static_cast<float*>(t.sums) + (i0 + i) * kColumns + v * kLanes);
    }
  }
}

template <int R>
void RunGroups(const Tile& t) {
  if constexpr (R > kGroupRows) {
    int i = 0;
    for (; i + kGroupRows <= R; i += kGroupRows) SumGroups<kGroupRows>(t, i);
    if constexpr (R % kGroupRows != 0) SumGroups<R % kGroupRows>(t, i);
  } else {
    SumGroups<R>(t, 0);
  }
}

#include <executorch/cpu/gemm/int8_dots-inl.h>
//
#include <executorch/cpu/gemm/int8_depthwise-inl.h>

// ---- all of them ----

template <int... kHeightLess1>
constexpr void FillTiles(Kernels& k, std::integer_sequence<int, kHeightLess1...>) {
  ((k.tile[kBytes][kHeightLess1 + 1] = RunTile<ByteSums, kHeightLess1 + 1>), ...);
  ((k.byte_tile[kHeightLess1 + 1] = RunByteTile<ByteSums, kHeightLess1 + 1>), ...);
  ((k.tile[kNibbles][kHeightLess1 + 1] = RunTile<NibbleSums, kHeightLess1 + 1>), ...);
  ((k.tile[kGroups][kHeightLess1 + 1] = RunGroups<kHeightLess1 + 1>), ...);
}

constexpr Kernels MakeKernels() {
  Kernels k{};
  k.rows = kRows;
  k.columns = kColumns;
  k.tile_offset[0] = ByteSums::kOffset;
  k.tile_offset[1] = NibbleSums::kOffset;
  k.dot_rows[0] = {kDotOffset, kVectorBytes, kDotRowBytes, PrepareDotBytes};
  k.dot_rows[1] = {0, 2 * kVectorBytes, 3 * kVectorBytes, PrepareDotNibbles};
  k.vector_bytes = kVectorBytes;
  k.pack[0] = PackBytes;
  k.pack[1] = PackNibbles;
  k.pack_scales = PackScales;
  FillTiles(k, std::make_integer_sequence<int, kRows>());
  k.dots[kBytes] = RunDots<kBytes>;
  k.dots[kNibbles] = RunDots<kNibbles>;
  k.dots[kGroups] = RunDots<kGroups>;
  k.finish = Finish;
  k.finish_bytes = FinishBytes;
  k.interleave = InterleaveRows;
  k.depthwise = Depthwise;
  k.depthwise_offset = kDepthwiseOffset;
  return k;
}

constexpr Kernels kKernels = MakeKernels();
