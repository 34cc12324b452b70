#include <executorch/cpu/gemm/blocks.h>
#include <executorch/cpu/loop_reads.h>

namespace executorch::cpu {
namespace gemm {
namespace {

// Columns per task of a product of few rows, and rows of their sums on the stack.
constexpr int64_t kFewColumns = 192;
// A smaller B may be in a cache.
constexpr int64_t kFetchedMatrix = 128 * 1024;

// To those who wait for the loop over chunks of columns.
template <class T>
void announce_reads(const Gemm<T>& g) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  if (g.batch > 1 || g.n <= kFewColumns || g.k * g.n * kSize < kFetchedMatrix) return;
  if (g.b.row_stride == 1) {
    const int64_t column = g.b.col_stride * kSize;
    will_read({g.b.data, kFewColumns * column, kFewColumns, g.k * kSize, column});
  } else {
    will_read({g.b.data, kFewColumns * kSize, g.k, kFewColumns * kSize, g.b.row_stride * kSize});
  }
}

// Few rows read B once, where it lies: columns or rows of B must be contiguous.
template <class T>
bool run_few_rows(const Gemm<T>& g, Scratch& scratch) {
  const Scratch::Frame frame(scratch);
  const StorageKernels<T>& kernels = storage_kernels<T>();
  const bool in_place = std::is_same_v<T, float> && g.a.col_stride == 1;
  const int64_t lda = in_place ? g.a.row_stride : round_up(g.k, kMostLanes);
  float* const rows = in_place ? nullptr : scratch.array<float>(Size(g.batch) * g.m * lda);
  if (!in_place && rows == nullptr) return false;
  for (int64_t s = 0; s < g.batch && !in_place; ++s) {
    Matrix<const T> a = g.a;
    a.data += s * g.a_batch;
    convert_rows(a, g.m, g.k, rows + s * g.m * lda, lda);
  }
  const int64_t n_chunks = ceil_div(g.n, kFewColumns);
  const int64_t work = kFewColumns * g.k * std::max<int64_t>(g.m / 2, 1);
  announce_reads(g);
  parallel_for(g.batch * n_chunks, ceil_div(kGrainWork / 4, work), [&](int64_t begin, int64_t end) {
    alignas(64) float sums[kFewDots * kFewColumns];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t s = i / n_chunks, j0 = i % n_chunks * kFewColumns;
      FewRows<T> f;
      if constexpr (std::is_same_v<T, float>) f.a = g.a.data + s * g.a_batch;
      if (!in_place) f.a = rows + s * g.m * lda;
      f.lda = lda;
      f.m = g.m;
      f.k = g.k;
      f.n = std::min(kFewColumns, g.n - j0);
      f.b = element(g.b, 0, j0) + s * g.b_batch;
      f.sums = sums;
      f.ld_sums = kFewColumns;
      if (g.b.row_stride == 1 && (g.b.col_stride != 1 || g.m > kFewRows)) {
        f.ldb = g.b.col_stride;
        kernels.few_dots(f);
      } else {
        f.ldb = g.b.row_stride;
        kernels.few_rows(f);
      }
      kernels.finish(g, s, sums, kFewColumns, 0, g.m, j0, f.n);
    }
  });
  return true;
}

}  // namespace
}  // namespace gemm

template <class T>
bool Gemm<T>::run(Scratch& scratch) const {
  if (m <= 0 || n <= 0 || batch <= 0) return true;
  if (!is_countable(batch, m, n, k)) return false;
  const bool in_memory = a_source.produce == nullptr && b_source.produce == nullptr;
  if (in_memory && m > 1 && n < m && n <= gemm::kFewRows)
    return gemm::transposed(*this).run(scratch);
  if (in_memory && m > 1 && c.row_stride == 1 && c.col_stride != 1 && n > 1 && m > gemm::kFewRows) {
    return gemm::transposed(*this).run(scratch);  // rows of the result become contiguous
  }
  if constexpr (gemm::kHasStorageKernels<T>) {
    constexpr int64_t kRows = std::is_same_v<T, float> ? gemm::kFewFloatRows : gemm::kFewRows;
    const bool few =
        (b.row_stride == 1 && m <= gemm::kFewDots) || (b.col_stride == 1 && m <= kRows);
    if (in_memory && few && k > 0) return gemm::run_few_rows(*this, scratch);
  }
  return gemm::Blocks<T>(*this).run(scratch);
}

template struct Gemm<uint8_t>;
template struct Gemm<int8_t>;
template struct Gemm<int16_t>;
template struct Gemm<int32_t>;
template struct Gemm<int64_t>;
template struct Gemm<F16>;
template struct Gemm<BF16>;
template struct Gemm<float>;
template struct Gemm<double>;

}  // namespace executorch::cpu
