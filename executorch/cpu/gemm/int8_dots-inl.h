// Products of few rows of A with rows of B, which are read where they lie; part of
// int8_kernels-inl.h.

constexpr int64_t kDotRowBytes = kVectorBytes * static_cast<int64_t>(sizeof(DotElement));

void PrepareDotBytes(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  const int64_t padded = (k + kVectorBytes - 1) / kVectorBytes * kVectorBytes;
  auto* const elements = reinterpret_cast<DotElement*>(to);
  FlipRow(a, flip ^ static_cast<uint8_t>(kByteOffset), k, elements);
  for (int64_t p = k; p < padded; ++p) elements[p] = 0;
}

/// Groups of nibbles consist of subgroups of kSubgroup elements. kVectorSubgroups: subgroups in a
/// vector; kBlockSubgroups: subgroups in a block; kSubgroupLanes: the lanes of a block's sums that
/// belong to a subgroup.
constexpr int kVectorSubgroups = static_cast<int>(2 * kVectorBytes / kSubgroup);
constexpr int kBlockSubgroups = kDotBlock * kVectorSubgroups,
              kSubgroupLanes = kLanes / kBlockSubgroups;
constexpr int subgroup_of_lane(int lane) {
  return lane % 4 / kSubgroupLanes * kVectorSubgroups + lane / 4;
}

constexpr int64_t kBlockElements = kBlockSubgroups * kSubgroup;
constexpr int64_t kBlockBytes = (2 * kDotBlock + 1) * kVectorBytes;

/// Prepares a row of A in blocks. For each vector of B, a block has a vector of the even elements
/// and one of the odd ones. Then follow the initial values of the sums: stored nibbles are 8 larger
/// than the weights, so products with them are too large by 8 times the sum of A's elements.
void PrepareDotNibbles(const int8_t* a, uint8_t flip, int64_t k, uint8_t* to) {
  for (int64_t p = 0; p < k; p += kBlockElements, to += kBlockBytes) {
    // The elements of the block, signed, with zeros behind the last one.
    int8_t x[kBlockElements];
    const int64_t n = k - p < kBlockElements ? k - p : kBlockElements;
    if (n < kBlockElements) std::memset(x, 0, sizeof(x));
    for (int64_t q = 0; q < n; ++q) x[q] = static_cast<int8_t>(a[p + q] ^ flip);
    for (int64_t v = 0; v < kDotBlock; ++v) {
      uint8_t* const even = to + v * 2 * kVectorBytes;
      for (int64_t q = 0; q < kVectorBytes; ++q) {
        even[q] = static_cast<uint8_t>(x[(v * kVectorBytes + q) * 2]);
        even[q + kVectorBytes] = static_cast<uint8_t>(x[(v * kVectorBytes + q) * 2 + 1]);
      }
    }
    int32_t start[kLanes] = {};
    for (int lane = 0; lane < kLanes; lane += kSubgroupLanes) {
      const int8_t* const subgroup = x + subgroup_of_lane(lane) * kSubgroup;
      int32_t sum = 0;
      for (int64_t q = 0; q < kSubgroup; ++q) sum += subgroup[q];
      start[lane] = -8 * sum;
    }
    std::memcpy(to + 2 * kDotBlock * kVectorBytes, start, sizeof(start));
  }
}

/// Least bytes of B between the ones in use and the ones that are prefetched into L2. Bytes are
/// used so fast that the hardware's own prefetcher keeps up: farther away it has asked for other
/// lines meanwhile. Groups take several times as long.
constexpr int64_t kAhead = 4096, kGroupsAhead = 8192;

constexpr int64_t kScalesOfALine = 32;

