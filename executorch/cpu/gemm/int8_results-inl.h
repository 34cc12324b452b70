// From sums to results; part of int8_kernels-inl.h.

uint16_t HalfOf(float x) {
  // By the magic-number method: the sum with a power of two rounds to the unit
  // wanted.
  const uint32_t bits = bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x38800000) {
    const float sum = bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bit_cast<uint32_t>(sum) - 0x3F000000));
  }
  const uint32_t odd = magnitude >> 13 & 1;
  return static_cast<uint16_t>(sign | ((magnitude + 0xFFF + odd - (112u << 23)) >> 13));
}

uint16_t BFloat16Of(float x) {
  const uint32_t bits = bit_cast<uint32_t>(x);
  if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

ET_INLINE void StoreFloatRow(const Int8Gemm& g, const float* x, int64_t n, int64_t first) {
  switch (g.out) {
    case Int8Gemm::Out::F16:
      for (int64_t j = 0; j < n; ++j) static_cast<F16*>(g.c)[first + j] = {HalfOf(x[j])};
      return;
    case Int8Gemm::Out::BF16:
      for (int64_t j = 0; j < n; ++j) static_cast<BF16*>(g.c)[first + j] = {BFloat16Of(x[j])};
      return;
    default:
      float* const to = static_cast<float*>(g.c) + first;
      std::memcpy(to, x, static_cast<size_t>(n) * 4);
  }
}

/// store(r, x) for all rows: x is what their sums mean. By row,
///   x = (sum - zero point * column sum) * (row scale * column scale) + bias
template <bool kGrouped, class F>
ET_INLINE void ScaleRows(const Results& e, const F& store) {
  typedef uint32_t Wrapping __attribute__((vector_size(kLanes * 4), may_alias));
  const Int8Gemm& g = *e.gemm;
  // Copies, as what is stored might be anything.
  Ints column_sums[kVectors];  // of groups floats
  Floats scale[kVectors], bias[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Columns& c = *e.columns;
    column_sums[v] = kGrouped ? Load(c.group_sums + v * kLanes) : Load(c.sums + v * kLanes);
    scale[v] = LoadFloats(c.scale + v * kLanes);
    bias[v] = LoadFloats(c.bias + v * kLanes);
  }
  const int32_t* sums = e.sums;
  const int64_t ld = e.ld, n = e.ni, share = g.rows_share < g.m ? g.rows_share : g.m;
  const RowQuantization* row = g.rows + e.i0 / share;
  int64_t next = share - e.i0 % share;  // the first row of the next quantization
  for (int64_t r = 0; r < n; ++r, sums += ld) {
    if (r == next) {
      ++row;
      next += share;
    }
    // Wraps rather than overflows where a file says nonsense.
    const int32_t zero = static_cast<int32_t>(static_cast<uint32_t>(row->zero_point) +
                                              static_cast<uint32_t>(e.offset));
    Floats x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Ints sum = Load(sums + v * kLanes);
      if constexpr (kGrouped) {
        x[v] = reinterpret_cast<Floats>(sum) -
               static_cast<float>(zero) * reinterpret_cast<Floats>(column_sums[v]);
      } else {
        x[v] = ToFloat(reinterpret_cast<Ints>(reinterpret_cast<Wrapping>(sum) -
                                              static_cast<uint32_t>(zero) *
                                                  reinterpret_cast<Wrapping>(column_sums[v])));
      }
      x[v] = x[v] * (row->scale * scale[v]) + bias[v];
    }
    store(r, x);
  }
}

template <bool kGrouped, bool kWhole>
ET_INLINE void FinishFloats(const Results& e) {
  const Int8Gemm& g = *e.gemm;
  const Floats low = Floats{} + g.low, high = Floats{} + g.high;
  const int64_t first = e.i0 * g.ldc + e.j0, ld = g.ldc;
  float* const to = static_cast<float*>(g.c) + first;
  ScaleRows<kGrouped>(e, [&](int64_t r, const Floats(&x)[kVectors]) ET_TARGET_LAMBDA {
    float buffer[kColumns];
    float* const row = kWhole ? to + r * ld : buffer;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {  // a NaN stays one
      const Floats above = x[v] < low ? low : x[v];
      StoreFloats(above > high ? high : above, row + v * kLanes);
    }
    if constexpr (!kWhole) StoreFloatRow(g, buffer, e.nj, first + r * ld);
  });
}

template <bool kGrouped>
ET_INLINE void FinishAll(const Results& e) {
  const Int8Gemm& g = *e.gemm;
  const bool whole = e.nj == kColumns && g.out == Int8Gemm::Out::F32;
  whole ? FinishFloats<kGrouped, true>(e) : FinishFloats<kGrouped, false>(e);
}

void Finish(const Results& e) {
  e.gemm->b.group_scales == nullptr ? FinishAll<false>(e) : FinishAll<true>(e);
}

void FinishBytes(const int32_t* sums, int64_t ld, int64_t rows, const ByteResults& results) {
  const ByteRows store(results);
  for (int64_t r = 0; r < rows; ++r, sums += ld) {
    Ints row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      row[v] = Load(sums + v * kLanes) + Load(results.columns->start + v * kLanes);
    }
    store(row, r);
  }
}
