// The int8 kernels of one instruction set. int8_kernels.cpp includes this file, which has no guard,
// once for each set, inside a namespace of its own. These macros say which instructions the set
// has:
//   ET_INT8_DOT    whether one instruction multiplies and adds quads of bytes
//   ET_INT8_MATMUL whether one instruction multiplies small matrices: two rows by two columns of
//                  eight bytes each (ARM's i8mm), or 16 rows by 16 columns of 64 bytes each (x86's
//                  AMX)
//   ET_INT8_ATTR   the attribute with which lambdas are compiled for the set
// No product and sum may be contracted except by MulAdd(), because results must be equal on every
// machine. The exception is products of many rows with weights in groups, which AMX rounds less
// often (int8_amx-inl.h).

using Floats = hn::ScalableTag<float>;
using Ints = hn::Rebind<int32_t, Floats>;
using Words = hn::Repartition<int16_t, Floats>;
using Bytes = hn::Repartition<int8_t, Floats>;
using VF = hn::Vec<Floats>;
using V = hn::Vec<Ints>;
using VW = hn::Vec<Words>;
using VB = hn::Vec<Bytes>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Ints()));
constexpr int64_t kVectorBytes = kLanes * 4;

#include <executorch/cpu/gemm/int8_dot-inl.h>

// ---- vectors ----

HWY_INLINE VB LoadBytes(const void* p) {
  return hn::LoadU(Bytes(), static_cast<const int8_t*>(p));
}
HWY_INLINE V Load(const void* p) {
  return hn::BitCast(Ints(), LoadBytes(p));
}
template <class Vec>
HWY_INLINE void Store(Vec x, void* p) {
  hn::StoreU(hn::BitCast(Bytes(), x), Bytes(), static_cast<int8_t*>(p));
}
HWY_INLINE V Broadcast(const void* p) {
  int32_t quad;
  std::memcpy(&quad, p, 4);
  return hn::Set(Ints(), quad);
}
HWY_INLINE V Repeated(uint8_t byte) {
  return hn::BitCast(Ints(), hn::Set(Bytes(), static_cast<int8_t>(byte)));
}

/// The low and the high nibble of each byte.
HWY_INLINE V LowNibbles(V x) {
  return hn::And(x, Repeated(0x0F));
}
HWY_INLINE V HighNibbles(V x) {
  return LowNibbles(hn::ShiftRight<4>(x));
}

/// Calls f(x[i][j], i, j) for all i and j in loops that are unrolled, so that x stays in registers.
template <class Vec, int R, int C, class F>
HWY_INLINE void ForAll(Vec (&x)[R][C], const F& f) {
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) f(x[i][j], i, j);
  }
}
template <class Vec, int R, int C>
HWY_INLINE void Fill(Vec (&x)[R][C], Vec value) {
  ForAll(x, [=](Vec& to, int, int) ET_INT8_ATTR { to = value; });
}
template <class Vec, int R, int C>
HWY_INLINE void KeepAll(Vec (&x)[R][C]) {
  ForAll(x, [](Vec& to, int, int) ET_INT8_ATTR { Keep(to); });
}

/// to[p] = a[p] with `flip` applied by exclusive or, p < n; `to` may be `a`.
HWY_INLINE void FlipRow(const int8_t* a, uint8_t flip, int64_t n, int8_t* to) {
  const V flips = Repeated(flip);
  int64_t p = 0;
  for (; p + kVectorBytes <= n; p += kVectorBytes) Store(hn::Xor(Load(a + p), flips), to + p);
  const hn::CappedTag<int8_t, 16> block;
  for (; p + 16 <= n && kVectorBytes > 16; p += 16) {
    const auto bits = hn::Set(block, static_cast<int8_t>(flip));
    hn::StoreU(hn::Xor(hn::LoadU(block, a + p), bits), block, to + p);
  }
  for (; p < n; ++p) to[p] = static_cast<int8_t>(a[p] ^ flip);
}

#if ET_INT8_PAIRS
#include <executorch/cpu/gemm/int8_pairs-inl.h>
#else
#include <executorch/cpu/gemm/int8_quads-inl.h>
#endif

#if ET_INT8_I8MM
#include <executorch/cpu/gemm/int8_i8mm-inl.h>
#endif

// ---- panels ----

/// Loads a vector from byte p of a row of `bytes` bytes on. Bytes behind the row are zero and are
/// not read.
HWY_INLINE VB LoadRest(const uint8_t* row, int64_t p, int64_t bytes) {
  if (bytes - p >= kVectorBytes) return LoadBytes(row + p);
  uint8_t rest[kVectorBytes] = {};
  std::memcpy(rest, row + p, static_cast<size_t>(bytes - p));
  return LoadBytes(rest);
}

