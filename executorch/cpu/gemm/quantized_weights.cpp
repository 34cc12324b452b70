#include <executorch/cpu/gemm/quantized_weights.h>

#include <executorch/cpu/gemm/few_rows.h>
#include <executorch/cpu/gemm/split_blocks.h>
#include <executorch/cpu/gemm/transposed_blocks.h>
#include <executorch/cpu/loop_reads.h>

namespace executorch::cpu {
namespace gemm {
namespace {

QuantizedRows rows_of(const QuantizedWeights& w, int64_t k) {
  return {w.data, w.row_stride, w.scales, w.zero_points, k / w.group, w.group};
}

// The rows of weights that are dequantized at once for few rows of A.
constexpr int64_t kDequantizedRows = 4;

// sums[i * kTaskColumns + j] = the dot product of row i of A, at a + i * lda, with row j < n of the
// weights. For several rows of A, the weights are dequantized into `buffer`, a few rows at a time.
void add_dots(const QuantizedRows& weights, const float* a, int64_t lda, int64_t m, int64_t k,
              int64_t n, float* buffer, float* sums) {
  if (m == 1) return kernels().quantized.row_dots({a, k, weights, n, sums});
  const int64_t ld = round_up(k, kMostLanes);
  QuantizedRows some = weights;
  for (int64_t j = 0; j < n; j += kDequantizedRows) {
    const int64_t nj = std::min(kDequantizedRows, n - j);
    kernels().quantized.dequantize(some, nj, 0, k, buffer, ld);
    row<float>().few_rows_dot({a, lda, m, k, buffer, ld, nj, sums + j, kTaskColumns, true});
    some = some.from(kDequantizedRows);
  }
}

// A product of few rows of A, which reads the weights once and where they lie.
template <class T>
[[nodiscard]] bool multiply_few(const Gemm<T>& g, const QuantizedWeights& w, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  FloatRows<T> rows(g);
  const Size floats = g.m > 1 ? kDequantizedRows * round_up(Size(g.k), kMostLanes) : Size(0);
  const ThreadScratch<float> buffers(scratch, floats);
  if (!buffers || !rows.convert(scratch)) return false;
  const int64_t chunk =
      Division::even_columns(g.batch * g.n, kMostLanes, kLeastTaskColumns, kTaskColumns);
  const int64_t n_chunks = ceil_div(g.n, chunk);
  if (g.batch == 1 && g.n > kTaskColumns && g.k * g.n >= kLeastReads) {
    will_read({w.data, chunk * w.row_stride, chunk, g.k, w.row_stride});
  }
  const int64_t work = chunk * g.k * std::max<int64_t>(g.m / 2, 1);
  buffers.parallel_for(g.batch * n_chunks, ceil_div(kGrainWork / 4, work),
                       [&](int64_t begin, int64_t end, float* buffer) {
                         alignas(64) float sums[kMostDotRows * kTaskColumns];
                         for (int64_t i = begin; i < end; ++i) {
                           const int64_t s = i / n_chunks, j0 = i % n_chunks * chunk;
                           const int64_t n = std::min(chunk, g.n - j0);
                           add_dots(rows_of(w, g.k).from(j0), rows.of(s), rows.ld(), g.m, g.k, n,
                                    buffer, sums);
                           row<T>().finish({&g, s, sums, kTaskColumns, 0, g.m, j0, n});
                         }
                       });
  return true;
}

// Up to as many rows of A, weights are the left operand of the transposed product. More rows than
// fit half of the L2 cache are divided into blocks, each of which dequantizes all weights; panels,
// which more blocks of C share, cost less then. It is a constant, so that sums have the same order
// on every machine.
constexpr int64_t kMostTransposedRows = 256;

// What is dequantized: the matrix of a MatrixSource.
struct DequantizedRows {
  QuantizedRows weights;
  int64_t n;
};

// Dequantizes columns of B, as rows of A. Those behind them are prefetched.
void produce_rows(const void* matrix, int64_t, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                  float* to, int64_t ld) {
  const auto& [weights, n] = *static_cast<const DequantizedRows*>(matrix);
  kernels().quantized.dequantize(weights.from(j0), nj, p0, np, to, ld);
  for (int64_t j = j0 + nj; j < std::min(j0 + 2 * nj, n); ++j) {
    const int8_t* const row = weights.data + j * weights.ld + p0;
    for (int64_t p = 0; p < np; p += kLine) __builtin_prefetch(row + p, 0, 2);
  }
  keep_prefetches();
}

// Dequantizes a panel of B.
void produce_panel(const void* matrix, int64_t, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                   float* to, int64_t ld) {
  constexpr int64_t kPiece = 4 * kMostLanes;
  alignas(64) float piece[kMostPanelColumns * kPiece];
  const QuantizedRows weights = static_cast<const DequantizedRows*>(matrix)->weights.from(j0);
  for (int64_t p = 0; p < np; p += kPiece) {
    const int64_t n = std::min(kPiece, np - p);
    kernels().quantized.dequantize(weights, nj, p0 + p, n, piece, kPiece);
    row<float>().pack_columns(piece, kPiece, n, nj, to + p * ld, ld);
  }
}

}  // namespace
}  // namespace gemm

template <class T>
bool multiply(const Gemm<T>& g, const QuantizedWeights& weights, Scratch& scratch) {
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return true;
  if (!is_countable(g.batch, g.m, g.n, g.k)) return false;
  const Size products = Size(g.batch) * g.m * g.n * g.k;
  if (g.m <= gemm::row<float>().most_dot_rows) {
    scratch.add_products(products);
    return gemm::multiply_few(g, weights, scratch);
  }
  const gemm::DequantizedRows rows{gemm::rows_of(weights, g.k), g.n};
  Gemm<T> product = g;
  product.b = {};
  product.b_source = {gemm::produce_panel, &rows, false};
  if (g.m <= gemm::kMostTransposedRows && !gemm::SplitBlocks<T>::pays(product) &&
      gemm::TransposedBlocks<T>::takes_rows_of(g)) {
    scratch.add_products(products);
    return gemm::TransposedBlocks<T>::run(g, scratch, {gemm::produce_rows, &rows});
  }
  return product.run(scratch);
}

#define ET_ROW(T, name) \
  template bool multiply<T>(const Gemm<T>&, const QuantizedWeights&, Scratch& scratch);
ET_STORED_FLOATS(ET_ROW)
#undef ET_ROW

}  // namespace executorch::cpu
