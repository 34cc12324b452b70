// Few rows times rows of B where they lie; part of int8_kernels-inl.h.

constexpr int64_t kDotRowBytes = kVectorBytes * static_cast<int64_t>(sizeof(DotElement));

void PrepareDotBytes(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  const int64_t padded = (k + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  auto* const elements = reinterpret_cast<DotElement*>(to);
  flip ^= static_cast<uint8_t>(kByteOffset);
  for (int64_t p = 0; p < k; ++p) elements[p] = static_cast<int8_t>(a[p] ^ flip);
  for (int64_t p = k; p < padded; ++p) elements[p] = 0;
}

/// Even elements, then odd ones, of each 2 * half.
template <int64_t half>
HWY_INLINE void Deinterleave(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
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

/// Blocks of a vector of even elements, one of odd ones, and the sums to begin
/// with: nibbles are 8 more than what they mean, so that sums have 8 times the
/// sum of A too much.
void PrepareDotNibbles(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  constexpr int64_t kBlock = 2 * kVectorBytes;
  for (int64_t p = 0; p < k; p += kBlock, to += 3 * kVectorBytes) {
    Deinterleave<kVectorBytes>(a + p, flip, k - p < kBlock ? k - p : kBlock, to);
    int32_t start[kLanes];
    const auto* elements = reinterpret_cast<const int8_t*>(to);
    for (int lane = 0; lane < kLanes; ++lane) {
      int32_t sum = 0;
      for (int q = 0; q < 4; ++q) {
        sum += elements[4 * lane + q] + elements[4 * lane + q + kVectorBytes];
      }
      start[lane] = -8 * sum;
    }
    std::memcpy(to + kBlock, start, sizeof(start));
  }
}

/// Least bytes of B between the ones in use and the ones that are prefetched into L2. Bytes are used
/// so fast that the hardware's own prefetcher keeps up: farther away it has asked for other lines
/// meanwhile. Groups take several times as long.
constexpr int64_t kAhead = 4096, kGroupsAhead = 8192;

/// Vectors of a row of B that are multiplied in one turn of the loop for one row of A: the fewer
/// instructions there are to a line, the more lines are asked for while one is awaited. Floats are
/// summed in two chains, for the next sum waits for the one before.
template <Form kForm>
constexpr int kDotPiece = kForm == kBytes ? 4 : 2;
template <Form kForm>
constexpr int kDotChains = kForm == kGroups ? 2 : 1;

constexpr int64_t kScalesOfALine = 32;

/// A vector of scales of the units from `unit` on, each of four lanes.
HWY_INLINE VF GroupScales(const BF16* scales, int64_t unit, int64_t group_units, int64_t groups) {
  constexpr int kUnits = kLanes / 4;
  using Units = std::conditional_t<kUnits <= 2, uint32_t, uint64_t>;
  const hn::Repartition<Units, Floats> repeated;
  Units bits = 0;
  if (group_units == 1 && unit + kUnits <= groups) {
    std::memcpy(&bits, scales + unit, 2 * kUnits);
  } else {
    for (int u = 0; u < kUnits; ++u) {
      const int64_t group = (unit + u) / group_units;
      bits |= Units{scales[group < groups ? group : groups - 1].bits} << 16 * u;
    }
  }
  if constexpr (kUnits == 1) {
    return hn::BitCast(Floats(), hn::Set(repeated, bits << 16));
  } else {
    // The u-th 16 bits become the upper ones of all lanes of the u-th block, zeros the lower ones.
    HWY_ALIGN uint32_t index[kLanes];
    for (uint32_t i = 0; i < kLanes; ++i) index[i] = 0x01008080 + i / 4 * 0x02020000;
    return hn::BitCast(
        Floats(),
        hn::TableLookupBytesOr0(hn::BitCast(Bytes(), hn::Set(repeated, bits)), LoadBytes(index)));
  }
}

/// to[j] = the sum of v[j]'s lanes.
template <class D>
HWY_INLINE hn::Vec<hn::CappedTag<hn::TFromD<D>, 4>> SumBlocks(D, hn::Vec<D> x) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return x;
  } else {
    const hn::Half<D> half;
    return SumBlocks(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
  }
}
template <class D>
HWY_INLINE void SumLanes(D d, const hn::Vec<D> (&v)[4], int32_t* to) {
  const hn::Repartition<uint64_t, D> pairs;
  const auto add = [d](auto of, hn::Vec<D> a, hn::Vec<D> b) ET_INT8_ATTR {
    const auto x = hn::BitCast(of, a), y = hn::BitCast(of, b);
    return hn::Add(hn::BitCast(d, hn::InterleaveLower(of, x, y)),
                   hn::BitCast(d, hn::InterleaveUpper(of, x, y)));
  };
  const hn::CappedTag<int32_t, 4> bits;
  const auto sums = SumBlocks(d, add(pairs, add(d, v[0], v[1]), add(d, v[2], v[3])));
  hn::StoreU(hn::BitCast(bits, sums), bits, to);
}

/// Columns that are walked side by side, from column j of the weights on.
template <int C>
struct DotColumns {
  DotColumns(const Dots& t, int64_t j0) {
    for (int j = 0; j < C; ++j) {
      const int64_t column = j0 + j < t.n ? j0 + j : t.n - 1;
      b[j] = t.b + column * t.ldb;
      scales[j] = t.scales + column * t.groups;
    }
  }
  const uint8_t* b[C];
  const BF16* scales[C];
};

/// What is the same for all columns.
struct DotWay {
  int64_t bytes;         // of a row of B
  int64_t ahead;         // bytes of B between those in use and those prefetched
  int64_t scales_ahead;  // scales
};

/// Adds the products of a vector of each column, from byte p on, and what belongs to it of R rows,
/// which are advanced. kWhole: it is not the last, shorter one. kNarrow: groups are as small as
/// they can be.
template <Form kForm, int R, int C, bool kNarrow, bool kWhole, class Lanes>
HWY_INLINE void AddDots(const Dots& t, const DotWay& way, const DotColumns<C>& columns, int64_t p,
                        const uint8_t* (&a)[R], Lanes (&sums)[R][C]) {
  V y[C];
#pragma GCC unroll 4
  for (int j = 0; j < C; ++j) {
    if constexpr (kWhole) {
      __builtin_prefetch(columns.b[j] + p + way.ahead, 0, 2);
      y[j] = Load(columns.b[j] + p);
    } else {
      y[j] = hn::BitCast(Ints(), LoadRest(columns.b[j], p, way.bytes));
    }
  }
  if constexpr (kForm == kBytes) {
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < C; ++j) sums[i][j] = ByteDots(sums[i][j], a[i], y[j]);
      a[i] += kDotRowBytes;
    }
    return;
  }
  VF scale[C];
  if constexpr (kForm == kGroups) {
    constexpr int64_t kUnit = 16, kUnits = kVectorBytes / kUnit;
    const int64_t unit = p / kUnit;
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) {
      // A whole vector is of whole groups, if these are narrow.
      const int64_t groups = kNarrow && kWhole ? unit + kUnits : t.groups;
      scale[j] = GroupScales(columns.scales[j], unit, kNarrow ? 1 : t.group_units, groups);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < C; ++j) {
    const V fifteens = Repeated(0x0F);
    const V low = hn::And(y[j], fifteens), high = hn::And(hn::ShiftRight<4>(y[j]), fifteens);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) {
      const V part = NibbleDots(Load(a[i] + 2 * kVectorBytes), low, high, Load(a[i]),
                                Load(a[i] + kVectorBytes));
      if constexpr (kForm == kGroups) {
        sums[i][j] = hn::MulAdd(hn::ConvertTo(Floats(), part), scale[j], sums[i][j]);
      } else {
        sums[i][j] = hn::Add(sums[i][j], part);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < R; ++i) a[i] += 3 * kVectorBytes;
}