/// Loads bytes [p, p + 16) of rows 0, 4, 8 ... as the 16-byte blocks of one vector, so that no
/// blocks have to be exchanged later.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const uint8_t* const* rows, int64_t p) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::LoadU(d, reinterpret_cast<const int8_t*>(rows[0] + p));
  } else {
    const hn::Half<D> half;
    constexpr size_t kBehind = hn::MaxLanes(half) / 4;
    return hn::Combine(d, LoadBlocks(half, rows + kBehind, p), LoadBlocks(half, rows, p));
  }
}

/// Exchanges block i of x[j] and block j of x[i], for vectors of four 16-byte blocks.
HWY_INLINE void ExchangeBlocks(V (&x)[4]) {
  const auto pair = [](V a, V b, V& even, V& odd) ET_INT8_ATTR {
    even = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
    odd = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
  };
  const Ints d;
  const V a = hn::ConcatLowerLower(d, x[2], x[0]), b = hn::ConcatLowerLower(d, x[3], x[1]);
  const V c = hn::ConcatUpperUpper(d, x[2], x[0]), e = hn::ConcatUpperUpper(d, x[3], x[1]);
  pair(a, b, x[0], x[1]);
  pair(c, e, x[2], x[3]);
}

/// Calls write(d, v, x) for each quad d of kBlocks 16-byte blocks from byte p on; the first quad
/// has number q. x holds quad d of kLanes rows.
template <int kBlocks, class F>
HWY_INLINE void TransposeQuads(const uint8_t* const* rows, int64_t p, int64_t q, int v,
                               const F& write) {
  V x[kBlocks][4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    if constexpr (kBlocks == 4) {
      V row[4];
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) row[r] = Load(rows[4 * r + i] + p);
      ExchangeBlocks(row);
#pragma GCC unroll 4
      for (int block = 0; block < 4; ++block) x[block][i] = row[block];
    } else {
#pragma GCC unroll 4
      for (int block = 0; block < kBlocks; ++block) {
        x[block][i] = hn::BitCast(Ints(), LoadBlocks(Bytes(), rows + i, p + 16 * block));
      }
    }
  }
#pragma GCC unroll 4
  for (int block = 0; block < kBlocks; ++block) {
    TransposeBlocks(Ints(), x[block]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) write(q + block * 4 + i, v, x[block][i]);
  }
}

/// Calls write(d, v, x) for each quad d of n rows of `bytes` bytes, which are ldb bytes apart. x
/// holds quad d of the v-th kLanes rows; the last row is repeated where there are fewer.
template <class F>
HWY_INLINE void EachQuad(const uint8_t* b, int64_t ldb, int64_t n, int64_t bytes, const F& write) {
  constexpr int64_t kBlock = 16;
  for (int v = 0; v < kVectors; ++v) {
    const uint8_t* rows[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      const int64_t column = v * kLanes + j;
      rows[j] = b + (column < n ? column : n - 1) * ldb;
    }
    int64_t p = 0;
    for (; p + kVectorBytes <= bytes; p += kVectorBytes) {
#pragma GCC unroll 16
      for (int j = 0; j < kLanes; ++j) __builtin_prefetch(rows[j] + p + 4 * kVectorBytes);
      TransposeQuads<kVectorBytes / kBlock>(rows, p, p / 4, v, write);
    }
    for (; p + kBlock <= bytes; p += kBlock) TransposeQuads<1>(rows, p, p / 4, v, write);
    if (p == bytes) continue;
    uint8_t rest[kLanes][kBlock] = {};
    const uint8_t* rests[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      std::memcpy(rest[j], rows[j] + p, static_cast<size_t>(bytes - p));
      rests[j] = rest[j];
    }
    TransposeQuads<1>(rests, 0, p / 4, v, write);
  }
}

void PackBytes(const uint8_t* b, int64_t ldb, int64_t bytes, int64_t n, uint8_t* panel, int64_t) {
  EachQuad(b, ldb, n, bytes, [panel](int64_t d, int v, V x) ET_INT8_ATTR {
    Store(x, panel + d * kColumns * 4 + v * kVectorBytes);
  });
}

/// Spreads the four nibbles in the low 16 bits of each lane to bytes, and subtracts 8 from each.
HWY_INLINE V SpreadNibbles(V x) {
  const Ints d;
  x = hn::And(hn::Or(x, hn::ShiftLeft<8>(x)), hn::Set(d, 0x00FF00FF));
  x = hn::And(hn::Or(x, hn::ShiftLeft<4>(x)), hn::Set(d, 0x0F0F0F0F));
  return hn::BitCast(d, hn::Sub(hn::BitCast(Bytes(), x), hn::Set(Bytes(), 8)));
}