/// Loads kCount scales, which divide the subgroups of a block among them, to the lanes of those
/// subgroups' sums.
template <int kCount>
HWY_INLINE VF BlockScales(const BF16* scales) {
  constexpr size_t kSize = sizeof(BF16) * kCount;
  const hn::Repartition<uint32_t, Floats> words;
  const hn::Repartition<uint64_t, Floats> doubles;
  if constexpr (kSize == 2) {
    return hn::BitCast(Floats(), hn::Set(words, uint32_t{scales->bits} << 16));
  } else {
    // The bits of the scales, repeated in each 16-byte block. The lookup below moves them to the
    // upper halves of their lanes.
    VB bits;
    if constexpr (kSize == 16) {
      bits = hn::LoadDup128(Bytes(), reinterpret_cast<const int8_t*>(scales));
    } else {
      std::conditional_t<kSize == 4, uint32_t, uint64_t> x;
      std::memcpy(&x, scales, kSize);
      if constexpr (kSize == 4) bits = hn::BitCast(Bytes(), hn::Set(words, x));
      if constexpr (kSize == 8) bits = hn::BitCast(Bytes(), hn::Set(doubles, x));
    }
    HWY_ALIGN uint32_t index[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const int group = subgroup_of_lane(i) * kCount / kBlockSubgroups;
      index[i] = 0x01008080 + static_cast<uint32_t>(group) * 0x02020000;
    }
    return hn::BitCast(Floats(), hn::TableLookupBytesOr0(bits, LoadBytes(index)));
  }
}

/// Walks along k and knows the group that the next subgroup of a column belongs to, where groups
/// may begin and end within blocks.
class GroupCursor {
 public:
  explicit GroupCursor(const Dots& t) : t_(t), group_(0), left_(t.group_subgroups) {}
  GroupCursor(const Dots& t, int64_t subgroup)
      : t_(t),
        group_(subgroup / t.group_subgroups),
        left_((group_ + 1) * t.group_subgroups - subgroup) {}

  /// The scales of the next block of a column. The block may extend beyond the last group.
  HWY_INLINE VF scales(const BF16* column) const {
    if (left_ >= kBlockSubgroups) return BlockScales<1>(column + group_);
    BF16 each[kBlockSubgroups];
    int64_t group = group_, left = left_;
    for (int u = 0; u < kBlockSubgroups; ++u) {
      each[u] = column[group];
      if (--left == 0 && group + 1 < t_.groups) {
        left = t_.group_subgroups;
        ++group;
      }
    }
    return BlockScales<kBlockSubgroups>(each);
  }
  HWY_INLINE void advance() {
    left_ -= kBlockSubgroups;
    for (; left_ <= 0; left_ += t_.group_subgroups) ++group_;
  }

 private:
  const Dots& t_;
  int64_t group_, left_;  // the group, and how many of its subgroups are left
};

/// The size of a row of B and the prefetch distances, which are the same for all columns.
struct DotPlan {
  int64_t bytes;         // of a row of B
  int64_t ahead;         // bytes of B between those in use and those prefetched
  int64_t scales_ahead;  // scales
};

/// A block: the vectors of B that are multiplied at once, and the bytes of a prepared row of A that
/// they are multiplied by.
template <Form kForm>
constexpr int kDotVectors = kForm == kBytes ? 1 : kDotBlock;
template <Form kForm>
constexpr int64_t kDotStep = kForm == kBytes ? kDotRowBytes : kBlockBytes;

/// Walks along k through R rows and C columns, and adds up their products block by block. kScales
/// is the number of groups in a block, or 0 if a block does not consist of whole groups.
template <Form kForm, int R, int C, int kScales>
class DotCursor {
 public:
  DotCursor(const Dots& t, int64_t j0) : t_(t), group_(t) {
    for (int i = 0; i < R; ++i) a_[i] = t.a + (i < t.m ? i : t.m - 1) * t.lda;
    for (int j = 0; j < C; ++j) {
      const int64_t column = j0 + j < t.n ? j0 + j : t.n - 1;
      b_[j] = t.b + column * t.ldb;
      scales_[j] = t.scales + column * t.groups;
    }
  }