/// Sums, by lanes, of R rows and C columns from column j on.
template <Form kForm, int R, int C, bool kNarrow, class Lanes>
HWY_INLINE void SumColumns(const Dots& t, const DotWay& way, int64_t j, Lanes (&sums)[R][C]) {
  const DotColumns<C> columns(t, j);
  const uint8_t* a[R];
  for (int i = 0; i < R; ++i) a[i] = t.a + (i < t.m ? i : t.m - 1) * t.lda;
  int64_t p = 0;
  if constexpr (R == 1) {
    constexpr int kPiece = kDotPiece<kForm>, kChains = kDotChains<kForm>;
    Lanes chains[kChains][R][C];
    for (int x = 1; x < kChains; ++x) Fill(chains[x], sums[0][0]);  // zeros
    for (; p + kPiece * kVectorBytes <= way.bytes; p += kPiece * kVectorBytes) {
#pragma GCC unroll 4
      for (int v = 0; v < kPiece; ++v) {
        AddDots<kForm, R, C, kNarrow, true>(t, way, columns, p + v * kVectorBytes, a,
                                            v % kChains == 0 ? sums : chains[v % kChains]);
      }
    }
    for (int x = 1; x < kChains; ++x) {
      ForAll(sums,
             [&](Lanes& sum, int i, int c) ET_INT8_ATTR { sum = hn::Add(sum, chains[x][i][c]); });
    }
  }
  for (; p + kVectorBytes <= way.bytes; p += kVectorBytes) {
    AddDots<kForm, R, C, kNarrow, true>(t, way, columns, p, a, sums);
  }
  KeepAll(sums);
  if (p < way.bytes) AddDots<kForm, R, C, kNarrow, false>(t, way, columns, p, a, sums);
}

