#pragma once

#include <executorch/exir/native/borrowed_bytes.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace executorch::devtools {

/// A file's bytes where byte `at` lies at a multiple of 16, as flatbuffers want it; copied unless
/// they already do. The source outlives this.
class AlignedBytes {
 public:
  AlignedBytes(const exir::BorrowedBytes& file, uint64_t at) : data_(file.data()) {
    if (distance(file.data() + at) == 0) return;
    copy_.resize(file.size() + kAlignment);
    uint8_t* const start = copy_.data() + distance(copy_.data() + at);
    std::memcpy(start, file.data(), file.size());
    data_ = start;
  }

  const uint8_t* data() const { return data_; }

 private:
  static constexpr uint64_t kAlignment = 16;

  /// To the next multiple.
  static uint64_t distance(const uint8_t* address) {
    return (kAlignment - reinterpret_cast<uintptr_t>(address) % kAlignment) % kAlignment;
  }

  std::vector<uint8_t> copy_;
  const uint8_t* data_;
};

}  // namespace executorch::devtools
