#include <executorch/cpu/gemm/quantized_weights.h>

#include <executorch/cpu/gemm/split_blocks.h>
#include <executorch/cpu/gemm/transposed_blocks.h>
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
  const auto from = [&](const float* of_groups) {
    return of_groups == nullptr ? nullptr : of_groups + j * groups;
  };
  return {w.data + j * w.row_stride, w.row_stride, from(w.scales),
          from(w.zero_points),       groups,       w.group};
}

// A product of few rows of A, which reads the weights once and where they lie.
template <class T>
class FewRowsProduct {
 public:
  FewRowsProduct(const Gemm<T>& g, const QuantizedWeights& w)
      : g_(g),
        w_(w),
        in_place_(std::is_same_v<T, float> && g.a.col_stride == 1),
        lda_(in_place_ ? g.a.row_stride : round_up(g.k, kMostLanes)) {}

  [[nodiscard]] bool run(Scratch& scratch) {
    const Scratch::Frame frame(scratch);
    if (!in_place_ && !convert_a(scratch)) return false;
    const int64_t chunk =
        Division::even_columns(g_.batch * g_.n, kMostLanes, kLeastTaskColumns, kTaskColumns);
    const int64_t n_chunks = ceil_div(g_.n, chunk);
    const Size dequantized = g_.m > 1 ? Size(kRows) * round_up(Size(g_.k), kMostLanes) : Size(0);
    ThreadScratch<float> buffers(scratch, dequantized);
    if (!buffers) return false;
    if (g_.batch == 1 && g_.n > kTaskColumns && g_.k * g_.n >= kLeastReads) {
      will_read({w_.data, chunk * w_.row_stride, chunk, g_.k, w_.row_stride});
    }
    const int64_t grain = ceil_div(kGrainWork / 4, chunk * g_.k * std::max<int64_t>(g_.m / 2, 1));
    buffers.parallel_for(g_.batch * n_chunks, grain,
                         [&](int64_t begin, int64_t end, float* buffer) {
                           alignas(64) float sums[kMostDotRows * kTaskColumns];
                           for (int64_t i = begin; i < end; ++i) {
                             const int64_t s = i / n_chunks, j0 = i % n_chunks * chunk;
                             const int64_t n = std::min(chunk, g_.n - j0);
                             g_.m == 1 ? add_row(s, j0, n, sums) : add_rows(s, j0, n, buffer, sums);
                             row<T>().finish({&g_, s, sums, kTaskColumns, 0, g_.m, j0, n});
                           }
                         });
    return true;
  }

 private:
  // The rows of weights that are dequantized at once.
  static constexpr int64_t kRows = 4;

  bool convert_a(Scratch& scratch) {
    rows_ = scratch.array<float>(Size(g_.batch) * g_.m * lda_);
    for (int64_t s = 0; s < g_.batch && rows_ != nullptr; ++s) {
      Matrix<const T> a = g_.a;
      a.data += s * g_.a_batch;
      convert_rows(a, g_.m, g_.k, rows_ + s * g_.m * lda_, lda_);
    }
    return rows_ != nullptr;
  }
  const float* a(int64_t s) const {
    if constexpr (std::is_same_v<T, float>) {
      if (in_place_) return g_.a.data + s * g_.a_batch;
    }
    return rows_ + s * g_.m * lda_;
  }

  void add_row(int64_t s, int64_t j0, int64_t n, float* sums) const {
    kernels().quantized.row_dots({a(s), g_.k, rows_from(w_, g_.k, j0), n, sums});
  }
  // Weights are dequantized once for all rows of A, into a cache.
  void add_rows(int64_t s, int64_t j0, int64_t n, float* buffer, float* sums) const {
    const int64_t ld = round_up(g_.k, kMostLanes);
    for (int64_t j = 0; j < n; j += kRows) {
      const int64_t nj = std::min(kRows, n - j);
      kernels().quantized.dequantize(rows_from(w_, g_.k, j0 + j), nj, 0, g_.k, buffer, ld);
      row<float>().few_rows_dot(
          {a(s), lda_, g_.m, g_.k, buffer, ld, nj, sums + j, kTaskColumns, true});
    }
  }

  const Gemm<T>& g_;
  const QuantizedWeights& w_;
  const bool in_place_;
  const int64_t lda_;
  float* rows_ = nullptr;  // A as floats, unless it is used where it lies
};

// Up to as many rows of A, weights are the left operand of the transposed product. More rows than
// fit half of the L2 cache are divided into blocks, each of which dequantizes all weights; panels,
// which more blocks of C share, cost less then. It is a constant, so that sums have the same order
// on every machine.
constexpr int64_t kMostTransposedRows = 256;

// What is dequantized: the matrix of a MatrixSource.
struct Rows {
  const QuantizedWeights& weights;
  int64_t k, n;
};

// Dequantizes columns of B, as rows of A. Those behind them are prefetched.
void produce_rows(const void* rows, int64_t, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                  float* to, int64_t ld) {
  const auto& [weights, k, n] = *static_cast<const Rows*>(rows);
  kernels().quantized.dequantize(rows_from(weights, k, j0), nj, p0, np, to, ld);
  for (int64_t j = j0 + nj; j < std::min(j0 + 2 * nj, n); ++j) {
    const int8_t* const row = weights.data + j * weights.row_stride + p0;
    for (int64_t p = 0; p < np; p += kLine) __builtin_prefetch(row + p, 0, 2);
  }
  keep_prefetches();
}

// Dequantizes a panel of B.
void produce_panel(const void* source, int64_t, int64_t j0, int64_t nj, int64_t p0, int64_t np,
                   float* to, int64_t ld) {
  constexpr int64_t kPiece = 4 * kMostLanes;
  alignas(64) float piece[kMostPanelColumns * kPiece];
  const auto* const from = static_cast<const Rows*>(source);
  const QuantizedRows rows = rows_from(from->weights, from->k, j0);
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
  const Size products = Size(g.batch) * g.m * g.n * g.k;
  if (g.m <= gemm::row<float>().most_dot_rows) {
    scratch.add_products(products);
    return gemm::FewRowsProduct<T>(g, weights).run(scratch);
  }
  const gemm::Rows rows{weights, g.k, g.n};
  Gemm<T> product = g;
  product.b = {};
  product.b_source = {gemm::produce_panel, &rows};
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
