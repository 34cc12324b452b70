#include <executorch/cpu/gemm/quantized_weights.h>

#include <executorch/cpu/gemm/float_blocks.h>
#include <executorch/cpu/loop_reads.h>

namespace executorch::cpu {
namespace gemm {
namespace {

// The most and the least columns of a task of a product of few rows. The sums of a task lie on the
// stack.
constexpr int64_t kTaskColumns = 192, kLeastTaskColumns = 32;

// The arguments that the weights' rows [j, ...) add to a microkernel's.
QuantizedRows rows_from(const QuantizedWeights& w, int64_t k, int64_t j) {
  const int64_t groups = k / w.group;
  return {w.data + j * w.row_stride,
          w.row_stride,
          w.scales + j * groups,
          w.zero_points == nullptr ? nullptr : w.zero_points + j * groups,
          groups,
          w.group};
}

// A product of few rows of A, which reads the weights once and where they lie.
template <class T>
[[nodiscard]] bool multiply_few(const Gemm<T>& g, const QuantizedWeights& w, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const bool in_place = std::is_same_v<T, float> && g.a.col_stride == 1;
  const int64_t lda = in_place ? g.a.row_stride : round_up(g.k, kMostLanes);
  float* rows = nullptr;
  if (!in_place) {
    rows = scratch.array<float>(Size(g.batch) * g.m * lda);
    if (rows == nullptr) return false;
    for (int64_t s = 0; s < g.batch; ++s) {
      Matrix<const T> a = g.a;
      a.data += s * g.a_batch;
      convert_rows(a, g.m, g.k, rows + s * g.m * lda, lda);
    }
  }
  const auto a_of = [&](int64_t s) -> const float* {
    if constexpr (std::is_same_v<T, float>) {
      if (in_place) return g.a.data + s * g.a_batch;
    }
    return rows + s * g.m * lda;
  };
  const int64_t chunk =
      Division::even_columns(g.batch * g.n, kMostLanes, kLeastTaskColumns, kTaskColumns);
  const int64_t n_chunks = ceil_div(g.n, chunk);
  if (g.batch == 1 && g.n > kTaskColumns && g.k * g.n >= kLeastReads) {
    will_read({w.data, chunk * w.row_stride, chunk, g.k, w.row_stride});
  }
  const int64_t work = chunk * g.k * std::max<int64_t>(g.m / 2, 1);
  parallel_for(g.batch * n_chunks, ceil_div(kGrainWork / 4, work), [&](int64_t begin, int64_t end) {
    alignas(64) float sums[kMostQuantizedRows * kTaskColumns];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t s = i / n_chunks, j0 = i % n_chunks * chunk;
      const int64_t n = std::min(chunk, g.n - j0);
      kernels().quantized.few_rows_dot(
          {a_of(s), lda, g.m, g.k, rows_from(w, g.k, j0), n, sums, kTaskColumns});
      row<T>().finish({&g, s, sums, kTaskColumns, 0, g.m, j0, n});
    }
  });
  return true;
}

// What produce() is given.
struct PanelSource {
  const QuantizedWeights& weights;
  int64_t k;
};

// Dequantizes a panel: MatrixSource::produce as B.
void produce(const void* source, int64_t, int64_t j0, int64_t nj, int64_t p0, int64_t np, float* to,
             int64_t ld) {
  constexpr int64_t kPiece = 4 * kMostLanes;
  alignas(64) float piece[kMostPanelColumns * kPiece];
  const auto& [weights, k] = *static_cast<const PanelSource*>(source);
  const QuantizedRows rows = rows_from(weights, k, j0);
  for (int64_t p = 0; p < np; p += kPiece) {
    const int64_t n = std::min(kPiece, np - p);
    kernels().quantized.dequantize(rows, nj, p0 + p, n, piece, kPiece);
    row<float>().pack_columns(piece, kPiece, n, nj, to + p * ld, ld);
  }
}

}  // namespace
}  // namespace gemm

template <class T>
bool multiply(const Gemm<T>& g, const QuantizedWeights& weights, Scratch& scratch) {
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return true;
  if (!is_countable(g.batch, g.m, g.n, g.k)) return false;
  if (g.m <= gemm::kMostQuantizedRows) {
    scratch.add_products(Size(g.batch) * g.m * g.n * g.k);
    return gemm::multiply_few(g, weights, scratch);
  }
  const gemm::PanelSource source{weights, g.k};
  Gemm<T> product = g;
  product.b = {};
  product.b_source = {gemm::produce, &source};
  return product.run(scratch);
}

#define ET_ROW(T, name) \
  template bool multiply<T>(const Gemm<T>&, const QuantizedWeights&, Scratch& scratch);
ET_STORED_FLOATS(ET_ROW)
#undef ET_ROW

}  // namespace executorch::cpu
