#include <executorch/cpu/gemm/int8_blocks.h>
#include <executorch/cpu/nn/conv_sparse.h>
#include <executorch/cpu/nn/int8_conv.h>

#include <optional>

namespace executorch::cpu {
namespace {

/// Computes images and groups one after another, visiting only the pixels that taps read.
class Sparse {
 public:
  Sparse(const Int8Conv& c, const ValidTap* const (&taps)[2], const int64_t (&n_taps)[2])
      : c_(c), taps_{taps[0], taps[1]}, n_taps_{n_taps[0], n_taps[1]} {}

  /// Computes the sums of one group of one image. Pixels outside of the image count as the zero
  /// point, so that the functions that finish products can be used.
  void run(const Int8Gemm& g, int64_t image, int64_t group, int32_t* sums) const {
    const ConvAxis &y = c_.axis[0], &x = c_.axis[1];
    const auto zero = static_cast<uint32_t>(g.rows[image / c_.product.rows_share].zero_point);
    const int64_t pixels = y.out * x.out;
    for (int64_t i = 0; i < pixels; ++i) {
      for (int64_t o = 0; o < g.n; ++o) {
        sums[i * g.n + o] = static_cast<int32_t>(zero * static_cast<uint32_t>(g.sums[o]));
      }
    }
    const int8_t* const a = g.a + image * y.in * x.in * g.lda + group * c_.group_in;
    for (int64_t i = 0; i < n_taps_[0]; ++i) {
      for (int64_t j = 0; j < n_taps_[1]; ++j) add(g, a, taps_[0][i], taps_[1][j], zero, sums);
    }
    finish(g, image * pixels, pixels, sums);
  }

 private:
  void add(const Int8Gemm& g, const int8_t* a, const ValidTap& ty, const ValidTap& tx,
           uint32_t zero, int32_t* sums) const {
    const ConvAxis &y = c_.axis[0], &x = c_.axis[1];
    const uint8_t* const weights =
        g.b.data + (ty.k * x.kernel + tx.k) * c_.group_in * c_.filter_step;
    for (int64_t sy = ty.steps.begin; sy < ty.steps.end; ++sy) {
      const int64_t at_y = sy * y.stride + ty.k * y.dilation - y.padding;
      for (int64_t sx = tx.steps.begin; sx < tx.steps.end; ++sx) {
        const int64_t at_x = sx * x.stride + tx.k * x.dilation - x.padding;
        const int64_t in = c_.transposed ? sy * x.in + sx : at_y * x.in + at_x;
        const int64_t out = c_.transposed ? at_y * x.out + at_x : sy * x.out + sx;
        add_pixel(g, a + in * g.lda, weights, zero, sums + out * g.n);
      }
    }
  }

  void add_pixel(const Int8Gemm& g, const int8_t* a, const uint8_t* weights, uint32_t zero,
                 int32_t* sums) const {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(a);
    for (int64_t o = 0; o < g.n; ++o, weights += g.b.row_bytes) {
      auto sum = static_cast<uint32_t>(sums[o]);
      for (int64_t i = 0; i < c_.group_in; ++i) {
        const int q = g.unsigned_a ? bytes[i] : a[i];
        const auto w = static_cast<int8_t>(weights[i * c_.filter_step]);
        sum += (static_cast<uint32_t>(q) - zero) * static_cast<uint32_t>(w);
      }
      sums[o] = static_cast<int32_t>(sum);
    }
  }

  static void finish(const Int8Gemm& g, int64_t first, int64_t rows, const int32_t* sums) {
    const int8::Row& row = int8::kernels().rows[int8::kBytes];
    const int8::ByteFormat format(g);
    for (int64_t j = 0; j < g.n; j += row.columns) {
      const int64_t n = std::min<int64_t>(row.columns, g.n - j);
      if (int8::gives_bytes(g)) {
        const int8::ColumnRequantization columns(g, 0, j, n);
        int8::kernels().finish_bytes(sums + j, g.n, rows,
                                     int8::byte_results(g, format, columns, first, j, n));
      } else {
        const int8::ColumnDequantization columns(g, j, n, row.columns);
        row.finish({&g, &columns, 0, first, rows, j, n, sums + j, g.n});
      }
    }
  }

  const Int8Conv& c_;
  const ValidTap* const taps_[2];
  const int64_t n_taps_[2];
};

}  // namespace

bool Int8Conv::run_sparse(Scratch& scratch) const {
  ValidTap* taps[2];
  int64_t n_taps[2];
  for (int d = 0; d < 2; ++d) {
    taps[d] = scratch.array<ValidTap>(axis[d].kernel);
    if (taps[d] == nullptr) return false;
    n_taps[d] = list_valid_taps(axis[d], transposed, taps[d]);
  }
  const int64_t planes = batch * groups;
  // With fewer planes than threads, sums for all threads would need more memory than the result.
  std::optional<UsePool> alone;
  if (planes < static_cast<int64_t>(loop_threads())) alone.emplace(nullptr);
  const ThreadScratch<int32_t> buffers(
      scratch, Size(axis[0].out) * axis[1].out * group_out + int8::kMostColumns);
  if (!buffers) return false;
  const Sparse sparse(*this, {taps[0], taps[1]}, n_taps);
  buffers.parallel_for(planes, 1, [&](int64_t begin, int64_t end, int32_t* sums) {
    for (int64_t i = begin; i < end; ++i) {
      sparse.run(of_group(i % groups), i / groups, i % groups, sums);
    }
  });
  return true;
}

}  // namespace executorch::cpu