  /// Adds the products of the next kCount whole blocks to sums[block % kChains], and prefetches the
  /// bytes of B that lie `ahead` bytes behind them.
  template <int kCount, int kChains, class Lanes>
  HWY_INLINE void add(int64_t ahead, Lanes (&sums)[kChains][R][C]) {
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) {
#pragma GCC unroll 4
      for (int64_t at = 0; at < kCount * kBytes; at += kLine) {
        __builtin_prefetch(b_[j] + at + ahead, 0, 2);
      }
    }
#pragma GCC unroll 4
    for (int block = 0; block < kCount; ++block) {
      V y[C][kVectorsOfB];
      VF scale[C];
#pragma GCC unroll 4
      for (int j = 0; j < C; ++j) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectorsOfB; ++v) {
          y[j][v] = Load(b_[j] + block * kBytes + v * kVectorBytes);
        }
        if constexpr (kScales > 0) scale[j] = BlockScales<kScales>(scales_[j] + block * kScales);
        if constexpr (kForm == kGroups && kScales == 0) scale[j] = group_.scales(scales_[j]);
      }
      if constexpr (kForm == kGroups && kScales == 0) group_.advance();
      AddProducts(y, scale, sums[block % kChains]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) {
      b_[j] += kCount * kBytes;
      scales_[j] += kCount * kScales;
    }
  }

  /// Adds the products of the last `bytes` bytes of B, fewer than a block has.
  template <class Lanes>
  HWY_INLINE void add_partial_block(int64_t bytes, Lanes (&sums)[R][C]) {
    V y[C][kVectorsOfB];
    VF scale[C];
    for (int j = 0; j < C; ++j) {
      for (int v = 0; v < kVectorsOfB; ++v) {
        const int64_t p = v * kVectorBytes;
        y[j][v] = p < bytes ? hn::BitCast(Ints(), LoadRest(b_[j], p, bytes)) : hn::Zero(Ints());
      }
      if constexpr (kForm == kGroups) {
        const int64_t blocks = t_.k / kBlockElements;
        scale[j] = GroupCursor(t_, blocks * kBlockSubgroups).scales(scales_[j] - blocks * kScales);
      }
    }
    AddProducts(y, scale, sums);
  }

  static constexpr int kVectorsOfB = kDotVectors<kForm>;
  static constexpr int64_t kBytes = kVectorsOfB * kVectorBytes;  // of a block

 private:
  /// sums[i][j] += the products of y[j], a block of column j, and the next block of row i.
  template <class Lanes>
  HWY_INLINE void AddProducts(const V (&y)[C][kVectorsOfB], const VF (&scale)[C],
                              Lanes (&sums)[R][C]) {
#pragma GCC unroll 4
    for (int j = 0; j < C; ++j) {
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        if constexpr (kForm == kGroups) {
          const V part = NibbleDots<true>(BlockStart(a_[i]), a_[i], y[j]);
          sums[i][j] = hn::MulAdd(hn::ConvertTo(Floats(), part), scale[j], sums[i][j]);
        } else if constexpr (kForm == kNibbles) {
          sums[i][j] = hn::Add(sums[i][j], NibbleDots<false>(BlockStart(a_[i]), a_[i], y[j]));
        } else {
          sums[i][j] = ByteDots(sums[i][j], a_[i], y[j][0]);
        }
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) a_[i] += kDotStep<kForm>;
  }
  HWY_INLINE static V BlockStart(const uint8_t* a) {
    return Load(a + 2 * kDotBlock * kVectorBytes);
  }

  const Dots& t_;
  const uint8_t* a_[R];
  const uint8_t* b_[C];
  const BF16* scales_[C];
  GroupCursor group_;
};

/// Computes the sums of R rows and C columns from column j on. The lanes of each are not yet added
/// up.
template <Form kForm, int R, int C, int kScales, class Lanes>
HWY_INLINE void SumColumns(const Dots& t, int64_t bytes, int64_t ahead, int64_t j,
                           Lanes (&sums)[R][C]) {
  using Cursor = DotCursor<kForm, R, C, kScales>;
  // kPiece: blocks per iteration of the loop. For one row of A there are several: the fewer
  // instructions a cache line takes, the more lines are requested while one is awaited. Floats are
  // added up in two chains, because each addition waits for the one before it.
  constexpr int kPiece = R > 1 ? 1 : kForm == kBytes ? 4 : kDotBlock < 4 ? 2 : 1;
  constexpr int kChains = kForm == kGroups ? kPiece : 1;
  Lanes chains[kChains][R][C];
#pragma GCC unroll 2
  for (int x = 0; x < kChains; ++x) Fill(chains[x], hn::Zero(hn::DFromV<Lanes>()));
  Cursor cursor(t, j);
  for (; bytes >= kPiece * Cursor::kBytes; bytes -= kPiece * Cursor::kBytes) {
    cursor.template add<kPiece>(ahead, chains);
  }
  if constexpr (kPiece > 1) {
    for (; bytes >= Cursor::kBytes; bytes -= Cursor::kBytes) cursor.template add<1>(ahead, chains);
  }
  ForAll(sums, [&](Lanes& sum, int i, int c) ET_INT8_ATTR {
    sum = chains[0][i][c];
    if constexpr (kChains == 2) sum = hn::Add(sum, chains[1][i][c]);
  });
  KeepAll(sums);
  if (bytes > 0) cursor.add_partial_block(bytes, sums);
}

