#include <executorch/cpu/gemm/int8.h>
#include <executorch/cpu/gemm/int8_kernels.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

namespace executorch::cpu {
namespace {

using int8::kBlock;
using int8::kColumns;
using int8::kRows;

// A block of C: its rows of A stay in the first-level cache while the columns' weights pass.
constexpr int64_t kBlockColumns = 64;
constexpr int64_t kMostBlockRows = 64;
constexpr int64_t kPackedBytes = 24 * 1024;

int64_t round_up(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}
float to_float(BF16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

int nibble(const uint8_t* row, int64_t p) {
  return (p % 2 == 0 ? row[p / 2] & 15 : row[p / 2] >> 4) - 8;
}

/// Grows, and is kept for the thread's next product.
struct Scratch {
  std::vector<uint8_t> packed;
  std::vector<float> sums;  // or int32
};
Scratch& scratch() {
  thread_local Scratch instance;
  return instance;
}

void pack_row(const int8_t* from, int64_t k, bool nibbles, uint8_t* to, int64_t bytes) {
  if (!nibbles) {
    for (int64_t p = 0; p < k; ++p) to[p] = static_cast<uint8_t>(from[p] ^ 0x80);
    std::memset(to + k, 0, static_cast<size_t>(bytes - k));
    return;
  }
  for (int64_t p = 0; p < bytes; p += kBlock) {
    const int64_t n = std::min(kBlock, k - p);
    if (n < kBlock) std::memset(to + p, 0, kBlock);
    for (int64_t q = 0; q < n / 2; ++q) {
      to[p + q] = static_cast<uint8_t>(from[p + 2 * q] ^ 0x80);
      to[p + q + 64] = static_cast<uint8_t>(from[p + 2 * q + 1] ^ 0x80);
    }
    if (n % 2 != 0) to[p + n / 2] = static_cast<uint8_t>(from[p + n - 1] ^ 0x80);
  }
}

uint16_t half_of(float x) {
  // By the magic-number method: the sum with a power of two rounds to the unit wanted.
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x38800000) {
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F000000));
  }
  const uint32_t odd = magnitude >> 13 & 1;
  return static_cast<uint16_t>(sign | ((magnitude + 0xFFF + odd - (112u << 23)) >> 13));
}

