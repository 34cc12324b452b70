// Tiles for the tile registers of x86's AMX; part of int8_kernels-inl.h. A tile register
// ("register" below) has up to 16 rows of 64 bytes. It holds rows of A, or 16 quads of 16 columns
// of a panel, as they lie in the panel, or the sums of 16 rows and 16 columns. An instruction
// multiplies two registers in as many cycles as A has rows; a load takes half as long. So two
// registers of rows of A are multiplied by two registers of a panel, where segments fill whole
// registers.

static_assert(kColumns == 32 && kLanes == 16 && kRows == 32);
constexpr int kMatrixRows = 16;
constexpr int64_t kMatrixQuads = 16, kMatrixBytes = 4 * kMatrixQuads;  // of k in a register
constexpr int64_t kPanelQuadBytes = kColumns * 4;

/// The shapes of the registers. Registers 0 to 3 hold sums, 4 rows of A, 5 the rows of A beyond the
/// 16th, and 6 and 7 quads of a panel. Where a segment does not fill whole registers, 5 and 7 hold
/// the rest of the segment instead, and A has up to 16 rows.
struct MatrixShapes : gemm::TileConfig {
  MatrixShapes(int64_t n_rows, int64_t rest) {
    const auto first = static_cast<uint8_t>(n_rows < kMatrixRows ? n_rows : kMatrixRows);
    const auto second = static_cast<uint8_t>(n_rows > kMatrixRows ? n_rows - kMatrixRows : 1);
    rows[0] = rows[1] = rows[4] = first;
    rows[2] = rows[3] = rows[5] = second;
    rows[6] = rows[7] = kMatrixQuads;
    if (rest == 0) return;
    rows[5] = first;
    bytes[5] = static_cast<uint16_t>(4 * rest);
    rows[7] = static_cast<uint8_t>(rest);
  }
};

void ReleaseMatrices() {
  _tile_release();
}

/// Configures the registers for `rows` rows and segments of `quads` quads, unless they are already.
HWY_INLINE void ShapeMatrices(MatrixRegisters& registers, int64_t rows, int64_t quads) {
  const int64_t rest = quads % kMatrixQuads;
  if (registers.rows == rows && registers.rest == rest) return;
  const MatrixShapes shapes(rows, rest);
  shapes.keep();
  _tile_loadconfig(&shapes);
  registers.rows = rows;
  registers.rest = rest;
  registers.release = ReleaseMatrices;
}

/// How many of a tile's rows can be multiplied at once by segments of `quads` quads.
HWY_INLINE int64_t RowsAtOnce(int64_t rows, int64_t quads) {
  return quads % kMatrixQuads == 0 || rows < kMatrixRows ? rows : kMatrixRows;
}

/// What rows of A are multiplied by besides the first 16 columns of a quad: nothing, the other 16
/// columns, or the unsigned low bytes of the same columns.
enum class Second { None, Columns, LowBytes };

#define ET_MULTIPLY_SECOND(sums, of_a, of_b)         \
  if constexpr (kSecond == Second::LowBytes) {       \
    _tile_dpbsud(sums, of_a, of_b);                  \
  } else if constexpr (kSecond == Second::Columns) { \
    _tile_dpbssd(sums, of_a, of_b);                  \
  }

/// Adds the products of a segment of rows and a segment of a panel to registers 0 (first columns)
/// and 1 (second), and those of rows from the 17th on to registers 2 and 3. Afterwards `b` points
/// behind the segment.
template <Second kSecond>
HWY_INLINE void AddMatrices(const int8_t* a, int64_t lda, int64_t rows, int64_t quads,
                            const uint8_t*& b) {
  for (; quads >= kMatrixQuads; quads -= kMatrixQuads) {
    _tile_loadd(6, b, kPanelQuadBytes);
    _tile_loadd(4, a, lda);
    _tile_dpbssd(0, 4, 6);
    if (rows > kMatrixRows) {
      _tile_loadd(5, a + kMatrixRows * lda, lda);
      _tile_dpbssd(2, 5, 6);
    }
    if constexpr (kSecond != Second::None) _tile_loadd(6, b + kVectorBytes, kPanelQuadBytes);
    ET_MULTIPLY_SECOND(1, 4, 6)
    if (rows > kMatrixRows) {
      ET_MULTIPLY_SECOND(3, 5, 6)
    }
    a += kMatrixBytes, b += kMatrixQuads * kPanelQuadBytes;
  }
  if (quads == 0) return;
  _tile_loadd(5, a, lda);
  _tile_loadd(7, b, kPanelQuadBytes);
  _tile_dpbssd(0, 5, 7);
  if constexpr (kSecond != Second::None) _tile_loadd(7, b + kVectorBytes, kPanelQuadBytes);
  ET_MULTIPLY_SECOND(1, 5, 7)
  b += quads * kPanelQuadBytes;
}
#undef ET_MULTIPLY_SECOND

