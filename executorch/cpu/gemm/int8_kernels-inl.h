// The kernels over the vector operations of one instruction set; included behind them, inside its
// namespace and target, without a guard. It needs
//   kRows, kVectors, kLanes      of the tallest tile; a vector has kLanes 32-bit numbers
//   Ints, Floats                 Clear, Load, Store, LoadFloats, StoreFloats, ToFloat, MulAdd
//   Keep                         holds a sum in its register: GCC copies what loops end with
//   kBytesOffset, kNibblesOffset, kPanelBytes, kRowBytes   of BytesUnit and NibblesUnit
//   BytesUnit, NibblesUnit       sums += a unit of R prepared rows times a unit of a panel
//   WriteBytes, WriteNibbles     quad `d` of kLanes columns into a panel
//   Transpose                    kLanes rows of kLanes 32-bit numbers to columns
//   kDotOffset, kDotRowBytes, ByteDots, NibbleDots, GroupScales, SumLanes   for dots
//   PrepareBytes, PrepareDotBytes

constexpr int kColumns = kVectors * kLanes;
constexpr int64_t kVectorBytes = kLanes * 4;

// ---- rows of A ----

/// Even elements, then odd ones, of each 2 * half.
template <int64_t half>
ET_INLINE void Deinterleave(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  int64_t p = 0;
  for (; p + 2 * half <= k; p += 2 * half, to += 2 * half) {
    for (int64_t q = 0; q < half; ++q) {
      to[q] = static_cast<uint8_t>(a[p + 2 * q] ^ flip);
      to[q + half] = static_cast<uint8_t>(a[p + 2 * q + 1] ^ flip);
    }
  }
  if (p == k) return;
  for (int64_t q = 0; q < 2 * half; ++q) to[q] = 0;
  for (int64_t q = 0; p + q < k; ++q) {
    to[q % 2 * half + q / 2] = static_cast<uint8_t>(a[p + q] ^ flip);
  }
}

ET_INLINE void CopyFlipped(const int8_t* a, uint8_t flip, int64_t k, int64_t padded, uint8_t* to) {
  for (int64_t p = 0; p < k; ++p) to[p] = static_cast<uint8_t>(a[p] ^ flip);
  for (int64_t p = k; p < padded; ++p) to[p] = 0;
}

void PrepareNibbles(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  Deinterleave<kUnit / 2>(a, flip ^ kNibblesOffset, k, to);
}

// ---- panels ----

/// The `bytes` of a row from p on, zeros behind.
ET_INLINE Ints LoadRest(const uint8_t* row, int64_t p, int64_t bytes) {
  if (bytes - p >= kVectorBytes) return Load(row + p);
  uint8_t rest[kVectorBytes] = {};
  std::memcpy(rest, row + p, static_cast<size_t>(bytes - p));
  return Load(rest);
}

/// write(d, v, x) for each quad d of the rows: x has those of the v-th kLanes rows.
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
  EachQuad(b, ldb, n, bytes,
           [panel](int64_t d, int v, Ints x) ET_TARGET_LAMBDA { WriteBytes(panel, d, v, x); });
}

/// A unit is four quads of even elements, then four of odd ones.
void PackNibbles(const uint8_t* b, int64_t ldb, int64_t n, int64_t bytes, uint8_t* panel) {
  EachQuad(b, ldb, n, bytes, [panel](int64_t d, int v, Ints x) ET_TARGET_LAMBDA {
    uint8_t* const to = panel + (d / 4 * 8 + d % 4) * kColumns * 4 + v * kVectorBytes;
    Store(NibblesLessEight(LowNibbles(x)), to);
    Store(NibblesLessEight(HighNibbles(x)), to + 4 * kColumns * 4);
  });
}

void PackScales(const BF16* from, int64_t groups, int64_t n, float* to) {
  EachQuad(reinterpret_cast<const uint8_t*>(from), groups * 2, n, groups * 2,
           [=](int64_t d, int v, Ints x) ET_TARGET_LAMBDA {
             if (2 * d >= groups) return;
             float* const at = to + 2 * d * kColumns + v * kLanes;
             Store(LowHalvesAsFloats(x), at);
             if (2 * d + 1 < groups) Store(HighHalvesAsFloats(x), at + kColumns);
           });
}

