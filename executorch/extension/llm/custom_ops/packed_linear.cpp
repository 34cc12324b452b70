#include <executorch/extension/llm/custom_ops/packed_linear.h>

#include <cstring>

namespace torch::executor::native::internal {

using executorch::cpu::Size;

namespace {

constexpr int64_t kHalf = PackedLinear::kColumns / 2;

/// to[i] = scale * the signed byte from[i], i < kHalf
void scale_bytes(const uint8_t* from, float scale, float* to) {
  for (int64_t i = 0; i < kHalf; ++i) {
    to[i] = static_cast<float>(static_cast<int8_t>(from[i])) * scale;
  }
}

/// The same of 4 bits, `shift` bits up.
void scale_nibbles(const uint8_t* from, int shift, float scale, float* to) {
  for (int64_t i = 0; i < kHalf; ++i) {
    to[i] = static_cast<float>(((from[i] >> shift) & 15) - 8) * scale;
  }
}

}  // namespace

Size PackedLinear::bytes() const {
  const Size of_row = Size(k) / group_size * (Size(group_size) * bits / 8 + 8);
  return round_up(Size(n), kRows) * of_row + kHeaderBytes;
}

bool PackedLinear::begins(const uint8_t* data) const {
  const int32_t expected[8] = {6712, 1, static_cast<int32_t>(bits), 0, 0, kRows, kColumns, 2};
  return std::memcmp(data, expected, sizeof expected) == 0;
}

void PackedLinear::unpack(const uint8_t* data, int64_t first, int64_t n_rows, float* to) const {
  const int64_t groups = k / group_size, chunk_bytes = kRows * kColumns * bits / 8;
  const uint8_t* at = data + kHeaderBytes + first / kRows * groups * group_bytes();
  for (int64_t block = 0; block < n_rows; block += kRows, to += kRows * k) {
    for (int64_t g = 0; g < groups; ++g, at += group_bytes()) {
      float scales[kRows];
      std::memcpy(scales, at + kRows * group_size * bits / 8, sizeof scales);
      for (int64_t c = 0; c < group_size / kColumns; ++c) {
        const uint8_t* const chunk = at + c * chunk_bytes;
        float* const columns = to + g * group_size + c * kColumns;
        for (int64_t half = 0; half < 2; ++half) {
          for (int64_t r = 0; r < kRows; ++r) {
            float* const row = columns + r * k + half * kHalf;
            if (bits == 8) {
              scale_bytes(chunk + (half * kRows + r) * kHalf, scales[r], row);
            } else {  // 4 rows are 32 numbers
              const uint8_t* const pairs = chunk + (half * 2 + r / 4) * 16 + r % 2 * kHalf;
              scale_nibbles(pairs, r % 4 < 2 ? 0 : 4, scales[r], row);
            }
          }
        }
      }
    }
  }
}

}  // namespace torch::executor::native::internal
