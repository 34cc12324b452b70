/// Memory that a thread keeps between calls, so that kernels do not allocate:
///
///   static thread_local Workspace workspace;
///   float* tile = workspace.floats(rows * columns);   // valid until the next call of floats()
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace executorch::cpu {

class Workspace {
 public:
  Workspace() = default;
  ~Workspace() { std::free(data_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// `count` floats of no particular value, on a cache line's boundary.
  float* floats(size_t count) {
    constexpr size_t kLine = 64;
    const size_t bytes = (count * sizeof(float) + kLine - 1) / kLine * kLine;
    if (bytes > bytes_) {
      std::free(data_);
      data_ = static_cast<float*>(std::aligned_alloc(kLine, bytes));
      bytes_ = data_ != nullptr ? bytes : 0;
      if (data_ == nullptr) std::abort();
    }
    return data_;
  }

 private:
  float* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace executorch::cpu