// ---- tiles ----

/// sums = `units` of a times as many of a panel, which is behind them afterwards, as `a` is.
template <Form kForm, int R>
ET_INLINE void SumUnits(int64_t units, int64_t lda, const uint8_t*& a, const uint8_t*& b,
                        Ints (&sums)[R][kVectors]) {
  constexpr int kOf = kForm == kBytes ? 0 : 1;
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) Clear(sums[i][v]);
  }
  for (int64_t u = 0; u < units; ++u, a += kRowBytes[kOf], b += kPanelBytes[kOf]) {
    if constexpr (kForm == kBytes) {
      BytesUnit<R>(a, lda, b, sums);
    } else {
      NibblesUnit<R>(a, lda, b, sums);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) Keep(sums[i][v]);
  }
}

template <Form kForm, int R>
void RunTile(const Tile& t) {
  const uint8_t *a = t.a, *b = t.panel;
  Ints sums[R][kVectors];
  SumUnits<kForm>(t.units, t.lda, a, b, sums);
  auto* const to = static_cast<int32_t*>(t.sums);
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) Store(sums[i][v], to + i * kColumns + v * kLanes);
  }
}

template <int R>
void RunGroups(const Tile& t) {
  const uint8_t *a = t.a, *b = t.panel;
  const float* scales = t.scales;
  std::memset(t.sums, 0, sizeof(float) * R * kColumns);
  for (int64_t u = 0; u < t.units; u += t.group_units, scales += kColumns) {
    const int64_t n = t.group_units < t.units - u ? t.group_units : t.units - u;
    Ints sums[R][kVectors];
    SumUnits<kGroups>(n, t.lda, a, b, sums);
    auto* const to = static_cast<float*>(t.sums);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Floats scale = LoadFloats(scales + v * kLanes);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
        float* const at = to + i * kColumns + v * kLanes;
        StoreFloats(MulAdd(ToFloat(sums[i][v]), scale, LoadFloats(at)), at);
      }
    }
  }
}

#include <executorch/cpu/gemm/int8_dots-inl.h>

// ---- results ----

uint16_t HalfOf(float x) {
  // By the magic-number method: the sum with a power of two rounds to the unit wanted.
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x38800000) {
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F000000));
  }
  const uint32_t odd = magnitude >> 13 & 1;
  return static_cast<uint16_t>(sign | ((magnitude + 0xFFF + odd - (112u << 23)) >> 13));
}

