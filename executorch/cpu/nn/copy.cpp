#include <executorch/cpu/nn/copy.h>

#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "executorch/cpu/nn/copy.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h

#include <executorch/cpu/nn/transpose-inl.h>

#ifndef ET_COPY_BLOCK  // once, not per target
#define ET_COPY_BLOCK
namespace executorch::cpu {
namespace {

/// The size of the blocks that are transposed at a time, which fit an L1 cache: a column has 8
/// cache lines of dst, a row 4 cache lines of src.
template <class T>
constexpr int64_t kBlockRows = sizeof(T) < 4 ? 128 : 512 / static_cast<int64_t>(sizeof(T));
template <class T>
constexpr int64_t kBlockColumns = 256 / (sizeof(T) < 2 ? 2 : static_cast<int64_t>(sizeof(T)));

}  // namespace
}  // namespace executorch::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace executorch::cpu::HWY_NAMESPACE {

/// dst[c * dst_row + r] = src[r * src_row + c] for r < rows, c < columns, by way of a copy of the
/// block in the first-level cache: rows of src that lie a power of two apart would evict each other
/// there before their lines are used up. kPast: stores go past the caches; dst and its rows begin
/// with cache lines.
template <bool kPast, class T>
void TransposeBlock(const T* HWY_RESTRICT src, int64_t src_row, int64_t rows, int64_t columns,
                    T* HWY_RESTRICT dst, int64_t dst_row) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  constexpr int64_t kColumns = static_cast<int64_t>(kTransposedColumns<hn::ScalableTag<T>>);
  constexpr int64_t kPitch = kBlockColumns<T> + 16 / static_cast<int64_t>(sizeof(T));
  HWY_ALIGN T block[kBlockRows<T> * kPitch];
  for (int64_t r = 0; r < rows; ++r) {
    memcpy(block + r * kPitch, src + r * src_row, static_cast<size_t>(columns) * sizeof(T));
  }
  const int64_t whole_rows = rows / kLanes * kLanes, whole_columns = columns / kColumns * kColumns;
  for (int64_t c = 0; c < whole_columns; c += kColumns) {
    for (int64_t r = 0; r < whole_rows; r += kLanes) {
      TransposeColumns<kPast>(d, block + r * kPitch + c, kPitch, dst + c * dst_row + r, dst_row);
    }
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = c < whole_columns ? whole_rows : 0; r < rows; ++r) {
      dst[c * dst_row + r] = block[r * kPitch + c];
    }
  }
}

/// dst[i * kPlanes + p] = src[p * plane + i], i < n.
template <int kPlanes, class T>
void WeavePlanes(const T* HWY_RESTRICT src, int64_t plane, int64_t n, T* HWY_RESTRICT dst) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto a = hn::LoadU(d, src + i), b = hn::LoadU(d, src + plane + i);
    if constexpr (kPlanes == 2) {
      hn::StoreInterleaved2(a, b, d, dst + i * 2);
    } else {
      hn::StoreInterleaved3(a, b, hn::LoadU(d, src + 2 * plane + i), d, dst + i * 3);
    }
  }
  for (; i < n; ++i) {
    for (int p = 0; p < kPlanes; ++p) dst[i * kPlanes + p] = src[p * plane + i];
  }
}
#define ET_WEAVE(name, T)                                                                    \
  void name(const void* src, int64_t plane, int64_t n_planes, int64_t n, void* dst) {        \
    const auto* from = static_cast<const T*>(src);                                           \
    auto* to = static_cast<T*>(dst);                                                         \
    n_planes == 2 ? WeavePlanes<2>(from, plane, n, to) : WeavePlanes<3>(from, plane, n, to); \
  }
ET_WEAVE(Weave8, uint8_t)
ET_WEAVE(Weave16, uint16_t)
ET_WEAVE(Weave32, uint32_t)
ET_WEAVE(Weave64, uint64_t)
#undef ET_WEAVE

