// From sums to results, and between floats and 8-bit integers; part of
// int8_kernels-inl.h. Loops of a fixed length, which become vectors.

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

/// Nearest even, for |x| < 2^22; unlike std::nearbyint a loop of these becomes
/// vectors everywhere.
constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: the sum has the integer in its low bits
ET_INLINE float RoundEven(float x) {
  return (x + kRounder) - kRounder;
}

/// What is held before it is rounded, in units of the scale and less the zero
/// point: a NaN becomes `low`, and the conversion is defined for every float.
struct Range {
  float low, high;
  int32_t zero_point;

  Range(int32_t zero, bool is_unsigned, float least, float most)
      : low((is_unsigned ? 0.0f : -128.0f) - static_cast<float>(zero)),
        high((is_unsigned ? 255.0f : 127.0f) - static_cast<float>(zero)),
        zero_point(zero) {
    const float lowest = low, highest = high;
    low = least > lowest ? (least < highest ? least : highest) : lowest;
    high = most < highest ? (most > lowest ? most : lowest) : highest;
  }
  ET_INLINE uint8_t operator()(float x) const {
    const float above = x > low ? x : low;
    const float within = above < high ? above : high;
    return static_cast<uint8_t>(bit_cast<int32_t>(within + kRounder) + zero_point);
  }
};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

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

// ---- formats ----

template <class T>
ET_INLINE float Real(T q, const Int8Format& format) {
  return static_cast<float>(q - format.zero_point) * format.scale;
}

void Dequantize(const void* q, int64_t n, const Int8Format& of, float* x) {
  const auto run = [=](const auto* from) ET_TARGET_LAMBDA {
    for (int64_t i = 0; i < n; ++i) x[i] = Real(from[i], of);
  };
  if (of.is_unsigned) return run(static_cast<const uint8_t*>(q));
  run(static_cast<const int8_t*>(q));
}

void Quantize(const float* x, int64_t n, const Int8Format& to, void* q) {
  const Range range(to.zero_point, to.is_unsigned, -kInfinity, kInfinity);
  const float inverse = 1 / to.scale;
  auto* const bytes = static_cast<uint8_t*>(q);
  for (int64_t i = 0; i < n; ++i) bytes[i] = range(x[i] * inverse);
}

template <class A, class B, class F>
ET_INLINE void CombineAs(const Int8Binary& b, const F& f) {
  const float inverse = 1 / b.y_format.scale;
  const Range range(b.y_format.zero_point, b.y_format.is_unsigned, b.low * inverse,
                    b.high * inverse);
  const auto* p = static_cast<const A*>(b.a);
  const auto* q = static_cast<const B*>(b.b);
  const Int8Format pf = b.a_format, qf = b.b_format;
  auto* const y = static_cast<uint8_t*>(b.y);
  const int64_t n = b.n;
  for (int64_t i = 0; i < n; ++i) y[i] = range(f(Real(p[i], pf), Real(q[i], qf)) * inverse);
}

template <class F>
ET_INLINE void CombineWith(const Int8Binary& b, const F& f) {
  if (b.a_format.is_unsigned) return CombineAs<uint8_t, uint8_t>(b, f);
  CombineAs<int8_t, int8_t>(b, f);
}

void Combine(const Int8Binary& b) {
  switch (b.op) {
    case Int8Binary::Op::Add:
      return CombineWith(b, [](float x, float y) ET_TARGET_LAMBDA { return x + y; });
    case Int8Binary::Op::Subtract:
      return CombineWith(b, [](float x, float y) ET_TARGET_LAMBDA { return x - y; });
    case Int8Binary::Op::Multiply:
      return CombineWith(b, [](float x, float y) ET_TARGET_LAMBDA { return x * y; });
  }
}

RowQuantization QuantizeRow(const float* x, int64_t n, int8_t* q) {
  constexpr int kWidth = 32;
  float lows[kWidth] = {}, highs[kWidth] = {};
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    for (int l = 0; l < kWidth; ++l) {
      lows[l] = x[i + l] < lows[l] ? x[i + l] : lows[l];
      highs[l] = x[i + l] > highs[l] ? x[i + l] : highs[l];
    }
  }
  for (; i < n; ++i) {
    lows[0] = x[i] < lows[0] ? x[i] : lows[0];
    highs[0] = x[i] > highs[0] ? x[i] : highs[0];
  }
  float low = 0, high = 0;
  for (int l = 0; l < kWidth; ++l) {
    low = lows[l] < low ? lows[l] : low;
    high = highs[l] > high ? highs[l] : high;
  }
  const float inverse = high == low ? 1.0f : 255.0f / (high - low);
  const float a = low * inverse, b = high * inverse;
  const float zero = (-128 + a) + (127 + b) > 0 ? -128 - a : 127 - b;
  // An infinite range has no number that stands for 0.
  const float bounded = zero > -128 ? (zero < 127 ? zero : 127) : -128;
  const RowQuantization to{1 / inverse, static_cast<int32_t>(RoundEven(bounded))};
  Quantize(x, n, {to.scale, to.zero_point, false}, q);
  return to;
}
