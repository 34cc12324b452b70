#pragma once

#include <executorch/runtime/executor/method_rewriter.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace executorch::extension::internal {

/// The physical memory of a method's temporary results, whose sizes may differ between executions.
///
/// Large ones get huge pages, in which products of many rows are computed faster. When they have
/// become small, as after the prompt of a language model, their memory goes back to the system. It
/// is then taken anew as they grow again, which is quick beside the computation of large results.
class TemporaryPages final {
 public:
  /// To be called before the first execution, when results have their largest sizes. The memory
  /// must come from the system's heap; it may be empty.
  explicit TemporaryPages(const runtime::Temporaries& temporaries);

  /// To be called after an execution has ended.
  void fit();

 private:
  size_t largest() const;
  void release(int advice);

  const runtime::Span<const runtime::Span<uint8_t>> memory_;
  std::vector<const aten::TensorImpl*> tensors_;  // those that can become large
  /// Bytes of the largest result since memory was last given back.
  size_t largest_ = 0;
  int small_executions_ = 0;  // one after another
  bool huge_ = false;
};

}  // namespace executorch::extension::internal
