#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/method_meta.h>

#include <cstddef>
#include <cstdlib>
#include <utility>
#include <vector>

namespace executorch::extension {

using ::executorch::ET_RUNTIME_NAMESPACE::Method;
using ::executorch::ET_RUNTIME_NAMESPACE::TensorInfo;

/// Owner of malloc'ed buffers and of the malloc'ed list of them.
class BufferCleanup final {
 public:
  explicit BufferCleanup(runtime::Span<void*> buffers) : buffers_(buffers) {}

  BufferCleanup(BufferCleanup&& rhs) noexcept
      : buffers_(std::exchange(rhs.buffers_, runtime::Span<void*>())) {}

  BufferCleanup(const BufferCleanup&) = delete;
  BufferCleanup& operator=(const BufferCleanup&) = delete;
  BufferCleanup& operator=(BufferCleanup&&) = delete;

  ~BufferCleanup() {
    for (void* buffer : buffers_) std::free(buffer);
    std::free(buffers_.data());
  }

 private:
  runtime::Span<void*> buffers_;
};

struct PrepareInputTensorsOptions {
  size_t max_total_allocation_size = 1024 * 1024 * 1024;  ///< bytes of all input tensors together
  size_t max_inputs = 1024;
};

/// Sets every tensor input of a method: to the bytes of `input_buffers`, one (data, size) per
/// tensor input in order, or to ones when there are no buffers. Other inputs were constants at
/// export and keep those values. The returned object must live as long as the method runs.
/// InvalidProgram when the method wants more than the options allow, InvalidArgument when the
/// buffers do not match the inputs in number or size.
runtime::Result<BufferCleanup> prepare_input_tensors(
    Method& method, PrepareInputTensorsOptions options = {},
    const std::vector<std::pair<char*, size_t>>& input_buffers = {});

namespace internal {
/// Sets every element to one. InvalidArgument for types without numbers.
runtime::Error fill_ones(executorch::aten::Tensor tensor);
}  // namespace internal

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::BufferCleanup;
using ::executorch::extension::prepare_input_tensors;
}  // namespace torch::executor::util
