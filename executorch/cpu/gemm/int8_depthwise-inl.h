// Sums and maxima over the taps of each channel by itself; part of int8_kernels-inl.h.

void InterleaveRows(const FourRows& rows, uint8_t* to, int64_t to_step, int64_t plane) {
  const auto repeated = [](uint8_t byte) ET_TARGET_LAMBDA {
    return Ints{} + static_cast<int32_t>(byte * 0x01010101u);
  };
  const Ints padding = repeated(static_cast<uint8_t>(rows.padding)), flip = repeated(rows.flip);
  for (int64_t i = 0; i < rows.n; ++i, to += to_step) {
    for (int64_t p = 0; p < rows.bytes; p += kVectorBytes) {
      Ints x[4];
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        x[r] = padding;
        if (rows.row[r] != nullptr) {
          const int8_t* const at = rows.row[r] + i * rows.step + p;
          x[r] = LoadRest(reinterpret_cast<const uint8_t*>(at), 0, rows.end - at);
        }
        x[r] ^= flip;
      }
      Interleave(x);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) Store(x[v], to + v * plane + p);
    }
  }
}

/// R places, for which weights are read once.
template <int R>
ET_INLINE void DepthwisePlaces(const DepthwiseTile& t, const ByteMaker& make, int64_t i0) {
  Ints sums[R][4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    const Ints start = Load(t.starts + v * kLanes);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) sums[i][v] = start;
  }
  const uint8_t *quads = t.quads + i0 * t.step, *w = t.weights;
  for (int64_t q = 0; q < t.n_quads; ++q, w += 4 * kVectorBytes) {
    const uint8_t* at = quads + t.offsets[q];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v, at += t.plane) {
      const Ints weights = Load(w + v * kVectorBytes);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        sums[i][v] = DepthwiseDot(sums[i][v], Load(at + i * t.step), weights);
      }
    }
  }
  uint8_t* to = t.to + i0 * t.ld;
#pragma GCC unroll 4
  for (int i = 0; i < R; ++i, to += t.ld) {
    Floats x[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) x[v] = ToFloat(sums[i][v]) * LoadFloats(t.factors + v * kLanes);
    const Ints bytes = make(x);
    const int64_t n = i0 + i == t.n - 1 ? t.last_bytes : t.bytes;
    if (n >= kVectorBytes) {
      Store(bytes, to);
    } else {
      StoreFew(bytes, n, to);
    }
  }
}

void Depthwise(const DepthwiseTile& t) {
  constexpr int kPlaces = kLanes == 8 ? 2 : 4;  // whose sums stay in registers
  const ByteMaker make(t.format);
  int64_t i = 0;
  for (; i + kPlaces <= t.n; i += kPlaces) DepthwisePlaces<kPlaces>(t, make, i);
  for (; i < t.n; ++i) DepthwisePlaces<1>(t, make, i);
}