uint16_t BFloat16Of(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// Nearest even, for |x| < 2^22; unlike std::nearbyint a loop of these becomes vectors everywhere.
ET_INLINE float RoundEven(float x) {
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23
  return (x + kRounder) - kRounder;
}

/// Held before it is rounded: a NaN becomes `low`, and the conversion is defined for every float.
/// x is in units of the scale; low, high: less the zero point.
ET_INLINE float Quantized(float x, float low, float high) {
  const float bounded = x > low ? x : low;
  return RoundEven(bounded < high ? bounded : high);
}

template <class T>
ET_INLINE void StoreQuantized(const float* x, float inverse, int64_t n, int32_t zero_point, T* q) {
  constexpr float kLow = std::is_signed_v<T> ? -128 : 0;
  const auto zero = static_cast<float>(zero_point);
  const float low = kLow - zero, high = kLow + 255 - zero;
  for (int64_t j = 0; j < n; ++j) {
    q[j] = static_cast<T>(static_cast<int32_t>(Quantized(x[j] * inverse, low, high) + zero));
  }
}

/// x = what the sums of row r mean, in units of the result: factor[j] for each.
ET_INLINE void ScaleSums(const Results& e, int64_t r, const RowQuantization& row,
                         const float* factor, float* x) {
  const Int8Gemm& g = *e.gemm;
  const int32_t offset = row.zero_point + e.offset - (g.unsigned_a ? 128 : 0);
  if (g.b.group_scales != nullptr) {
    const float* sums = reinterpret_cast<const float*>(e.sums) + r * e.ld;
    const float* w = g.group_sums + e.j0;
    const auto zero = static_cast<float>(offset);
    for (int64_t j = 0; j < e.nj; ++j) x[j] = (sums[j] - zero * w[j]) * factor[j];
    return;
  }
  // Wraps rather than overflows where a file says nonsense.
  const auto* sums = reinterpret_cast<const uint32_t*>(e.sums + r * e.ld);
  const auto* w = reinterpret_cast<const uint32_t*>(g.sums + e.j0);
  const auto zero = static_cast<uint32_t>(offset);
  if (g.integer_bias == nullptr) {
    for (int64_t j = 0; j < e.nj; ++j) {
      x[j] = static_cast<float>(static_cast<int32_t>(sums[j] - zero * w[j])) * factor[j];
    }
    return;
  }
  const auto* bias = reinterpret_cast<const uint32_t*>(g.integer_bias + e.j0);
  for (int64_t j = 0; j < e.nj; ++j) {
    x[j] = static_cast<float>(static_cast<int32_t>(sums[j] - zero * w[j] + bias[j])) * factor[j];
  }
}

ET_INLINE void StoreRow(const Int8Gemm& g, const float* x, int64_t n, int64_t first) {
  switch (g.out) {
    case Int8Gemm::Out::F32:
      std::memcpy(static_cast<float*>(g.c) + first, x, static_cast<size_t>(n) * 4);
      return;
    case Int8Gemm::Out::F16:
      for (int64_t j = 0; j < n; ++j) static_cast<F16*>(g.c)[first + j] = {HalfOf(x[j])};
      return;
    case Int8Gemm::Out::BF16:
      for (int64_t j = 0; j < n; ++j) static_cast<BF16*>(g.c)[first + j] = {BFloat16Of(x[j])};
      return;
    case Int8Gemm::Out::Int8:
      StoreQuantized(x, 1, n, g.c_quantization.zero_point, static_cast<int8_t*>(g.c) + first);
      return;
    case Int8Gemm::Out::UInt8:
      StoreQuantized(x, 1, n, g.c_quantization.zero_point, static_cast<uint8_t*>(g.c) + first);
      return;
  }
}

void Finish(const Results& e) {
  float x[kMostColumns], factor[kMostColumns];
  const Int8Gemm& g = *e.gemm;
  // Scaled once, so that what lies half-way between two integers is rounded as such.
  const bool integers = g.out == Int8Gemm::Out::Int8 || g.out == Int8Gemm::Out::UInt8;
  const float unit = integers ? g.c_quantization.scale : 1;
  const float low = g.low / unit, high = g.high / unit;
  const RowQuantization* present = nullptr;
  for (int64_t r = 0; r < e.ni; ++r) {
    const RowQuantization* row = g.rows + (e.i0 + r) / g.rows_share;
    if (row != present) {
      for (int64_t j = 0; j < e.nj; ++j) {
        factor[j] = row->scale * (g.b.group_scales != nullptr ? 1 : g.b.scales[e.j0 + j]);
      }
      if (integers) {
        for (int64_t j = 0; j < e.nj; ++j) factor[j] /= unit;
      }
      present = row;
    }
    ScaleSums(e, r, *row, factor, x);
    if (g.bias != nullptr) {
      for (int64_t j = 0; j < e.nj; ++j) x[j] += g.bias[e.j0 + j] / unit;
    }
    for (int64_t j = 0; j < e.nj; ++j) {  // a NaN stays one
      const float y = x[j] < low ? low : x[j];
      x[j] = y > high ? high : y;
    }
    StoreRow(g, x, e.nj, (e.i0 + r) * g.ldc + e.j0);
  }
}

RowQuantization QuantizeRow(const float* x, int64_t n, int8_t* q) {
  constexpr int kWidth = 32;
  float lows[kWidth] = {}, highs[kWidth] = {};
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int l = 0; l < kWidth; ++l) {
      lows[l] = x[i + l] < lows[l] ? x[i + l] : lows[l];
      highs[l] = x[i + l] > highs[l] ? x[i + l] : highs[l];
    }
  }
  for (; i < n; ++i) {
    lows[0] = x[i] < lows[0] ? x[i] : lows[0];
    highs[0] = x[i] > highs[0] ? x[i] : highs[0];
  }
  float low = 0, high = 0;
  for (int l = 0; l < kWidth; ++l) {
    low = lows[l] < low ? lows[l] : low;
    high = highs[l] > high ? highs[l] : high;
  }
  const float inverse = high == low ? 1.0f : 255.0f / (high - low);
  const float a = low * inverse, b = high * inverse;
  const float zero = (-128 + a) + (127 + b) > 0 ? -128 - a : 127 - b;
  // An infinite range has no number that stands for 0.
  const float bounded = zero > -128 ? (zero < 127 ? zero : 127) : -128;
  const RowQuantization to{1 / inverse, static_cast<int32_t>(RoundEven(bounded))};
  StoreQuantized(x, 1 / to.scale, n, to.zero_point, q);
  return to;
}

