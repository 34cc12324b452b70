#include <executorch/cpu/gemm/few_rows.h>
#include <executorch/cpu/gemm/split_blocks.h>
#include <executorch/cpu/gemm/transposed_blocks.h>
#include <executorch/cpu/loop_reads.h>

namespace executorch::cpu {
namespace gemm {
namespace {

// A product of few rows of A. It reads B once, where it lies; columns or rows of B must be
// contiguous.
template <class T>
class FewRowsProduct {
 public:
  FewRowsProduct(const Gemm<T>& g, Scratch& scratch)
      : g_(g), row_(row<T>()), scratch_(scratch), a_(g) {}

  bool run() {
    const Scratch::Frame frame(scratch_);
    if (!a_.convert(scratch_)) return false;
    const bool by_columns = g_.b.row_stride == 1 && (g_.b.col_stride != 1 || g_.m > kMostAxpyRows);
    if (by_columns || !run_slices()) run_columns(by_columns);
    return true;
  }

 private:
  static constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  static constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  // There are at most kSlices K-slices, of at least kSliceBytes bytes each and of a multiple of
  // kSliceRows rows. These are constants, so no sum depends on the number of threads.
  static constexpr int64_t kSlices = 16, kSliceBytes = 64 * 1024, kSliceRows = 16;

  // The microkernel's arguments for columns [j0, j0 + n) of batch entry s.
  FewRows<T> columns(int64_t s, int64_t j0, int64_t n) const {
    FewRows<T> f;
    f.a = a_.of(s);
    f.lda = a_.ld();
    f.m = g_.m;
    f.k = g_.k;
    f.n = n;
    f.b = element(g_.b, 0, j0) + s * g_.b_batch;
    return f;
  }

  bool is_fetched() const {
    return g_.batch == 1 && g_.n > kTaskColumns && g_.k * g_.n >= kLeastReads / kSize;
  }

  /// The rows of B in a K-slice, where rows of B are contiguous.
  int64_t slice_depth() const {
    const int64_t most = std::min(kSlices, g_.k * g_.n / (kSliceBytes / kSize));
    return most < 2 || g_.k <= kSliceRows ? g_.k : round_up(ceil_div(g_.k, most), kSliceRows);
  }

  // For a large B whose rows are contiguous. Threads divide K between them, because memory
  // bandwidth is half as high again when each thread reads whole rows, one after the other, as when
  // it reads a few columns of every row.
  bool run_slices() {
    const int64_t m = g_.m, n = g_.n, depth = slice_depth(), slices = ceil_div(g_.k, depth);
    if (slices == 1) return false;
    // If there are more threads than slices, they divide the columns as well.
    const int64_t wanted =
        std::min(ceil_div(Division::n_threads(), g_.batch * slices), ceil_div(n, kTaskColumns));
    // The longer the part of a row that is read at once, the higher is memory bandwidth. The sums of
    // all rows of A take an eighth of the L2 cache.
    const int64_t most = std::max(machine().l2 / 8 / (m * kFloat), kTaskColumns);
    const int64_t chunk = ceil_div(n, std::max(wanted, ceil_div(n, most)));
    const int64_t n_chunks = ceil_div(n, chunk);
    float* const sums = scratch_.array<float>(Size(g_.batch) * slices * m * n);
    if (sums == nullptr) return false;
    if (is_fetched() && n_chunks == 1) {
      const int64_t row = g_.b.row_stride * kSize;
      will_read({g_.b.data, depth * row, depth, n * kSize, row});
    }
    parallel_for(g_.batch * n_chunks * slices, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t slice = i % slices, j0 = i / slices % n_chunks * chunk;
        const int64_t s = i / slices / n_chunks, p0 = slice * depth;
        FewRows<T> f = columns(s, j0, std::min(chunk, n - j0));
        f.a += p0;
        f.b += p0 * g_.b.row_stride;
        f.ldb = g_.b.row_stride;
        f.k = std::max<int64_t>(std::min(depth, g_.k - p0), 0);
        f.sums = sums + (s * slices + slice) * m * n + j0;
        f.ld_sums = n;
        row_.few_rows_axpy(f);
      }
    });
    parallel_for(g_.batch * n, kGrainWork / (slices * m), [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t s = begin / n, j0 = begin % n, nj = std::min(end - begin, n - j0);
        float* const first = sums + s * slices * m * n;
        for (int64_t i = 0; i < m; ++i) kernels().add_slices(first + i * n + j0, slices, m * n, nj);
        row_.finish({&g_, s, first + j0, n, 0, m, j0, nj});
        begin += nj;
      }
    });
    return true;
  }