/// Whether each column is read to its end before the next one. With one row of A it is, because
/// memory bandwidth is highest when addresses are read in order. With more rows, multiply-adds are
/// the bottleneck, and several columns share the loads of A, unless a block of one column leaves no
/// registers for others.
template <Form kForm, int R>
constexpr bool kByColumn = R == 1 || kDotVectors<kForm> > 1;

/// Multiplies R rows by kDotColumns columns from column j on.
template <Form kForm, int R, int kScales>
HWY_INLINE void RunColumns(const Dots& t, const DotPlan& plan, int64_t j) {
  constexpr int C = kDotColumns;
  using Lanes = std::conditional_t<kForm == kGroups, Floats, Ints>;
  using Sum = hn::Vec<Lanes>;
  for (int c = 0; c < C && t.groups > 0; ++c) {
    const BF16* const scales = t.scales + (j + c < t.n ? j + c : t.n - 1) * t.groups;
    for (int64_t g = 0; g < t.groups; g += kScalesOfALine) {
      __builtin_prefetch(scales + plan.scales_ahead + g);
    }
  }
  Sum sums[R][C];
  if constexpr (kByColumn<kForm, R>) {
    for (int c = 0; c < C; ++c) {
      Sum sum[R][1];
      SumColumns<kForm, R, 1, kScales>(t, plan.bytes, plan.ahead, j + c, sum);
      for (int i = 0; i < R; ++i) sums[i][c] = sum[i][0];
    }
  } else {
    SumColumns<kForm, R, C, kScales>(t, plan.bytes, plan.ahead, j, sums);
  }
  for (int i = 0; i < R && i < t.m; ++i) {
    const hn::CappedTag<int32_t, 4> d;
    int32_t row[C];  // or floats
    hn::StoreU(hn::BitCast(d, SumsOfLanes(Lanes(), sums[i])), d, row);
    int32_t* const to = static_cast<int32_t*>(t.sums) + i * t.ld_sums + j;
    if (t.n - j >= C) {
      std::memcpy(to, row, sizeof(row));
    } else {
      std::memcpy(to, row, static_cast<size_t>(t.n - j) * 4);
    }
  }
}

template <Form kForm, int R, int kScales>
HWY_INLINE void DotsOf(const Dots& t) {
  constexpr int64_t kTogether = kByColumn<kForm, R> ? 1 : kDotColumns;
  DotPlan plan;
  plan.bytes = kForm == kBytes ? t.k : (t.k + 1) / 2;
  plan.ahead = gemm::prefetch_distance(kForm == kGroups ? kGroupsAhead : kAhead, kTogether,
                                       plan.bytes, t.ldb);
  plan.scales_ahead = plan.ahead / std::max<int64_t>(t.ldb, 1) * t.groups;
  for (int64_t j = 0; j < t.n; j += kDotColumns) RunColumns<kForm, R, kScales>(t, plan, j);
}

template <Form kForm, int kScales>
void RunDotsOf(const Dots& t) {
  if (t.m == 1) return DotsOf<kForm, 1, kScales>(t);
  if (t.m == 2) return DotsOf<kForm, 2, kScales>(t);
  DotsOf<kForm, kDotRows, kScales>(t);
}

template <Form kForm>
void RunDots(const Dots& t) {
  if constexpr (kForm == kGroups) {
    if (t.group_subgroups == 1) return RunDotsOf<kForm, kBlockSubgroups>(t);
    if constexpr (kBlockSubgroups >= 4) {
      if (t.group_subgroups == kBlockSubgroups / 2) return RunDotsOf<kForm, 2>(t);
    }
    if constexpr (kBlockSubgroups >= 8) {
      if (t.group_subgroups == kBlockSubgroups / 4) return RunDotsOf<kForm, 4>(t);
    }
  }
  RunDotsOf<kForm, 0>(t);
}