void PackNibbles(const uint8_t* b, int64_t ldb, int64_t bytes, int64_t n, uint8_t* panel, int64_t) {
  EachQuad(b, ldb, n, bytes, [panel](int64_t d, int v, V x) ET_INT8_ATTR {
    uint8_t* const to = panel + 2 * d * kColumns * 4 + v * kVectorBytes;
    const hn::RebindToUnsigned<Ints> du;
    Store(SpreadNibbles(hn::And(x, hn::Set(Ints(), 0xFFFF))), to);
    Store(SpreadNibbles(hn::BitCast(Ints(), hn::ShiftRight<16>(hn::BitCast(du, x)))),
          to + kColumns * 4);
  });
}

void PackScales(const BF16* from, int64_t groups, int64_t n, float* to) {
  EachQuad(reinterpret_cast<const uint8_t*>(from), groups * 2, n, groups * 2,
           [=](int64_t d, int v, V x) ET_INT8_ATTR {
             if (2 * d >= groups) return;
             float* const at = to + 2 * d * kColumns + v * kLanes;
             Store(hn::ShiftLeft<16>(x), at);
             if (2 * d + 1 == groups) return;
             Store(hn::And(x, hn::Set(Ints(), static_cast<int32_t>(0xFFFF0000))), at + kColumns);
           });
}

#include <executorch/cpu/gemm/int8_results-inl.h>

// ---- tiles ----

#if ET_INT8_AMX
#include <executorch/cpu/gemm/int8_amx-inl.h>
#endif

/// Converts a row to the elements that tiles multiply: unsigned bytes, or 16-bit numbers where int8
/// weights are multiplied by pairs.
template <Form kForm>
void PrepareTileRow(const int8_t* a, uint8_t flip, int64_t n, uint8_t* to) {
  if constexpr (ET_INT8_PAIRS && kForm == kBytes) {
    FlipRow(a, flip, n, reinterpret_cast<DotElement*>(to));
  } else {
    FlipRow(a, flip ^ static_cast<uint8_t>(kNibbleOffset), n, reinterpret_cast<int8_t*>(to));
  }
}

/// sums += products of the rows of a tile with its panel.
template <Form kForm, int R>
HWY_INLINE void AddTile(const Tile& t, V (&sums)[R][kVectors]) {
#if ET_INT8_PAIRS
  if constexpr (kForm == kBytes) return AddWideTile(t, sums);
#elif ET_INT8_I8MM
  return AddMatrixTile(t, sums);
#endif
  const uint8_t* b = t.panel;
  for (int64_t s = 0; s < t.n_segments; ++s) {
    const int8_t* const a = t.a + t.segments[s];
#if ET_INT8_DOT && ET_INT8_X86
    if (kForm == kBytes && !t.prepared) {
      AddQuads<true>(a, t.lda, t.quads, b, sums);
      continue;
    }
#endif
    AddQuads(a, t.lda, t.quads, b, sums);
  }
  KeepAll(sums);
}

template <Form kForm, int R>
void RunTile(const Tile& t) {
  auto* const to = static_cast<int32_t*>(t.sums);
#if ET_INT8_AMX
  MultiplyMatrices(t, R, to);
#else
  V sums[R][kVectors];
  Fill(sums, hn::Zero(Ints()));
  AddTile<kForm>(t, sums);
  ForAll(sums,
         [to](V sum, int i, int v) ET_INT8_ATTR { Store(sum, to + i * kColumns + v * kLanes); });
#endif
}

template <int R>
void RunByteTile(const Tile& t, const ByteResults& results) {
#if ET_INT8_AMX
  RunTile<kBytes, R>(t);
  FinishBytes(static_cast<const int32_t*>(t.sums), kColumns, R, results);
#else
  V sums[R][kVectors], start[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) start[v] = Load(results.columns->start + v * kLanes);
  ForAll(sums, [&](V& sum, int, int v) ET_INT8_ATTR { sum = start[v]; });
  AddTile<kBytes>(t, sums);
  const ByteRows store(results);
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) store(sums[i], i);
#endif
}