HWY_INLINE void ClearSums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}
/// Stores `rows` rows of sums, `step` elements apart: the first columns to `first`, the second (see
/// Second) to `second`.
HWY_INLINE void StoreSums(int64_t rows, int64_t step, int32_t* first, int32_t* second) {
  const int64_t bytes = step * 4;
  _tile_stored(0, first, bytes);
  _tile_stored(1, second, bytes);
  if (rows <= kMatrixRows) return;
  _tile_stored(2, first + kMatrixRows * step, bytes);
  _tile_stored(3, second + kMatrixRows * step, bytes);
}

/// Computes the sums of `rows` rows of a tile times its panel.
void MultiplyMatrices(const Tile& t, int64_t rows, int32_t* sums) {
  const int64_t at_once = RowsAtOnce(rows, t.quads);
  for (int64_t i = 0, n; i < rows; i += n) {
    n = at_once < rows - i ? at_once : rows - i;
    ShapeMatrices(*t.registers, n, t.quads);
    ClearSums();
    const uint8_t* b = t.panel;
    for (int64_t s = 0; s < t.n_segments; ++s) {
      AddMatrices<Second::Columns>(t.a + t.segments[s] + i * t.lda, t.lda, n, t.quads, b);
    }
    int32_t* const to = sums + i * kColumns;
    StoreSums(n, kColumns, to, to + kLanes);
  }
}

// ---- groups whose sums are scaled one by one ----

/// all[i] += sums of row i of a group * scales.
template <int R>
HWY_INLINE void AddScaled(const int32_t* sums, const float* scales, VF (&all)[R][1]) {
  const VF scale = hn::LoadU(Floats(), scales);
  ForAll(all, [=](VF& sum, int i, int) ET_INT8_ATTR {
    sum = hn::MulAdd(hn::ConvertTo(Floats(), Load(sums + i * kLanes)), scale, sum);
  });
  KeepAll(all);
}

/// Computes the scaled sums of rows [i0, i0 + R) and of vector v of the columns. Tile registers can
/// be read only through memory, so a group is scaled while the next one is multiplied.
template <int R>
HWY_INLINE void MultiplyGroups(const Tile& t, int i0, int v) {
  alignas(64) int32_t sums[2][R * kLanes];
  VF all[R][1];
  Fill(all, hn::Zero(Floats()));
  const int8_t* a = t.a + i0 * t.lda;
  const uint8_t* b = t.panel + v * kVectorBytes;
  const float* scales = t.scales + v * kLanes;
  int32_t *now = sums[0], *before = sums[1];
  for (int64_t q = 0; q < t.quads; q += t.group_quads, scales += kColumns) {
    const int64_t n = t.group_quads < t.quads - q ? t.group_quads : t.quads - q;
    ShapeMatrices(*t.registers, R, n);
    _tile_zero(0);
    AddMatrices<Second::None>(a, t.lda, R, n, b);
    _tile_stored(0, now, kVectorBytes);
    a += 4 * n;
    if (q > 0) AddScaled(before, scales - kColumns, all);
    std::swap(now, before);
  }
  if (t.quads > 0) AddScaled(before, scales - kColumns, all);
  float* const to = static_cast<float*>(t.sums) + i0 * kColumns + v * kLanes;
  ForAll(all,
         [to](VF sum, int i, int) ET_INT8_ATTR { hn::StoreU(sum, Floats(), to + i * kColumns); });
}

// ---- groups as fixed-point numbers ----

// A weight in a group is a 4-bit number times a scale with a mantissa of 8 bits. If the exponents
// of a column's scales are at most kMostShift apart, all its weights are 16-bit integers times one
// column scale. The sums of products with their high and low bytes are exact, and are read from
// registers once rather than for each group.
constexpr int kScaleBits = 7, kMostShift = 4;  // kScaleBits: fraction bits of a scale's mantissa
constexpr int kLeastExponent = 32;             // so that the column scale is a normal number