  void run_columns(bool by_columns) {
    const int64_t chunk =
        Division::even_columns(g_.batch * g_.n, kMostLanes, kLeastTaskColumns, kTaskColumns);
    const int64_t n_chunks = ceil_div(g_.n, chunk);
    const int64_t work = chunk * g_.k * std::max<int64_t>(g_.m / 2, 1);
    if (is_fetched() && by_columns) {
      const int64_t column = g_.b.col_stride * kSize;
      will_read({g_.b.data, chunk * column, chunk, g_.k * kSize, column});
    }
    parallel_for(g_.batch * n_chunks, ceil_div(kGrainWork / 4, work),
                 [&](int64_t begin, int64_t end) {
                   alignas(64) float sums[kMostDotRows * kTaskColumns];
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t s = i / n_chunks, j0 = i % n_chunks * chunk;
                     FewRows<T> f = columns(s, j0, std::min(chunk, g_.n - j0));
                     f.sums = sums;
                     f.ld_sums = kTaskColumns;
                     f.ldb = by_columns ? g_.b.col_stride : g_.b.row_stride;
                     by_columns ? row_.few_rows_dot(f) : row_.few_rows_axpy(f);
                     row_.finish({&g_, s, sums, kTaskColumns, 0, g_.m, j0, f.n});
                   }
                 });
  }

  const Gemm<T>& g_;
  const Microkernels<Types<T>>& row_;
  Scratch& scratch_;
  FloatRows<T> a_;
};

}  // namespace
}  // namespace gemm

template <class T>
bool Gemm<T>::run(Scratch& scratch) const {
  if (m <= 0 || n <= 0 || batch <= 0) return true;
  if (!is_countable(batch, m, n, k)) return false;
  const bool in_memory = a_source.produce == nullptr && b_source.produce == nullptr;
  // A product with few columns is computed as its transpose, which has few rows. So is one whose
  // result has contiguous columns, so that rows become contiguous.
  const bool by_columns =
      c.row_stride == 1 && c.col_stride != 1 && n > 1 && m > gemm::kMostAxpyRows;
  if (in_memory && m > 1 && ((n < m && n <= gemm::kMostAxpyRows) || by_columns)) {
    return gemm::transposed(*this).run(scratch);
  }
  scratch.add_products(Size(batch) * m * n * k);
  if constexpr (gemm::kIsStoredFloat<T>) {
    if (gemm::SplitBlocks<T>::pays(*this)) return gemm::SplitBlocks<T>(*this).run(scratch);
    const bool few = (b.row_stride == 1 && m <= gemm::row<T>().most_dot_rows) ||
                     (b.col_stride == 1 && m <= gemm::kMostAxpyRows);
    if (in_memory && few && k > 0) return gemm::FewRowsProduct<T>(*this, scratch).run();
    if (gemm::TransposedBlocks<T>::pays(*this)) {
      return gemm::TransposedBlocks<T>::run(*this, scratch);
    }
  }
  return gemm::Blocks<T>(*this).run(scratch);
}

#define ET_ROW(T, name) template struct Gemm<T>;
ET_OPERANDS(ET_ROW)
#undef ET_ROW

}  // namespace executorch::cpu