// ---- depthwise ----

template <int64_t width>
ET_INLINE void DepthwiseChannels(const DepthwiseSums& d, int64_t c) {
  int32_t sums[width] = {};
  for (int64_t t = 0; t < d.taps; ++t) {
    if (d.x[t] == nullptr) continue;
    const int8_t *x = d.x[t] + c, *w = d.w + t * d.n + c;
    for (int64_t l = 0; l < width; ++l) sums[l] += (x[l] - d.zero_point) * w[l];
  }
  std::memcpy(d.sums + c, sums, sizeof(sums));
}

void Depthwise(const DepthwiseSums& d) {
  int64_t c = 0;
  for (; c + 32 <= d.n; c += 32) DepthwiseChannels<32>(d, c);
  for (; c + 8 <= d.n; c += 8) DepthwiseChannels<8>(d, c);
  for (; c < d.n; ++c) DepthwiseChannels<1>(d, c);
}

// ---- all of them ----

template <int... kHeightLess1>
constexpr void FillTiles(Kernels& k, std::integer_sequence<int, kHeightLess1...>) {
  ((k.tile[kBytes][kHeightLess1 + 1] = RunTile<kBytes, kHeightLess1 + 1>), ...);
  ((k.tile[kNibbles][kHeightLess1 + 1] = RunTile<kNibbles, kHeightLess1 + 1>), ...);
  ((k.tile[kGroups][kHeightLess1 + 1] = RunGroups<kHeightLess1 + 1>), ...);
}

constexpr Kernels MakeKernels() {
  Kernels k{};
  k.rows = kRows;
  k.columns = kColumns;
  for (int of = 0; of < 2; ++of) k.panel_unit[of] = kPanelBytes[of];
  k.tile_rows[0] = {kBytesOffset, kUnit, kRowBytes[0], PrepareBytes};
  k.tile_rows[1] = {kNibblesOffset, kUnit, kRowBytes[1], PrepareNibbles};
  k.dot_rows[0] = {kDotOffset, kVectorBytes, kDotRowBytes, PrepareDotBytes};
  k.dot_rows[1] = {0, 2 * kVectorBytes, 3 * kVectorBytes, PrepareDotNibbles};
  k.pack[0] = PackBytes;
  k.pack[1] = PackNibbles;
  k.pack_scales = PackScales;
  FillTiles(k, std::make_integer_sequence<int, kRows>());
  k.dots[kBytes] = RunDots<kBytes>;
  k.dots[kNibbles] = RunDots<kNibbles>;
  k.dots[kGroups] = RunDots<kGroups>;
  k.finish = Finish;
  k.depthwise = Depthwise;
  k.quantize_row = QuantizeRow;
  return k;
}

constexpr Kernels kKernels = MakeKernels();