/// R rows times kDotColumns columns from column j on.
template <Form kForm, int R, bool kNarrow>
HWY_INLINE void RunColumns(const Dots& t, const DotWay& way, int64_t j) {
  constexpr int C = kDotColumns;
  using Lanes = std::conditional_t<kForm == kGroups, Floats, Ints>;
  using Sum = hn::Vec<Lanes>;
  for (int c = 0; c < C && t.groups > 0; ++c) {
    const BF16* const scales = t.scales + (j + c < t.n ? j + c : t.n - 1) * t.groups;
    for (int64_t g = 0; g < t.groups; g += kScalesOfALine) {
      __builtin_prefetch(scales + way.scales_ahead + g);
    }
  }
  Sum sums[R][C];
  Fill(sums, hn::Zero(Lanes()));
  if constexpr (R == 1) {
    // Memory delivers most where addresses follow one another. More rows read each column so often
    // that multiply-adds count.
    for (int c = 0; c < C; ++c) {
      Sum sum[1][1] = {{hn::Zero(Lanes())}};
      SumColumns<kForm, 1, 1, kNarrow>(t, way, j + c, sum);
      sums[0][c] = sum[0][0];
    }
  } else {
    SumColumns<kForm, R, C, kNarrow>(t, way, j, sums);
  }
  for (int i = 0; i < R && i < t.m; ++i) {
    int32_t row[C];  // or floats
    SumLanes(Lanes(), sums[i], row);
    int32_t* const to = static_cast<int32_t*>(t.sums) + i * t.ld_sums + j;
    if (t.n - j >= C) {
      std::memcpy(to, row, sizeof(row));
    } else {
      std::memcpy(to, row, static_cast<size_t>(t.n - j) * 4);
    }
  }
}

template <Form kForm, bool kNarrow>
HWY_INLINE void DotsOf(const Dots& t) {
  DotWay way;
  way.bytes = kForm == kBytes ? t.k : (t.k + 1) / 2;
  way.ahead = gemm::prefetch_distance(kForm == kGroups ? kGroupsAhead : kAhead, t.m, kDotColumns,
                                      way.bytes, t.ldb);
  way.scales_ahead = way.ahead / std::max<int64_t>(t.ldb, 1) * t.groups;
  for (int64_t j = 0; j < t.n; j += kDotColumns) {
    if (t.m == 1) {
      RunColumns<kForm, 1, kNarrow>(t, way, j);
    } else {
      RunColumns<kForm, kDotRows, kNarrow>(t, way, j);
    }
  }
}

template <Form kForm>
void RunDots(const Dots& t) {
  if (kForm == kGroups && t.group_units == 1) return DotsOf<kForm, kForm == kGroups>(t);
  DotsOf<kForm, false>(t);
}