/// dst[i] = src[i * kStep], i < n.
template <int kStep, class T>
void GatherEvery(const T* HWY_RESTRICT src, int64_t n, T* HWY_RESTRICT dst) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  // A load of several vectors ends before the element that follows them. Highway reverses no bytes.
  constexpr bool kVectors = kStep > 0 || sizeof(T) > 1;
  for (; kVectors && i + lanes < n; i += lanes) {
    const T* const from = src + i * kStep;
    hn::Vec<decltype(d)> v, other;
    if constexpr (!kVectors) {
      break;
    } else if constexpr (kStep == -1) {
      v = hn::Reverse(d, hn::LoadU(d, from - (lanes - 1)));
    } else if constexpr (kStep == 2) {
      hn::LoadInterleaved2(d, from, v, other);
    } else if constexpr (kStep == 3) {
      hn::LoadInterleaved3(d, from, v, other, other);
    } else {
      hn::LoadInterleaved4(d, from, v, other, other, other);
    }
    hn::StoreU(v, d, dst + i);
  }
  for (; i < n; ++i) dst[i] = src[i * kStep];
}
#define ET_GATHER(name, T)                                     \
  void name(const void* src, int step, int64_t n, void* dst) { \
    const auto* from = static_cast<const T*>(src);             \
    auto* to = static_cast<T*>(dst);                           \
    step == -1  ? GatherEvery<-1>(from, n, to)                 \
    : step == 2 ? GatherEvery<2>(from, n, to)                  \
    : step == 3 ? GatherEvery<3>(from, n, to)                  \
                : GatherEvery<4>(from, n, to);                 \
  }
ET_GATHER(Gather8, uint8_t)
ET_GATHER(Gather16, uint16_t)
ET_GATHER(Gather32, uint32_t)
ET_GATHER(Gather64, uint64_t)
#undef ET_GATHER

#define ET_TRANSPOSE(name, T)                                                           \
  void name(const void* src, int64_t src_row, int64_t rows, int64_t columns, void* dst, \
            int64_t dst_row, bool past) {                                               \
    const auto* from = static_cast<const T*>(src);                                      \
    auto* to = static_cast<T*>(dst);                                                    \
    if (past) return TransposeBlock<true>(from, src_row, rows, columns, to, dst_row);   \
    TransposeBlock<false>(from, src_row, rows, columns, to, dst_row);                   \
  }
ET_TRANSPOSE(Transpose8, uint8_t)
ET_TRANSPOSE(Transpose16, uint16_t)
ET_TRANSPOSE(Transpose32, uint32_t)
ET_TRANSPOSE(Transpose64, uint64_t)
#undef ET_TRANSPOSE

}  // namespace executorch::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace executorch::cpu {
namespace {

HWY_EXPORT(Transpose8);
HWY_EXPORT(Transpose16);
HWY_EXPORT(Transpose32);
HWY_EXPORT(Transpose64);
HWY_EXPORT(Weave8);
HWY_EXPORT(Weave16);
HWY_EXPORT(Weave32);
HWY_EXPORT(Weave64);
HWY_EXPORT(Gather8);
HWY_EXPORT(Gather16);
HWY_EXPORT(Gather32);
HWY_EXPORT(Gather64);

constexpr int64_t kGrainBytes = 65536;
// The most dims of at least two elements; dst then has 2^40 elements.
constexpr int kMaxDims = 40;

struct alignas(8) Bits128 {
  uint64_t word[2];
};

/// Iterates over the positions in some dims, in order, with their offsets.
class Position {
 public:
  Position(const Copy::Dim* dims, int n, int64_t at) : dims_(dims), n_(n) {
    for (int d = n - 1; d >= 0; --d) {
      index_[d] = at % dims[d].size;
      at /= dims[d].size;
      src += index_[d] * dims[d].src;
      dst += index_[d] * dims[d].dst;
    }
  }
  void next() {
    for (int d = n_ - 1; d >= 0; --d) {
      src += dims_[d].src;
      dst += dims_[d].dst;
      if (++index_[d] < dims_[d].size) return;
      src -= dims_[d].src * dims_[d].size;
      dst -= dims_[d].dst * dims_[d].size;
      index_[d] = 0;
    }
  }
  int64_t src = 0, dst = 0;

