// Tiles for the instruction that multiplies two rows by two columns of eight bytes each (ARM's
// i8mm); part of int8_kernels-inl.h. Panels are packed in quads, as for dot products. Before
// multiplying, two quads of two columns are interleaved to the operand that the instruction takes.

/// sum[2 r + c] += the products of the eight bytes of row r of `a` and column c of `b`.
HWY_INLINE V MultiplyAddMatrices(V sum, V a, V b) {
  return V(vmmlaq_s32(sum.raw, hn::BitCast(Bytes(), a).raw, hn::BitCast(Bytes(), b).raw));
}

/// The sums of R rows and a panel's columns, in the layout of that instruction: sums_[p][c] holds
/// rows 2 p and 2 p + 1 of columns 2 c and 2 c + 1. If R is odd, the last row is computed twice.
template <int R>
class MatrixSums {
 public:
  static constexpr int kPairs = (R + 1) / 2, kPairsOfColumns = 2 * kVectors;

  HWY_INLINE explicit MatrixSums(const V (&sums)[R][kVectors]) {
    const Ints d;
    for_each([&](V& low, V& high, int p, int v) ET_INT8_ATTR {
      const V first = sums[2 * p][v], second = sums[second_of(p)][v];
      low = hn::ConcatLowerLower(d, second, first);
      high = hn::ConcatUpperUpper(d, second, first);
    });
  }
  HWY_INLINE void copy_to(V (&sums)[R][kVectors]) {
    const Ints d;
    for_each([&](V& low, V& high, int p, int v) ET_INT8_ATTR {
      sums[2 * p][v] = hn::ConcatLowerLower(d, high, low);
      if (second_of(p) != 2 * p) sums[second_of(p)][v] = hn::ConcatUpperUpper(d, high, low);
    });
  }

  /// Adds the products of `n` quads of the rows with those of a panel.
  HWY_INLINE void add(const int8_t* a, int64_t lda, int64_t n, const uint8_t* b) {
    int64_t quad = 0;
    for (; quad + 2 <= n; quad += 2, a += 8, b += 2 * kColumns * 4) {
      V x[kPairs];
#pragma GCC unroll 3
      for (int p = 0; p < kPairs; ++p) {
        const hn::Half<Bytes> half;
        x[p] = hn::BitCast(Ints(), hn::Combine(Bytes(), hn::LoadU(half, a + second_of(p) * lda),
                                               hn::LoadU(half, a + 2 * p * lda)));
      }
      multiply(
          x, [b](int v) ET_INT8_ATTR { return Load(b + v * kVectorBytes); },
          [b](int v) ET_INT8_ATTR { return Load(b + (kVectors + v) * kVectorBytes); });
    }
    if (quad == n) return;
    V x[kPairs];
#pragma GCC unroll 3
    for (int p = 0; p < kPairs; ++p) {
      int64_t rows[2] = {};
      std::memcpy(&rows[0], a + 2 * p * lda, 4);
      std::memcpy(&rows[1], a + second_of(p) * lda, 4);
      x[p] = Load(rows);
    }
    multiply(
        x, [b](int v) ET_INT8_ATTR { return Load(b + v * kVectorBytes); },
        [](int) ET_INT8_ATTR { return hn::Zero(Ints()); });
  }

 private:
  static constexpr int second_of(int pair) {
    return 2 * pair + 1 < R ? 2 * pair + 1 : 2 * pair;
  }

  template <class F>
  HWY_INLINE void for_each(const F& f) {
#pragma GCC unroll 3
    for (int p = 0; p < kPairs; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) f(sums_[p][2 * v], sums_[p][2 * v + 1], p, v);
    }
  }

  /// Adds the products of x with two quads of each column; vector v of the columns is even(v) for
  /// the first quad and odd(v) for the second.
  template <class Even, class Odd>
  HWY_INLINE void multiply(const V (&x)[kPairs], const Even& even, const Odd& odd) {
    const Ints d;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V y = even(v), z = odd(v);
      const V low = hn::InterleaveLower(d, y, z), high = hn::InterleaveUpper(d, y, z);
#pragma GCC unroll 3
      for (int p = 0; p < kPairs; ++p) {
        sums_[p][2 * v] = MultiplyAddMatrices(sums_[p][2 * v], x[p], low);
        sums_[p][2 * v + 1] = MultiplyAddMatrices(sums_[p][2 * v + 1], x[p], high);
      }
      // Without this barrier the compiler would load all columns at once, which leaves too few
      // registers for the sums.
      asm volatile("" : : : "memory");
    }
  }

  V sums_[kPairs][kPairsOfColumns];
};

/// sums += products of the rows of a tile with its panel.
template <int R>
HWY_INLINE void AddMatrixTile(const Tile& t, V (&sums)[R][kVectors]) {
  MatrixSums<R> matrices(sums);
  const uint8_t* b = t.panel;
  for (int64_t s = 0; s < t.n_segments; ++s, b += t.quads * kColumns * 4) {
    matrices.add(t.a + t.segments[s], t.lda, t.quads, b);
  }
  matrices.copy_to(sums);
}
