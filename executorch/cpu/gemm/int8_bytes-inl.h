// From sums to bytes, in registers; part of int8_kernels-inl.h.
// Numbers are narrowed as machines do it: two vectors become one block of 16 bytes by block, first
// those of the one, then those of the other. What lies outside is held within the narrower type.

class ByteMaker {
 public:
  ET_INLINE explicit ByteMaker(const ByteFormat& f)
      : zero_point_(Ints{} + static_cast<int32_t>(static_cast<uint16_t>(f.zero_point) * 0x10001u)),
        low_(Repeated(static_cast<uint8_t>(f.low))),
        high_(Repeated(static_cast<uint8_t>(f.high))),
        flip_(Repeated(f.flip)) {}

  /// Of four vectors, in the order of blocks.
  ET_INLINE Ints operator()(const Floats (&x)[4]) const {
    return Bounded(PackWords(Words(x[0], x[1]), Words(x[2], x[3])));
  }
  /// Of all columns of a panel, in their order: the first kColumns bytes.
  template <int kCount>
  ET_INLINE Ints OfPanel(const Floats (&x)[kCount]) const {
    static_assert(kCount == 2 || (kCount == 4 && kLanes == 4));
    if constexpr (kCount == 4) {
      return (*this)(x);
    } else {
      const Ints words = Words(x[0], x[1]);
      return Gathered(Bounded(PackWords(words, words)), std::make_integer_sequence<int, kLanes>());
    }
  }

 private:
  ET_INLINE static Ints Repeated(uint8_t byte) {
    return Ints{} + static_cast<int32_t>(byte * 0x01010101u);
  }
  ET_INLINE Ints Words(Floats a, Floats b) const {
    return AddWords(PackInts(Rounded(a), Rounded(b)), zero_point_);
  }
  ET_INLINE Ints Bounded(Ints x) const {
    typedef int8_t Bytes __attribute__((vector_size(kLanes * 4)));
    const auto low = reinterpret_cast<Bytes>(low_), high = reinterpret_cast<Bytes>(high_);
    auto bytes = reinterpret_cast<Bytes>(x);
    bytes = bytes > low ? bytes : low;
    bytes = bytes < high ? bytes : high;
    return reinterpret_cast<Ints>(bytes) ^ flip_;
  }
  /// The first number of each block, then the second ones.
  template <int... kIndex>
  ET_INLINE static Ints Gathered(Ints x, std::integer_sequence<int, kIndex...>) {
    constexpr int kBlocks = kLanes / 4;
    return Shuffle<4>(
        x, x, std::integer_sequence<int, (kIndex % kBlocks * 4 + kIndex / kBlocks % 2)...>());
  }

  Ints zero_point_, low_, high_, flip_;
};

/// Stores rows of a panel's columns.
class ByteRows {
 public:
  ET_INLINE explicit ByteRows(const ByteResults& r)
      : make_(r.format), to_(r.to), ld_(r.ld), n_(r.n) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) factor_[v] = LoadFloats(r.columns->factor + v * kLanes);
  }
  /// `sums` of row r, starts among them.
  ET_INLINE void operator()(const Ints (&sums)[kVectors], int64_t r) const {
    Floats x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) x[v] = ToFloat(sums[v]) * factor_[v];
    const Ints bytes = make_.OfPanel(x);
    uint8_t* const to = to_ + r * ld_;
    if (n_ == kColumns) {
      std::memcpy(to, &bytes, kColumns);
    } else {
      StoreFew(bytes, n_, to);
    }
  }

 private:
  ByteMaker make_;
  Floats factor_[kVectors];
  uint8_t* to_;
  int64_t ld_, n_;
};
