// Tiles where registers hold matrices (x86's AMX); part of int8_kernels-inl.h. A register has up to 16
// rows of 64 bytes: rows of A; 16 quads of 16 columns of a panel, as they lie in it; or the sums of 16
// rows and 16 columns. An instruction multiplies two of them, in as many cycles as A has rows.

static_assert(kColumns == 32 && kLanes == 16);
constexpr int64_t kMatrixQuads = 16, kMatrixBytes = 4 * kMatrixQuads;  // of k in a register
constexpr int64_t kPanelQuadBytes = kColumns * 4;

/// What the registers hold, in the form that the processor reads: sums in 0 and 1, rows of A in 2,
/// quads of a panel in 3; in 4 and 5 those that are left of a segment.
struct alignas(64) MatrixShapes {
  uint8_t palette = 1, first_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 0, 64};
  uint8_t rows[16] = {};

  MatrixShapes(int64_t n_rows, int64_t rest) {
    const auto of_a = static_cast<uint8_t>(n_rows);
    const auto left = static_cast<uint8_t>(rest > 0 ? rest : 1);  // no register is without a shape
    bytes[4] = static_cast<uint16_t>(4 * left);
    rows[0] = rows[1] = rows[2] = rows[4] = of_a;
    rows[3] = kMatrixQuads;
    rows[5] = left;
  }
};

void ReleaseMatrices() {
  _tile_release();
}

/// Shapes registers for rows and segments of so many quads.
HWY_INLINE void ShapeMatrices(MatrixRegisters& registers, int64_t rows, int64_t quads) {
  const int64_t rest = quads % kMatrixQuads;
  if (registers.rows == rows && registers.rest == rest) return;
  const MatrixShapes shapes(rows, rest);
  asm volatile("" : : "r"(&shapes) : "memory");  // GCC believes that 8 bytes of it are read
  _tile_loadconfig(&shapes);
  registers.rows = rows;
  registers.rest = rest;
  registers.release = ReleaseMatrices;
}

// Adds the products of rows of A and columns of a panel, by way of these two registers: the text of an
// instruction names them.
#define ET_ADD_MATRIX(of_a, of_b)               \
  _tile_loadd(of_a, a, lda);                    \
  _tile_loadd(of_b, b, kPanelQuadBytes);        \
  _tile_dpbssd(0, of_a, of_b);                  \
  if constexpr (kWhole) {                       \
    _tile_loadd(of_b, b + 64, kPanelQuadBytes); \
    _tile_dpbssd(1, of_a, of_b);                \
  }

/// Adds a segment of rows times one of a panel, or of half of its columns, which is behind it
/// afterwards.
template <bool kWhole>
HWY_INLINE void AddMatrices(const int8_t* a, int64_t lda, int64_t quads, const uint8_t*& b) {
  for (; quads >= kMatrixQuads; quads -= kMatrixQuads) {
    ET_ADD_MATRIX(2, 3)
    a += kMatrixBytes, b += kMatrixQuads * kPanelQuadBytes;
  }
  if (quads == 0) return;
  ET_ADD_MATRIX(4, 5)
  b += quads * kPanelQuadBytes;
}
#undef ET_ADD_MATRIX

/// The sums of the R rows of a tile times its panel.
template <int R>
HWY_INLINE void MultiplyMatrices(const Tile& t, int32_t* sums) {
  ShapeMatrices(*t.registers, R, t.quads);
  const uint8_t* b = t.panel;
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t s = 0; s < t.n_segments; ++s) {
    AddMatrices<true>(t.a + t.segments[s], t.lda, t.quads, b);
  }
  _tile_stored(0, sums, kPanelQuadBytes);
  _tile_stored(1, sums + kLanes, kPanelQuadBytes);
}

/// all[i] += the sums of row i of a group, scaled.
template <int R>
HWY_INLINE void AddScaled(const int32_t* sums, const float* scales, VF (&all)[R][1]) {
  const VF scale = hn::LoadU(Floats(), scales);
  ForAll(all, [=](VF& sum, int i, int) ET_INT8_ATTR {
    sum = hn::MulAdd(hn::ConvertTo(Floats(), Load(sums + i * kLanes)), scale, sum);
  });
  KeepAll(all);
}

/// The same of one segment and vector v of the columns, each group's sums scaled. Registers of matrices
/// are read through memory: a group is scaled while the next one is multiplied.
template <int R>
HWY_INLINE void MultiplyGroups(const Tile& t, int v) {
  alignas(64) int32_t sums[2][R * kLanes];
  VF all[R][1];
  Fill(all, hn::Zero(Floats()));
  const int8_t* a = t.a;
  const uint8_t* b = t.panel + v * kVectorBytes;
  const float* scales = t.scales + v * kLanes;
  int32_t *now = sums[0], *before = sums[1];
  for (int64_t q = 0; q < t.quads; q += t.group_quads, scales += kColumns) {
    const int64_t n = t.group_quads < t.quads - q ? t.group_quads : t.quads - q;
    ShapeMatrices(*t.registers, R, n);
    _tile_zero(0);
    AddMatrices<false>(a, t.lda, n, b);
    _tile_stored(0, now, kVectorBytes);
    a += 4 * n;
    if (q > 0) AddScaled(before, scales - kColumns, all);
    std::swap(now, before);
  }
  if (t.quads > 0) AddScaled(before, scales - kColumns, all);
  float* const to = static_cast<float*>(t.sums) + v * kLanes;
  ForAll(all,
         [to](VF sum, int i, int) ET_INT8_ATTR { hn::StoreU(sum, Floats(), to + i * kColumns); });
}
