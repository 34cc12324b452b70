#include <executorch/kernels/portable/internal/gemm_kernels.h>

#include <cstring>

// The bodies are written once on the compiler's vector type of kBytes and inlined into one function
// per instruction set; a vector wider than the registers would be split by the compiler.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define ET_GEMM_X86 1
#else
#define ET_GEMM_X86 0
#endif
#define ET_BODY [[gnu::always_inline]] inline

namespace torch::executor::native::internal {
namespace {

template <class Acc, int kBytes>
struct Vector {
  typedef Acc Type __attribute__((vector_size(kBytes), aligned(alignof(Acc)), may_alias));
  static constexpr int kLanes = kBytes / sizeof(Acc);
};

template <class Acc, int kBytes>
ET_BODY auto& vector_at(Acc* p) {
  return *reinterpret_cast<typename Vector<Acc, kBytes>::Type*>(p);
}
template <class Acc, int kBytes>
ET_BODY const auto& vector_at(const Acc* p) {
  return *reinterpret_cast<const typename Vector<Acc, kBytes>::Type*>(p);
}

// Two vectors wide: kRows * 2 sums, two vectors of b and one broadcast of a fill the registers.
template <class Acc, int kBytes, int kRows>
ET_BODY void tile_body(const Acc* a, const Acc* b, int64_t depth, Acc* c, int64_t ldc) {
  using V = typename Vector<Acc, kBytes>::Type;
  constexpr int kLanes = Vector<Acc, kBytes>::kLanes;
  V sum[kRows][2];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) sum[i][0] = sum[i][1] = V{};
  for (int64_t p = 0; p < depth; ++p, a += kRows, b += 2 * kLanes) {
    const V b0 = vector_at<Acc, kBytes>(b);
    const V b1 = vector_at<Acc, kBytes>(b + kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      sum[i][0] += a[i] * b0;
      sum[i][1] += a[i] * b1;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
    vector_at<Acc, kBytes>(c + i * ldc) += sum[i][0];
    vector_at<Acc, kBytes>(c + i * ldc + kLanes) += sum[i][1];
  }
}

template <class Acc, int kBytes>
ET_BODY void add_rows_body(const Acc* a, const Acc* const* b, int64_t n, Acc* y) {
  constexpr int kLanes = Vector<Acc, kBytes>::kLanes;
  const Acc *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
  const Acc a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    vector_at<Acc, kBytes>(y + j) +=
        a0 * vector_at<Acc, kBytes>(b0 + j) + a1 * vector_at<Acc, kBytes>(b1 + j) +
        a2 * vector_at<Acc, kBytes>(b2 + j) + a3 * vector_at<Acc, kBytes>(b3 + j);
  }
  for (; j < n; ++j) y[j] += a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j];
}

template <class Acc, int kBytes>
ET_BODY void dot_rows_body(const Acc* x, const Acc* const* w, int64_t n, Acc* y) {
  using V = typename Vector<Acc, kBytes>::Type;
  constexpr int kLanes = Vector<Acc, kBytes>::kLanes;
  V sum[4][2] = {};
  int64_t p = 0;
  for (; p + 2 * kLanes <= n; p += 2 * kLanes) {
    const V x0 = vector_at<Acc, kBytes>(x + p);
    const V x1 = vector_at<Acc, kBytes>(x + p + kLanes);
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      sum[r][0] += x0 * vector_at<Acc, kBytes>(w[r] + p);
      sum[r][1] += x1 * vector_at<Acc, kBytes>(w[r] + p + kLanes);
    }
  }
  for (int r = 0; r < 4; ++r) {
    const V both = sum[r][0] + sum[r][1];
    Acc total = 0;
    for (int lane = 0; lane < kLanes; ++lane) total += both[lane];
    for (int64_t q = p; q < n; ++q) total += x[q] * w[r][q];
    y[r] += total;
  }
}

#define ET_GEMM_KERNELS(suffix, attribute, bytes, n_rows)                                        \
  template <class Acc>                                                                           \
  attribute void tile_##suffix(const Acc* a, const Acc* b, int64_t depth, Acc* c, int64_t ldc) { \
    tile_body<Acc, bytes, n_rows>(a, b, depth, c, ldc);                                          \
  }                                                                                              \
  template <class Acc>                                                                           \
  attribute void add_rows_##suffix(const Acc* a, const Acc* const* b, int64_t n, Acc* y) {       \
    add_rows_body<Acc, bytes>(a, b, n, y);                                                       \
  }                                                                                              \
  template <class Acc>                                                                           \
  attribute void dot_rows_##suffix(const Acc* x, const Acc* const* w, int64_t n, Acc* y) {       \
    dot_rows_body<Acc, bytes>(x, w, n, y);                                                       \
  }                                                                                              \
  template <class Acc>                                                                           \
  constexpr GemmKernels<Acc> kKernels_##suffix = {n_rows, 2 * bytes / sizeof(Acc),               \
                                                  tile_##suffix<Acc>, add_rows_##suffix<Acc>,    \
                                                  dot_rows_##suffix<Acc>};

ET_GEMM_KERNELS(baseline, , 16, 6)
#if ET_GEMM_X86
ET_GEMM_KERNELS(avx2, [[gnu::target("avx2,fma")]], 32, 6)
ET_GEMM_KERNELS(avx512, [[gnu::target("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")]], 64, 12)
#endif

}  // namespace

template <class Acc>
const GemmKernels<Acc>& gemm_kernels() {
  return kKernels_baseline<Acc>;
}

#if ET_GEMM_X86
namespace {
template <class Acc>
const GemmKernels<Acc>& floating_kernels() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    return kKernels_avx512<Acc>;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kKernels_avx2<Acc>;
  return kKernels_baseline<Acc>;
}
}  // namespace

template <>
const GemmKernels<float>& gemm_kernels<float>() {
  return floating_kernels<float>();
}
template <>
const GemmKernels<double>& gemm_kernels<double>() {
  return floating_kernels<double>();
}
#else
template const GemmKernels<float>& gemm_kernels<float>();
template const GemmKernels<double>& gemm_kernels<double>();
#endif
template const GemmKernels<uint32_t>& gemm_kernels<uint32_t>();
template const GemmKernels<uint64_t>& gemm_kernels<uint64_t>();

}  // namespace torch::executor::native::internal
