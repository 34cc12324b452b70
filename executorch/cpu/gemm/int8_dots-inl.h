// Few rows times rows of B where they lie; part of int8_kernels-inl.h, which says what it needs.

/// Blocks of a vector of even elements, one of odd ones, and the sums to begin with: nibbles are 8
/// more than what they mean, so that sums have 8 times the sum of A too much.
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

/// Least bytes of B between the ones in use and the ones asked for.
constexpr int64_t kAhead = 4096;

template <Form kForm, int R>
struct DotSums {
  Ints of[R][kDotColumns];
};
template <int R>
struct DotSums<kGroups, R> {
  Floats of[R][kDotColumns];
};

template <Form kForm, int R>
ET_INLINE void DotColumns(const Dots& t, int64_t j0, int64_t ahead) {
  constexpr int C = kDotColumns;
  const int64_t bytes = kForm == kBytes ? t.k : (t.k + 1) / 2;
  const uint8_t* b[C];
  const BF16* scales[C];
  for (int j = 0; j < C; ++j) {
    const int64_t column = j0 + j < t.n ? j0 + j : t.n - 1;
    b[j] = t.b + column * t.ldb;
    scales[j] = t.scales + column * t.groups;
  }
  const uint8_t* a[R];
  for (int i = 0; i < R; ++i) a[i] = t.a + (i < t.m ? i : t.m - 1) * t.lda;
  DotSums<kForm, R> all;
  auto& sums = all.of;
#pragma GCC unroll 4
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) Clear(sums[i][j]);
  }
  int64_t unit = 0;
  const auto step = [&](int64_t p, auto is_whole) ET_TARGET_LAMBDA {
    Ints y[C];
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) {
      if constexpr (is_whole.value) {
        __builtin_prefetch(b[j] + p + ahead);
        y[j] = Load(b[j] + p);
      } else {
        y[j] = LoadRest(b[j], p, bytes);
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
    Floats scale[C];
    if constexpr (kForm == kGroups) {
#pragma GCC unroll 4
      for (int j = 0; j < C; ++j) scale[j] = GroupScales(scales[j], unit, t.group_units, t.groups);
      unit += kVectorBytes / 16;
    }
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) {
      const Ints low = LowNibbles(y[j]), high = HighNibbles(y[j]);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        const Ints part = NibbleDots(Load(a[i] + 2 * kVectorBytes), low, high, Load(a[i]),
                                     Load(a[i] + kVectorBytes));
        if constexpr (kForm == kGroups) {
          sums[i][j] = MulAdd(ToFloat(part), scale[j], sums[i][j]);
        } else {
          sums[i][j] = Add(sums[i][j], part);
        }
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) a[i] += 3 * kVectorBytes;
  };
  int64_t p = 0;
  for (; p + kVectorBytes <= bytes; p += kVectorBytes) step(p, std::true_type());
  if (p < bytes) step(p, std::false_type());
  for (int i = 0; i < R && i < t.m; ++i) {
    int32_t row[C];  // or floats
    SumLanes(sums[i], row);
    const int64_t n = t.n - j0 < C ? t.n - j0 : C;
    std::memcpy(static_cast<int32_t*>(t.sums) + i * t.ld_sums + j0, row,
                static_cast<size_t>(n) * 4);
  }
}

template <Form kForm>
void RunDots(const Dots& t) {
  // Whole groups of rows, each of which follows the same one of the group before.
  const int64_t group = kDotColumns * (t.ldb > 0 ? t.ldb : 1);
  const int64_t ahead = (kAhead + group - 1) / group * group;
  for (int64_t j = 0; j < t.n; j += kDotColumns) {
    if (t.m == 1) {
      DotColumns<kForm, 1>(t, j, ahead);
    } else {
      DotColumns<kForm, kDotRows>(t, j, ahead);
    }
  }
}
