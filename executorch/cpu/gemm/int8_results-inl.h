// Conversion of sums to results, in registers; part of int8_kernels-inl.h.

// ---- bytes ----

// Requantizes sums, already scaled to floats, to bytes. Narrowing saturates and works on each
// 16-byte block separately, as the instructions do: in each block, the numbers of the first vector
// come before those of the second.
class ByteMaker {
 public:
  HWY_INLINE explicit ByteMaker(const ByteFormat& f)
      : zero_point_(hn::Set(Words(), f.zero_point)),
        low_(hn::Set(Bytes(), f.low)),
        high_(hn::Set(Bytes(), f.high)),
        flip_(hn::Set(Bytes(), static_cast<int8_t>(f.flip))) {}

  /// The bytes of four vectors, in the order that narrowing leaves in each 16-byte block.
  HWY_INLINE VB operator()(const VF (&x)[4]) const {
    return bounded(PackWords(words(x[0], x[1]), words(x[2], x[3])));
  }
  /// The bytes of all columns of a panel, in their order, as the first kColumns bytes.
  template <int kCount>
  HWY_INLINE VB of_panel(const VF (&x)[kCount]) const {
    if constexpr (kCount == 4) {
      return (*this)(x);
    } else {
      const VW both = words(x[0], x[1]);
      return gathered(bounded(PackWords(both, both)));
    }
  }

 private:
  HWY_INLINE VW words(VF a, VF b) const {
    return hn::SaturatedAdd(hn::ReorderDemote2To(Words(), Rounded(a), Rounded(b)), zero_point_);
  }
  HWY_INLINE VB bounded(VB x) const { return hn::Xor(hn::Min(hn::Max(x, low_), high_), flip_); }
  /// Gathers the first 4 bytes of every block, then the next 4 bytes of every block.
  HWY_INLINE static VB gathered(VB x) {
    constexpr int kBlocks = kLanes / 4;
    if constexpr (kBlocks == 1) return x;
    HWY_ALIGN int32_t order[kLanes];
    for (int i = 0; i < kLanes; ++i) order[i] = i % kBlocks * 4 + i / kBlocks % 2;
    const auto index = hn::SetTableIndices(Ints(), order);
    return hn::BitCast(Bytes(), hn::TableLookupLanes(hn::BitCast(Ints(), x), index));
  }

  VW zero_point_;
  VB low_, high_, flip_;
};

/// Stores the first n bytes of x, 1 <= n < kVectorBytes. Targets without safe masked stores use two
/// stores that may overlap.
HWY_INLINE void StoreFew(VB x, int64_t n, uint8_t* to) {
#if HWY_MEM_OPS_MIGHT_FAULT
  uint8_t from[kVectorBytes];
  Store(x, from);
  const auto ends = [=](auto piece) ET_INT8_ATTR {
    constexpr int64_t kSize = sizeof(piece);
    std::memcpy(to, from, kSize);
    std::memcpy(to + n - kSize, from + n - kSize, kSize);
  };
  if constexpr (kVectorBytes > 32) {
    if (n >= 32) return ends(std::array<uint64_t, 4>());
  }
  if constexpr (kVectorBytes > 16) {
    if (n >= 16) return ends(std::array<uint64_t, 2>());
  }
  if (n >= 8) return ends(uint64_t());
  if (n >= 4) return ends(uint32_t());
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
#else
  hn::BlendedStore(x, hn::FirstN(Bytes(), static_cast<size_t>(n)), Bytes(),
                   reinterpret_cast<int8_t*>(to));
#endif
}

/// Requantizes and stores rows of results of a panel's columns.
class ByteRows {
 public:
  HWY_INLINE explicit ByteRows(const ByteResults& r)
      : make_(r.format), to_(r.to), ld_(r.ld), n_(r.n) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      factor_[v] = hn::LoadU(Floats(), r.columns->factor + v * kLanes);
    }
  }
  /// Stores row r from its sums, which include ColumnRequantization::start.
  HWY_INLINE void operator()(const V (&sums)[kVectors], int64_t r) const {
    VF x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) x[v] = hn::Mul(hn::ConvertTo(Floats(), sums[v]), factor_[v]);
    const VB bytes = make_.of_panel(x);
    uint8_t* const to = to_ + r * ld_;
    if (n_ == kColumns) {
      store_panel(bytes, reinterpret_cast<int8_t*>(to));
    } else {
      StoreFew(bytes, n_, to);
    }
  }

 private:
  HWY_INLINE static void store_panel(VB bytes, int8_t* to) {
    if constexpr (kColumns == kVectorBytes) {
      hn::StoreU(bytes, Bytes(), to);
    } else {
      const hn::Half<Bytes> half;
      hn::StoreU(hn::LowerHalf(half, bytes), half, to);
    }
  }

  ByteMaker make_;
  VF factor_[kVectors];
  uint8_t* to_;
  int64_t ld_, n_;
};