uint16_t bfloat16_of(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// One row of a block: from sums of (a + 128) * b to results. `sums` becomes float.
class RowEnd {
 public:
  RowEnd(const Int8Gemm& g, int64_t i, int64_t j0, int64_t n) : g_(g), i_(i), j0_(j0), n_(n) {}

  void run(float* sums) const {
    const RowQuantization& row = g_.rows[i_ * g_.rows_step];
    const int32_t offset = row.zero_point + 128;
    if (g_.b.group_scales != nullptr) {
      const float* w = g_.group_sums + j0_;
      for (int64_t j = 0; j < n_; ++j) {
        sums[j] = (sums[j] - static_cast<float>(offset) * w[j]) * row.scale;
      }
    } else {
      scale_integers(sums, offset, row.scale);
    }
    if (g_.bias != nullptr) {
      for (int64_t j = 0; j < n_; ++j) sums[j] += g_.bias[j0_ + j];
    }
    // A NaN stays one.
    for (int64_t j = 0; j < n_; ++j) {
      const float x = sums[j] < g_.low ? g_.low : sums[j];
      sums[j] = x > g_.high ? g_.high : x;
    }
    store(sums);
  }

 private:
  void scale_integers(float* sums, int32_t offset, float row_scale) const {
    int32_t integers[kBlockColumns];
    std::memcpy(integers, sums, static_cast<size_t>(n_) * 4);
    const int32_t* w = g_.sums + j0_;
    for (int64_t j = 0; j < n_; ++j) integers[j] -= offset * w[j];
    if (g_.integer_bias != nullptr) {
      for (int64_t j = 0; j < n_; ++j) {
        // Wraps rather than overflows where a file says nonsense.
        integers[j] = static_cast<int32_t>(static_cast<uint32_t>(integers[j]) +
                                           static_cast<uint32_t>(g_.integer_bias[j0_ + j]));
      }
    }
    const float* scales = g_.b.scales + j0_;
    for (int64_t j = 0; j < n_; ++j) {
      sums[j] = static_cast<float>(integers[j]) * (row_scale * scales[j]);
    }
  }

  void store(const float* x) const {
    const int64_t first = i_ * g_.ldc + j0_;
    switch (g_.out) {
      case Int8Gemm::Out::F32:
        std::memcpy(static_cast<float*>(g_.c) + first, x, static_cast<size_t>(n_) * 4);
        return;
      case Int8Gemm::Out::F16:
        for (int64_t j = 0; j < n_; ++j) static_cast<F16*>(g_.c)[first + j] = {half_of(x[j])};
        return;
      case Int8Gemm::Out::BF16:
        for (int64_t j = 0; j < n_; ++j) static_cast<BF16*>(g_.c)[first + j] = {bfloat16_of(x[j])};
        return;
      case Int8Gemm::Out::Int8:
        break;
    }
    const float inverse = 1 / g_.c_quantization.scale;
    const auto zero = static_cast<float>(g_.c_quantization.zero_point);
    for (int64_t j = 0; j < n_; ++j) {
      // Held first, so that the conversion is defined for every float.
      const float y = std::max(-128.0f, std::min(127.0f, std::nearbyint(x[j] * inverse) + zero));
      static_cast<int8_t*>(g_.c)[first + j] = static_cast<int8_t>(y);
    }
  }

  const Int8Gemm& g_;
  int64_t i_, j0_, n_;
};

class Product {
 public:
  explicit Product(const Int8Gemm& gemm) : g_(gemm) {
    k_bytes_ = round_up(std::max<int64_t>(g_.k, 1), kBlock);
    block_rows_ =
        std::clamp<int64_t>(kPackedBytes / k_bytes_ / kRows * kRows, kRows, kMostBlockRows);
    if (g_.b.group_scales == nullptr) return;
    groups_ = (g_.k + g_.b.group_size - 1) / g_.b.group_size;
    for (int64_t p = 0; p < k_bytes_; p += kBlock) {
      const int64_t first = p / g_.b.group_size;
      for (int64_t lane = 0; lane < 16; ++lane) {
        const int64_t group = std::min((p + 8 * lane) / g_.b.group_size, groups_ - 1);
        group_of_.push_back(static_cast<int32_t>(group - first));
      }
    }
  }

  void run() const {
    const int64_t row_blocks = (g_.m + block_rows_ - 1) / block_rows_;
    const int64_t column_blocks = (g_.n + kBlockColumns - 1) / kBlockColumns;
    parallel_for(row_blocks * column_blocks, 1, [&](int64_t begin, int64_t end) {
      int64_t packed = -1;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t block = task / column_blocks;
        if (block != packed) pack(block);
        packed = block;
        run_block(block * block_rows_, task % column_blocks * kBlockColumns);
      }
    });
  }

 private:
  void pack(int64_t block) const {
    auto& packed = scratch().packed;
    const auto bytes = static_cast<size_t>(block_rows_ * k_bytes_);
    if (packed.size() < bytes) packed.resize(bytes);
    const int64_t first = block * block_rows_, n = std::min(block_rows_, g_.m - first);
    for (int64_t i = 0; i < n; ++i) {
      pack_row(g_.a + (first + i) * g_.lda, g_.k, g_.b.nibbles, packed.data() + i * k_bytes_,
               k_bytes_);
    }
  }

  void run_block(int64_t i0, int64_t j0) const {
    const int64_t m = std::min(block_rows_, g_.m - i0), n = std::min(kBlockColumns, g_.n - j0);
    auto& sums = scratch().sums;
    if (sums.size() < kMostBlockRows * kBlockColumns) sums.resize(kMostBlockRows * kBlockColumns);
    const auto& kernels = int8::kernels();
    const auto& tiles = g_.b.group_scales != nullptr ? kernels.groups
                        : g_.b.nibbles               ? kernels.nibbles
                                                     : kernels.bytes;
    for (int64_t j = 0; j < n; j += kColumns) {
      const int64_t columns = std::min<int64_t>(kColumns, n - j);
      int8::Tile tile{};
      tile.b = g_.b.data + (j0 + j) * g_.b.row_bytes;
      tile.ldb = g_.b.row_bytes;
      tile.lda = k_bytes_;
      tile.k = g_.k;
      tile.ld_sums = kBlockColumns;
      tile.group_size = g_.b.group_size;
      tile.groups = groups_;
      tile.scales = groups_ == 0 ? nullptr : g_.b.group_scales + (j0 + j) * groups_;
      tile.group_of = group_of_.data();
      for (int64_t i = 0; i < m; i += kRows) {
        tile.a = scratch().packed.data() + i * k_bytes_;
        tile.sums = sums.data() + i * kBlockColumns + j;
        tiles[std::min<int64_t>(kRows, m - i) - 1][columns - 1](tile);
      }
    }
    for (int64_t i = 0; i < m; ++i) RowEnd(g_, i0 + i, j0, n).run(sums.data() + i * kBlockColumns);
  }

  const Int8Gemm& g_;
  int64_t k_bytes_, block_rows_, groups_ = 0;
  std::vector<int32_t> group_of_;
};

}  // namespace

void sum_rows(const Int8Weights& w, int64_t n, int64_t k, int32_t* sums, float* group_sums) {
  const int64_t groups = w.group_scales == nullptr ? 0 : (k + w.group_size - 1) / w.group_size;
  parallel_for(n, 16, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const uint8_t* row = w.data + j * w.row_bytes;
      if (groups > 0) {
        float total = 0;
        for (int64_t g = 0; g < groups; ++g) {
          int32_t sum = 0;
          const int64_t stop = std::min(k, (g + 1) * w.group_size);
          for (int64_t p = g * w.group_size; p < stop; ++p) sum += nibble(row, p);
          total += static_cast<float>(sum) * to_float(w.group_scales[j * groups + g]);
        }
        group_sums[j] = total;
        continue;
      }
      int32_t sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += w.nibbles ? nibble(row, p) : static_cast<int8_t>(row[p]);
      }
      sums[j] = sum;
    }
  });
}

void Int8Gemm::run() const {
  if (m > 0 && n > 0) Product(*this).run();
}

}  // namespace executorch::cpu
