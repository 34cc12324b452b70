#pragma once

#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/executor/memory_manager.h>

#include <cstdint>
#include <string_view>

namespace executorch_flatbuffer {
struct ExecutionPlan;
struct Tensor;
}  // namespace executorch_flatbuffer

namespace executorch::runtime {

class Program;

namespace deserialization {

/// A constant from an external file, empty until a tensor needs it; the key is the program's.
struct NamedData {
  std::string_view key;
  FreeableBuffer buffer;
};

/// Turns the tensors of a validated plan into runtime tensors with memory. Borrows everything.
class TensorParser {
 public:
  /// `external_constants` has the keys of all external tensors of the plan in order; they are
  /// loaded as tensors need them.
  TensorParser(const Program& program, const executorch_flatbuffer::ExecutionPlan& plan,
               MemoryManager& memory_manager, const NamedDataMap* external_data,
               Span<NamedData> external_constants)
      : program_(program),
        plan_(plan),
        memory_(memory_manager),
        external_data_(external_data),
        external_constants_(external_constants) {}

  /// The tensor at `index` of the value table. Shape arrays of static tensors and constant bytes
  /// are used where they lie. The data pointer is null if memory comes later. NotSupported: an
  /// unbounded shape. InvalidExternalData: external data is missing or has another layout.
  Result<aten::Tensor> parse(uint32_t index);

 private:
  Result<void*> find_data(const executorch_flatbuffer::Tensor& tensor, size_t nbytes);
  Result<void*> find_planned(const executorch_flatbuffer::Tensor& tensor, size_t nbytes);
  Result<void*> find_external(const executorch_flatbuffer::Tensor& tensor, size_t nbytes);
  Error check_external_layout(const executorch_flatbuffer::Tensor& tensor) const;
  Result<int32_t*> copy_sizes(const executorch_flatbuffer::Tensor& tensor);

  const Program& program_;
  const executorch_flatbuffer::ExecutionPlan& plan_;
  MemoryManager& memory_;
  const NamedDataMap* external_data_;
  Span<NamedData> external_constants_;
};

}  // namespace deserialization
}  // namespace executorch::runtime
