// Sums and maxima over the taps of each channel by itself; part of int8_kernels-inl.h.

void InterleaveRows(const FourRows& rows, uint8_t* to, int64_t to_step) {
  const auto repeated = [](uint8_t byte) ET_TARGET_LAMBDA {
    return Ints{} + static_cast<int32_t>(byte * 0x01010101u);
  };
  const Ints padding = repeated(static_cast<uint8_t>(rows.padding)), flip = repeated(rows.flip);
  for (int64_t i = 0; i < rows.n; ++i, to += to_step) {
    Ints x[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      const int8_t* const p = rows.row[r];
      x[r] = padding;
      if (p != nullptr) {
        const int8_t* const at = p + i * rows.step;
        x[r] = LoadRest(reinterpret_cast<const uint8_t*>(at), 0, rows.end - at);
      }
      x[r] ^= flip;
    }
    Interleave(x, std::make_integer_sequence<int, kLanes>());
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) Store(x[v], to + v * kVectorBytes);
  }
}

/// R pixels, whose weights are read once.
template <int R>
ET_INLINE void DepthwisePixels(const DepthwiseTile& t, int64_t i0) {
  Ints sums[R][4] = {};
  const uint8_t *quads = t.quads + i0 * t.step, *w = t.weights;
  for (int64_t q = 0; q < t.n_quads; ++q, w += 4 * kVectorBytes) {
    const uint8_t* const at = quads + t.offsets[q];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      const Ints weights = Load(w + v * kVectorBytes);
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
        sums[i][v] = DepthwiseDot(sums[i][v], Load(at + i * t.step + v * kVectorBytes), weights);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) Store(sums[i][v], t.sums + ((i0 + i) * 4 + v) * kLanes);
  }
}

void Depthwise(const DepthwiseTile& t) {
  int64_t i = 0;
  for (; i + 4 <= t.n; i += 4) DepthwisePixels<4>(t, i);
  for (; i < t.n; ++i) DepthwisePixels<1>(t, i);
}

void Maximum(const Int8Maximum& m) {
  typedef int8_t Bytes __attribute__((vector_size(kLanes * 4)));
  const auto repeated = [](uint8_t byte) ET_TARGET_LAMBDA {
    return Ints{} + static_cast<int32_t>(byte * 0x01010101u);
  };
  // As signed bytes.
  const Ints flip = repeated(m.is_unsigned ? 0x80 : 0);
  const auto low = reinterpret_cast<Bytes>(repeated(m.low) ^ flip),
             high = reinterpret_cast<Bytes>(repeated(m.high) ^ flip);
  for (int64_t c = 0; c < m.n; c += kVectorBytes) {
    Bytes most = low;
    for (int64_t r = 0; r < m.n_rows; ++r) {
      const Ints x = LoadRest(static_cast<const uint8_t*>(m.rows[r]), c, m.n) ^ flip;
      most = reinterpret_cast<Bytes>(x) > most ? reinterpret_cast<Bytes>(x) : most;
    }
    most = most < high ? most : high;
    const Ints bytes = reinterpret_cast<Ints>(most) ^ flip;
    uint8_t* const to = static_cast<uint8_t*>(m.y) + c;
    if (m.n - c >= kVectorBytes) {
      Store(bytes, to);
    } else {
      std::memcpy(to, &bytes, static_cast<size_t>(m.n - c));
    }
  }
}
