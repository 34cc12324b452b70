// Tiles where registers hold matrices (x86's AMX); part of int8_kernels-inl.h. A register has up to 16
// rows of 64 bytes: rows of A; 16 quads of 16 columns of a panel, as they lie in it; or the sums of 16
// rows and 16 columns. An instruction multiplies two of them, in as many cycles as A has rows.

static_assert(kColumns == 32 && kLanes == 16);
constexpr int64_t kMatrixQuads = 16;  // of k in a register

/// What the registers hold, in the form that the processor reads: sums in 0 and 1, rows of A in 2,
/// quads of a panel in 3; in 4 and 5 those that are left of a segment.
struct alignas(64) MatrixShapes {
  uint8_t palette = 1, first_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes[16] = {64, 64, 64, 64, 0, 64};
  uint8_t rows[16] = {};

  MatrixShapes(int64_t n_rows, int64_t rest) {
    // A register that is not used has a shape, too.
    const auto of_a = static_cast<uint8_t>(n_rows);
    const auto left = static_cast<uint8_t>(rest > 0 ? rest : 1);
    bytes[4] = static_cast<uint16_t>(4 * left);
    rows[0] = rows[1] = rows[2] = rows[4] = of_a;
    rows[3] = kMatrixQuads;
    rows[5] = left;
  }
};

void ReleaseMatrices() {
  _tile_release();
}

/// sums[i * kColumns + j] of the R rows of a tile times its panel.
template <int R>
HWY_INLINE void MultiplyMatrices(const Tile& t, int32_t* sums) {
  MatrixRegisters own;
  MatrixRegisters& registers = t.registers == nullptr ? own : *t.registers;
  const int64_t rest = t.quads % kMatrixQuads;
  if (registers.rows != R || registers.rest != rest) {
    const MatrixShapes shapes(R, rest);
    _tile_loadconfig(&shapes);
    registers.rows = R;
    registers.rest = rest;
    registers.release = ReleaseMatrices;
  }
  constexpr int64_t kQuadBytes = kColumns * 4;
  const uint8_t* b = t.panel;
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t s = 0; s < t.n_segments; ++s) {
    const int8_t* a = t.a + t.segments[s];
    for (int64_t n = t.quads / kMatrixQuads; n > 0; --n) {
      _tile_loadd(2, a, t.lda);
      _tile_loadd(3, b, kQuadBytes);
      _tile_dpbssd(0, 2, 3);
      _tile_loadd(3, b + 64, kQuadBytes);
      _tile_dpbssd(1, 2, 3);
      a += 4 * kMatrixQuads, b += kMatrixQuads * kQuadBytes;
    }
    if (rest == 0) continue;
    _tile_loadd(4, a, t.lda);
    _tile_loadd(5, b, kQuadBytes);
    _tile_dpbssd(0, 4, 5);
    _tile_loadd(5, b + 64, kQuadBytes);
    _tile_dpbssd(1, 4, 5);
    b += rest * kQuadBytes;
  }
  _tile_stored(0, sums, kQuadBytes);
  _tile_stored(1, sums + kLanes, kQuadBytes);
}