void FinishBytes(const int32_t* sums, int64_t ld, int64_t rows, const ByteResults& results) {
  const ByteRows store(results);
  for (int64_t r = 0; r < rows; ++r, sums += ld) {
    V row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      row[v] = hn::Add(Load(sums + v * kLanes), Load(results.columns->start + v * kLanes));
    }
    store(row, r);
  }
}

// ---- floats ----

/// Calls store(r, x) for each row r, where x are the row's dequantized sums of the panel at column
/// j:
///   x = (sum - zero point * column sum) * (row scale * column scale) + bias
/// `first` is the quantization of the first row. The next quantization begins at row `next`.
template <bool kGrouped, class F>
HWY_INLINE void ScaleRows(const Results& e, const RowQuantization* first, int64_t next, int64_t j,
                          const F& store) {
  const Floats d;
  const Int8Gemm& g = *e.gemm;
  // These are copies because, for all the compiler knows, stores of results could change the
  // originals.
  V column_sums[kVectors];  // the bits of floats for weights in groups
  VF scale[kVectors], bias[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const ColumnDequantization& c = *e.columns;
    const int64_t at = j + v * kLanes;
    column_sums[v] = kGrouped ? Load(c.group_sums + at) : Load(c.sums + at);
    scale[v] = hn::LoadU(d, c.scale + at);
    bias[v] = hn::LoadU(d, c.bias + at);
  }
  const int32_t* sums = e.sums + j;
  const int64_t ld = e.ld, n = e.ni;
  const RowQuantization* row = first;
  for (int64_t r = 0; r < n; ++r, sums += ld) {
    if (r == next) {
      ++row;
      next += g.rows_share;
    }
    // Unsigned, so that a senseless zero point from a file wraps instead of overflowing.
    const int32_t zero = static_cast<int32_t>(static_cast<uint32_t>(row->zero_point) +
                                              static_cast<uint32_t>(e.offset));
    VF x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V sum = Load(sums + v * kLanes);
      if constexpr (kGrouped) {
        x[v] = hn::Sub(hn::BitCast(d, sum), hn::Mul(hn::Set(d, static_cast<float>(zero)),
                                                    hn::BitCast(d, column_sums[v])));
      } else {
        x[v] = hn::ConvertTo(d, hn::Sub(sum, hn::Mul(hn::Set(Ints(), zero), column_sums[v])));
      }
      x[v] = hn::Add(hn::Mul(x[v], hn::Mul(hn::Set(d, row->scale), scale[v])), bias[v]);
    }
    store(r, x);
  }
}

template <bool kGrouped, class T>
void FinishFloats(const Results& e) {
  const Floats d;
  const Int8Gemm& g = *e.gemm;
  const VF low = hn::Set(d, g.low), high = hn::Set(d, g.high);
  const int64_t ld = g.ldc, share = g.rows_share < g.m ? g.rows_share : g.m;
  const int64_t first = e.i0 / share, next = (first + 1) * share - e.i0;
  for (int64_t j = 0; j < e.nj; j += kColumns) {
    const int64_t nj = e.nj - j;
    T* const to = static_cast<T*>(g.c) + e.i0 * ld + e.j0 + j;
    const auto store = [=](int64_t r, const VF(&x)[kVectors]) ET_INT8_ATTR {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {  // comparisons chosen so that NaN stays NaN
        const VF above = hn::IfThenElse(hn::Lt(x[v], low), low, x[v]);
        const VF within = hn::IfThenElse(hn::Gt(above, high), high, above);
        const int64_t n = nj - v * kLanes;
        T* const at = to + r * ld + v * kLanes;
        if (n >= kLanes) {
          StoreFloats(within, d, at);
        } else if (n > 0) {
          StoreFloatsN(within, d, at, static_cast<size_t>(n));
        }
      }
    };
    ScaleRows<kGrouped>(e, g.rows + first, next, j, store);
  }
}

template <bool kGrouped>
HWY_INLINE void FinishAs(const Results& e) {
  switch (e.gemm->out) {
    case Int8Gemm::Out::F16:
      return FinishFloats<kGrouped, F16>(e);
    case Int8Gemm::Out::BF16:
      return FinishFloats<kGrouped, BF16>(e);
    default:
      return FinishFloats<kGrouped, float>(e);
  }
}

void Finish(const Results& e) {
  e.gemm->b.group_scales == nullptr ? FinishAs<false>(e) : FinishAs<true>(e);
}