/// Replaces scales[group, column] by the integers that weights are multiplied by, each twice in 32
/// bits, and stores column_scales[column]. If the scales of some column are too far apart, stores
/// column_scales[0] = 0 and leaves the scales.
void FixScales(float* scales, int64_t groups, float* column_scales) {
  const Ints d;
  const auto exponent = [d](V bits) ET_INT8_ATTR {
    return hn::And(hn::ShiftRight<23>(bits), hn::Set(d, 0xFF));
  };
  const auto is_zero = [d](V bits)
                           ET_INT8_ATTR { return hn::Eq(hn::ShiftLeft<1>(bits), hn::Zero(d)); };
  V most[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    most[v] = hn::Zero(d);
    V least = hn::Set(d, 0xFF);
    for (int64_t g = 0; g < groups; ++g) {
      const V bits = Load(scales + g * kColumns + v * kLanes), e = exponent(bits);
      most[v] = hn::Max(most[v], e);
      least = hn::Min(least, hn::IfThenElse(is_zero(bits), hn::Set(d, 0xFF), e));
    }
    const auto near = hn::Lt(hn::Sub(most[v], least), hn::Set(d, kMostShift + 1));
    const auto normal =
        hn::And(hn::Gt(most[v], hn::Set(d, kLeastExponent - 1)), hn::Lt(most[v], hn::Set(d, 0xFF)));
    const auto none = hn::Eq(least, hn::Set(d, 0xFF));  // all zeros, unless one is NaN or infinite
    const auto good = hn::Or(hn::And(near, normal), hn::And(none, hn::Eq(most[v], hn::Zero(d))));
    if (!hn::AllTrue(d, good)) {
      column_scales[0] = 0;
      return;
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    for (int64_t g = 0; g < groups; ++g) {
      float* const at = scales + g * kColumns + v * kLanes;
      const V bits = Load(at),
              shift = hn::Sub(hn::Set(d, kMostShift), hn::Sub(most[v], exponent(bits)));
      const V mantissa =
          hn::Or(hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x7F)), hn::Set(d, 0x80));
      const V size =
          hn::IfThenZeroElse(is_zero(bits), hn::Shl(mantissa, hn::Max(shift, hn::Zero(d))));
      const V factor = hn::IfThenElse(hn::Lt(bits, hn::Zero(d)), hn::Neg(size), size);
      Store(hn::Or(hn::And(factor, hn::Set(d, 0xFFFF)), hn::ShiftLeft<16>(factor)), at);
    }
    const V column_scale = hn::ShiftLeft<23>(hn::Sub(most[v], hn::Set(d, kScaleBits + kMostShift)));
    const V one = hn::BitCast(d, hn::Set(Floats(), 1.0f));
    Store(hn::IfThenElse(hn::Eq(most[v], hn::Zero(d)), one, column_scale),
          column_scales + v * kLanes);
  }
}

/// The bytes of one half of a panel's columns, including those behind it that PackFixed() may
/// overwrite.
HWY_INLINE int64_t FixedHalf(int64_t quads) {
  return (quads + 7) / 8 * 8 * kPanelQuadBytes;
}

void PackFixed(const uint8_t* b, int64_t ldb, int64_t bytes, int64_t n, int64_t quads,
               int64_t first, int64_t group_quads, const float* factors, uint8_t* panel) {
  const Words d;
  int64_t group = -1, end = 0, of = -1;
  VW factor = hn::Zero(d);
  const auto write = [&](V nibbles, uint8_t* to) ET_INT8_ATTR {
    const VW x = hn::BitCast(d, SpreadNibbles(nibbles)), low_byte = hn::Set(d, 0xFF);
    const VW even = hn::Mul(hn::ShiftRight<8>(hn::ShiftLeft<8>(x)), factor);
    const VW odd = hn::Mul(hn::ShiftRight<8>(x), factor);
    Store(hn::OrAnd(hn::AndNot(low_byte, odd), hn::ShiftRight<8>(even), low_byte), to);
    Store(hn::OrAnd(hn::ShiftLeft<8>(odd), even, low_byte), to + kVectorBytes);
  };
  EachQuad(b, ldb, n, bytes, [&](int64_t i, int v, V x) ET_INT8_ATTR {
    const int64_t quad = first + 2 * i;
    if (of != v || quad >= end) {
      group = quad / group_quads;
      end = (group + 1) * group_quads;
      of = v;
      factor = hn::BitCast(d, Load(factors + group * kColumns + v * kLanes));
    }
    uint8_t* const to = panel + v * FixedHalf(quads) + quad * kPanelQuadBytes;
    const hn::RebindToUnsigned<Ints> du;
    write(hn::And(x, hn::Set(Ints(), 0xFFFF)), to);
    write(hn::BitCast(Ints(), hn::ShiftRight<16>(hn::BitCast(du, x))), to + kPanelQuadBytes);
  });
}

/// Computes the scaled sums of `rows` rows of a tile times a panel of fixed-point numbers.
void MultiplyFixed(const Tile& t, int64_t rows) {
  const Floats d;
  alignas(64) int32_t high[kRows * kLanes], low[kRows * kLanes];
  const int64_t at_once = RowsAtOnce(rows, t.quads);
  for (int64_t i = 0, n; i < rows; i += n) {
    n = at_once < rows - i ? at_once : rows - i;
    ShapeMatrices(*t.registers, n, t.quads);
    for (int v = 0; v < kVectors; ++v) {
      ClearSums();
      const uint8_t* b = t.panel + v * FixedHalf(t.quads);
      AddMatrices<Second::LowBytes>(t.a + i * t.lda, t.lda, n, t.quads, b);
      StoreSums(n, kLanes, high, low);
      const VF column_scale = hn::LoadU(d, t.column_scales + v * kLanes);
      float* const to = static_cast<float*>(t.sums) + i * kColumns + v * kLanes;
      for (int64_t r = 0; r < n; ++r) {
        const VF sum = hn::MulAdd(hn::ConvertTo(d, Load(high + r * kLanes)), hn::Set(d, 256.0f),
                                  hn::ConvertTo(d, Load(low + r * kLanes)));
        hn::StoreU(hn::Mul(sum, column_scale), d, to + r * kColumns);
      }
    }
  }
}