 private:
  const Copy::Dim* dims_;
  int n_;
  int64_t index_[kMaxDims];
};

/// Calls F8, F16, F32 or F64 of the machine's instruction set, by the size of T <= 8.
#define ET_BY_SIZE(T, F, ...)                 \
  if constexpr (sizeof(T) == 1) {             \
    HWY_DYNAMIC_DISPATCH(F##8)(__VA_ARGS__);  \
  } else if constexpr (sizeof(T) == 2) {      \
    HWY_DYNAMIC_DISPATCH(F##16)(__VA_ARGS__); \
  } else if constexpr (sizeof(T) == 4) {      \
    HWY_DYNAMIC_DISPATCH(F##32)(__VA_ARGS__); \
  } else if constexpr (sizeof(T) == 8) {      \
    HWY_DYNAMIC_DISPATCH(F##64)(__VA_ARGS__); \
  }

template <class T>
void gather_run(const T* src, int64_t src_step, T* dst, int64_t n) {
  if (src_step == 0) {
    std::fill_n(dst, n, *src);
  } else if (sizeof(T) <= 8 && n >= 8 && (src_step == -1 || (src_step >= 2 && src_step <= 4))) {
    ET_BY_SIZE(T, Gather, src, static_cast<int>(src_step), n, dst)
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = src[i * src_step];
  }
}

template <class T>
void copy_run(const T* src, int64_t src_step, T* dst, int64_t dst_step, int64_t n, bool past) {
  if (past && dst_step == 1 && src_step == 1) {
    stream(src, dst, static_cast<size_t>(n) * sizeof(T));
  } else if (past && dst_step == 1) {
    write(dst, n, true,
          [&](int64_t i, int64_t m, T* to) { gather_run(src + i * src_step, src_step, to, m); });
  } else if (dst_step == 1 && src_step == 1) {
    // Not memcpy, because a damaged program may have planned both into the same bytes.
    memmove(dst, src, static_cast<size_t>(n) * sizeof(T));
  } else if (dst_step == 1) {
    gather_run(src, src_step, dst, n);
  } else if (dst_step == 2) {
    for (int64_t i = 0; i < n; ++i) dst[2 * i] = src[i * src_step];
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i * dst_step] = src[i * src_step];
  }
}

template <class T>
void transpose(const T* src, int64_t src_row, int64_t rows, int64_t columns, T* dst,
               int64_t dst_row, bool past) {
  ET_BY_SIZE(T, Transpose, src, src_row, rows, columns, dst, dst_row, past)
}

/// Whether the copied elements exceed the caches.
template <class T>
bool overflows(const Copy& a) {
  int64_t read = sizeof(T), written = sizeof(T);
  for (int d = 0; d < a.n_dims; ++d) {
    written *= a.dims[d].size;
    if (a.dims[d].src != 0) read *= a.dims[d].size;
  }
  return overflows_caches(read + written);
}

/// The number of elements from the last cache line boundary to p.
template <class T>
int64_t past_line(const T* p) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) % kLine / sizeof(T));
}

/// Whether all rows of dst have the same offset from a cache line's boundary.
template <class T>
bool rows_lie_alike(const Copy& a) {
  constexpr int64_t kPerLine = kLine / static_cast<int64_t>(sizeof(T));
  for (int d = 0; d + 1 < a.n_dims; ++d) {
    if (a.dims[d].dst % kPerLine != 0) return false;
  }
  return true;
}

/// Copies where the last dim has stride 1 in dst and another dim, `across`, has stride 1 in src:
/// planes of these two dims are transposed in blocks.
template <class T>
void copy_planes(const Copy& a, int across) {
  constexpr int64_t kRows = kBlockRows<T>, kColumns = kBlockColumns<T>;
  const Copy::Dim row = a.dims[a.n_dims - 1], column = a.dims[across];
  Copy::Dim outer[kMaxDims];
  int n_outer = 0;
  int64_t planes = 1;
  for (int d = 0; d < a.n_dims - 1; ++d) {
    if (d == across) continue;
    planes *= a.dims[d].size;
    outer[n_outer++] = a.dims[d];
  }
  T* dst = static_cast<T*>(a.dst);
  const bool past = overflows<T>(a) && rows_lie_alike<T>(a);
  const int64_t early = past ? past_line(dst) : 0;  // blocks of rows begin with cache lines
  const int64_t wide = (row.size + early + kRows - 1) / kRows;
  const int64_t high = (column.size + kColumns - 1) / kColumns;
  // The shorter side is the inner loop, so that few pages are visited again and again.
  const bool columns_first = column.size < row.size;
  const int64_t block_bytes =
      std::min(row.size, kRows) * std::min(column.size, kColumns) * static_cast<int64_t>(sizeof(T));
  const T* src = static_cast<const T*>(a.src);
  const auto blocks = [&](int64_t i, int64_t end) {
    for (; i < end; ++i) {
      const Position plane(outer, n_outer, i / (high * wide));
      const int64_t c = (columns_first ? i % high : i / wide % high) * kColumns;
      const int64_t block = (columns_first ? i / high % wide : i % wide) * kRows - early;
      const int64_t r = std::max<int64_t>(block, 0);
      transpose(src + plane.src + r * row.src + c, row.src, std::min(block + kRows, row.size) - r,
                std::min(kColumns, column.size - c), dst + plane.dst + c * column.dst + r,
                column.dst, past && r == block);
    }
    if (past) end_stream();
  };
  parallel_for(planes * high * wide, std::max<int64_t>(kGrainBytes / block_bytes, 1), blocks);
}

template <class T>
void copy_rows(const Copy& a) {
  const T* src = static_cast<const T*>(a.src);
  T* dst = static_cast<T*>(a.dst);
  const Copy::Dim row = a.n_dims > 0 ? a.dims[a.n_dims - 1] : Copy::Dim{1, 1, 1};
  const int64_t row_bytes = row.size * static_cast<int64_t>(sizeof(T));
  int64_t rows = 1;
  for (int d = 0; d < a.n_dims - 1; ++d) rows *= a.dims[d].size;
  // In short rows too many cache lines are at the ends, which cannot be written past the caches.
  const bool past = row_bytes >= 8 * kLine && overflows<T>(a);
  if (rows == 1) {
    parallel_for(row.size, kGrainBytes / static_cast<int64_t>(sizeof(T)),
                 [&](int64_t begin, int64_t end) {
                   copy_run(src + begin * row.src, row.src, dst + begin * row.dst, row.dst,
                            end - begin, past);
                   if (past) end_stream();
                 });
    return;
  }
  parallel_for(rows, std::max<int64_t>(kGrainBytes / row_bytes, 1),
               [&](int64_t begin, int64_t end) {
                 Position at(a.dims, a.n_dims - 1, begin);
                 for (int64_t i = begin; i < end; ++i, at.next()) {
                   copy_run(src + at.src, row.src, dst + at.dst, row.dst, row.size, past);
                 }
                 if (past) end_stream();
               });
}

template <class T>
void weave(const T* src, int64_t plane, int64_t n_planes, int64_t n, T* dst) {
  ET_BY_SIZE(T, Weave, src, plane, n_planes, n, dst)
}

/// Interleaves two or three planes, mostly of images, along the last dim of a dense dst.
template <class T>
bool copy_woven(const Copy& a) {
  if (a.n_dims < 2 || sizeof(T) > 8 || overflows<T>(a)) return false;
  const Copy::Dim &run = a.dims[a.n_dims - 2], &planes = a.dims[a.n_dims - 1];
  constexpr int64_t kShort = 256;  // not worth a loop over threads for each image
  if ((planes.size != 2 && planes.size != 3) || planes.dst != 1 || run.dst != planes.size ||
      run.src != 1 || run.size < kShort) {
    return false;
  }
  int64_t images = 1;
  for (int d = 0; d < a.n_dims - 2; ++d) images *= a.dims[d].size;
  Position at(a.dims, a.n_dims - 2, 0);
  for (int64_t i = 0; i < images; ++i, at.next()) {
    const T* src = static_cast<const T*>(a.src) + at.src;
    T* dst = static_cast<T*>(a.dst) + at.dst;
    const int64_t grain = kGrainBytes / 4 / static_cast<int64_t>(sizeof(T));
    parallel_for(run.size, grain, [&](int64_t begin, int64_t end) {
      weave(src + begin, planes.src, planes.size, end - begin, dst + begin * planes.size);
    });
  }
  return true;
}

template <class T>
void copy_elements(const Copy& a) {
  if (copy_woven<T>(a)) return;
  const Copy::Dim& row = a.dims[a.n_dims - 1];
  int across = -1;
  for (int d = 0; d < a.n_dims - 1; ++d) {
    if (a.dims[d].src == 1) across = d;
  }
  constexpr int64_t kNarrow = 4;
  if (sizeof(T) <= 8 && a.n_dims > 1 && across >= 0 && row.dst == 1 && row.src > 1 &&
      row.size >= kNarrow && a.dims[across].size >= kNarrow) {
    return copy_planes<T>(a, across);
  }
  if (a.n_dims > 1 && across >= 0 && row.size < kNarrow && row.src != 1) {
    // To interleave a few planes, copy long runs of src.
    Copy::Dim dims[kMaxDims];
    std::copy_n(a.dims, a.n_dims, dims);
    std::swap(dims[across], dims[a.n_dims - 1]);
    Copy swapped = a;
    swapped.dims = dims;
    return copy_rows<T>(swapped);
  }
  copy_rows<T>(a);
}

}  // namespace

void Copy::run() const {
  Dim kept[kMaxDims];
  Copy a = *this;
  a.dims = kept;
  a.n_dims = 0;
  for (int d = 0; d < n_dims; ++d) {
    if (dims[d].size <= 0) return;
  }
  for (int d = 0; d < n_dims; ++d) {
    if (dims[d].size > 1) kept[a.n_dims++] = dims[d];
  }
  if (a.n_dims == 0) {
    memmove(dst, src, element_size);
    return;
  }
  switch (element_size) {
    case 1:
      return copy_elements<uint8_t>(a);
    case 2:
      return copy_elements<uint16_t>(a);
    case 4:
      return copy_elements<uint32_t>(a);
    case 8:
      return copy_elements<uint64_t>(a);
    default:
      return copy_elements<Bits128>(a);
  }
}

}  // namespace executorch::cpu
#endif  // HWY_ONCE