/// Multiplies rows [i0, i0 + R) of a tile with one segment, for weights in groups. The sums of each
/// group are scaled as floats and added up.
template <int R>
HWY_INLINE void SumGroups(const Tile& t, int i0) {
  VF all[R][kVectors];
  Fill(all, hn::Zero(Floats()));
  const int8_t* a = t.a + i0 * t.lda;
  const uint8_t* b = t.panel;
  const float* scales = t.scales;
  for (int64_t q = 0; q < t.quads; q += t.group_quads, scales += kColumns) {
    const int64_t n = t.group_quads < t.quads - q ? t.group_quads : t.quads - q;
    V sums[R][kVectors];
    Fill(sums, hn::Zero(Ints()));
#if ET_INT8_I8MM
    MatrixSums<R> matrices(sums);
    matrices.add(a, t.lda, n, b);
    matrices.copy_to(sums);
    b += n * kColumns * 4;
#else
    AddQuads(a, t.lda, n, b, sums);
    KeepAll(sums);
#endif
    a += 4 * n;
    VF scale[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) scale[v] = hn::LoadU(Floats(), scales + v * kLanes);
    ForAll(all, [&](VF& sum, int i, int v) ET_INT8_ATTR {
      sum = hn::MulAdd(hn::ConvertTo(Floats(), sums[i][v]), scale[v], sum);
    });
  }
  float* const to = static_cast<float*>(t.sums) + i0 * kColumns;
  ForAll(all, [to](VF sum, int i, int v)
                  ET_INT8_ATTR { hn::StoreU(sum, Floats(), to + i * kColumns + v * kLanes); });
}

template <int R>
void RunGroups(const Tile& t) {
#if ET_INT8_AMX
  if (t.column_scales != nullptr && t.column_scales[0] != 0) return MultiplyFixed(t, R);
  constexpr int kFirst = R < kMatrixRows ? R : kMatrixRows;
  for (int v = 0; v < kVectors; ++v) {
    MultiplyGroups<kFirst>(t, 0, v);
    if constexpr (R > kFirst) MultiplyGroups<R - kFirst>(t, kFirst, v);
  }
#else
  int i = 0;
  for (; i + kGroupRows <= R; i += kGroupRows) SumGroups<kGroupRows>(t, i);
  if constexpr (R % kGroupRows != 0) SumGroups<R % kGroupRows>(t, i);
#endif
}

#include <executorch/cpu/gemm/int8_dots-inl.h>
//
#include <executorch/cpu/gemm/int8_depthwise-inl.h>

// ---- the table ----

template <int... kHeightLess1>
constexpr void FillTiles(Kernels& k, std::integer_sequence<int, kHeightLess1...>) {
  ((k.rows[kBytes].tile[0][kHeightLess1 + 1] = RunTile<kBytes, kHeightLess1 + 1>), ...);
  ((k.byte_tile[kHeightLess1 + 1] = RunByteTile<kHeightLess1 + 1>), ...);
  ((k.rows[kNibbles].tile[0][kHeightLess1 + 1] = RunTile<kNibbles, kHeightLess1 + 1>), ...);
  ((k.rows[kGroups].tile[0][kHeightLess1 + 1] = RunGroups<kHeightLess1 + 1>), ...);
}

template <Form kForm>
constexpr Row MakeRow() {
  Row row{};
  row.rows = kRows;
  row.columns = row.width_step = kColumns;
  if constexpr (kForm == kBytes) {
    row.operand = {kByteOffset,  ET_INT8_PAIRS ? 2 : 1, nullptr,        kByteOffset,
                   kVectorBytes, kDotRowBytes,          PrepareDotBytes};
    row.pack_columns = PackBytes;
  } else {
    row.operand = {kNibbleOffset, 1, nullptr, 0, kBlockElements, kBlockBytes, PrepareDotNibbles};
    row.pack_columns = PackNibbles;
  }
  if constexpr (ET_INT8_AMX) {
    row.operand.tile_offset = 0;  // it multiplies signed bytes by signed
  } else if constexpr (ET_INT8_X86) {
    row.operand.prepare_tile = PrepareTileRow<kForm>;
  }
  row.few_rows_dot = RunDots<kForm>;
  row.finish = Finish;
  return row;
}

constexpr Kernels MakeKernels() {
  Kernels k{};
  k.rows[kBytes] = MakeRow<kBytes>();
  k.rows[kNibbles] = MakeRow<kNibbles>();
  k.rows[kGroups] = MakeRow<kGroups>();
  FillTiles(k, std::make_integer_sequence<int, kRows>());
  k.most_dot_rows = kMostDotRows;
  k.rows_in_l1 = kRowsInL1;
  k.least_block_rows = kLeastBlockRows;
  k.vector_bytes = kVectorBytes;
  k.pack_scales = PackScales;
#if ET_INT8_AMX
  k.fix_scales = FixScales;
  k.pack_fixed = PackFixed;
#endif
  k.finish_bytes = FinishBytes;
  k.interleave = InterleaveRows;
  k.depthwise = Depthwise;
  k.depthwise_offset = kByteOffset;
  return k;
}

constexpr Kernels kKernels = MakeKernels();
