// Depthwise convolutions: sums over the taps of each channel separately; part of
// int8_kernels-inl.h.

/// Interleaves the bytes of four rows to quads: the first quads of each 16-byte block are then in
/// x[0], the next ones in x[1], and so on.
HWY_INLINE void Interleave(VB (&x)[4]) {
  const Words d;
  const auto pairs = [d](VB a, VB b, bool upper) ET_INT8_ATTR {
    return hn::BitCast(
        d, upper ? hn::InterleaveUpper(Bytes(), a, b) : hn::InterleaveLower(Bytes(), a, b));
  };
  const VW a = pairs(x[0], x[1], false), b = pairs(x[0], x[1], true);
  const VW e = pairs(x[2], x[3], false), f = pairs(x[2], x[3], true);
  x[0] = hn::BitCast(Bytes(), hn::InterleaveLower(d, a, e));
  x[1] = hn::BitCast(Bytes(), hn::InterleaveUpper(d, a, e));
  x[2] = hn::BitCast(Bytes(), hn::InterleaveLower(d, b, f));
  x[3] = hn::BitCast(Bytes(), hn::InterleaveUpper(d, b, f));
}

void InterleaveRows(const FourRows& rows, uint8_t* to, int64_t to_step, int64_t plane) {
  const VB padding = hn::Set(Bytes(), rows.padding);
  const VB flip = hn::Set(Bytes(), static_cast<int8_t>(rows.flip));
  for (int64_t i = 0; i < rows.n; ++i, to += to_step) {
    for (int64_t p = 0; p < rows.bytes; p += kVectorBytes) {
      VB x[4];
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        x[r] = padding;
        if (rows.row[r] != nullptr) {
          const int8_t* const at = rows.row[r] + i * rows.step + p;
          x[r] = LoadRest(reinterpret_cast<const uint8_t*>(at), 0, rows.end - at);
        }
        x[r] = hn::Xor(x[r], flip);
      }
      Interleave(x);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) Store(x[v], to + v * plane + p);
    }
  }
}

/// Computes R output pixels from i0 on. Each weight is loaded once for all of them.
template <int R>
HWY_INLINE void DepthwisePlaces(const DepthwiseTile& t, const ByteMaker& make, int64_t i0) {
  V sums[R][4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) {
    const V start = Load(t.starts + v * kLanes);
#pragma GCC unroll 4
    for (int i = 0; i < R; ++i) sums[i][v] = start;
  }
  const uint8_t *quads = t.quads + i0 * t.step, *w = t.weights;
  for (int64_t q = 0; q < t.n_quads; ++q, w += 4 * kVectorBytes) {
    const uint8_t* at = quads + t.offsets[q];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v, at += t.plane) {
      const V weights = Load(w + v * kVectorBytes);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) sums[i][v] = Dot(sums[i][v], Load(at + i * t.step), weights);
    }
  }
  KeepAll(sums);
  uint8_t* to = t.to + i0 * t.ld;
#pragma GCC unroll 4
  for (int i = 0; i < R; ++i, to += t.ld) {
    VF x[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const VF factor = hn::LoadU(Floats(), t.factors + v * kLanes);
      x[v] = hn::Mul(hn::ConvertTo(Floats(), sums[i][v]), factor);
    }
    const VB bytes = make(x);
    const int64_t n = i0 + i == t.n - 1 ? t.last_bytes : t.bytes;
    if (n >= kVectorBytes) {
      Store(bytes, to);
    } else {
      StoreFew(bytes, n, to);
    }
  }
}

void Depthwise(const DepthwiseTile& t) {
  constexpr int kPlaces = ET_VECTOR_REGISTERS == 32 ? 4 : 2;  // pixels whose sums fit registers
  const ByteMaker make(t.format);
  int64_t i = 0;
  for (; i + kPlaces <= t.n; i += kPlaces) DepthwisePlaces<kPlaces>(t, make, i);
  for (; i < t.n; ++i) DepthwisePlaces<1>(t, make, i);
}
