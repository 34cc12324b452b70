/// The inputs, outputs and memory needs of a method, available without loading it.
#pragma once

#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/portable_type/device.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/core/tag.h>

#include <cstdint>
#include <string_view>

namespace executorch_flatbuffer {
struct ExecutionPlan;
struct Tensor;
}  // namespace executorch_flatbuffer

namespace executorch::runtime {

/// One tensor of a method. A view of the program, which must outlive it.
class TensorInfo final {
 public:
  TensorInfo(const TensorInfo&) = default;
  TensorInfo(TensorInfo&&) = default;
  TensorInfo& operator=(const TensorInfo&) = default;
  TensorInfo& operator=(TensorInfo&& other) = default;
  ~TensorInfo() = default;

  /// Upper bounds where the shape is dynamic.
  Span<const int32_t> sizes() const { return sizes_; }
  /// Whether a call may have other sizes than those above.
  bool is_dynamic() const { return is_dynamic_; }
  /// Dimensions from the outermost to the innermost in memory.
  Span<const uint8_t> dim_order() const { return dim_order_; }
  aten::ScalarType scalar_type() const { return scalar_type_; }
  /// Whether the method has memory for the tensor. Inputs are then copied, and outputs need no
  /// pointer.
  bool is_memory_planned() const { return is_memory_planned_; }
  /// Bytes at the sizes above.
  size_t nbytes() const { return nbytes_; }
  /// The parameter's or buffer's name; empty if the program does not keep it.
  std::string_view name() const { return name_; }

 private:
  friend class MethodMeta;
  TensorInfo() = default;
  static Result<TensorInfo> from(const executorch_flatbuffer::Tensor& tensor);

  Span<const int32_t> sizes_;
  Span<const uint8_t> dim_order_;
  std::string_view name_;
  size_t nbytes_ = 0;
  aten::ScalarType scalar_type_ = aten::ScalarType::Undefined;
  bool is_memory_planned_ = false;
  bool is_dynamic_ = false;
};

/// A view of the program, which must outlive it. Every accessor with an index returns
/// InvalidArgument if it is out of range.
class MethodMeta final {
 public:
  MethodMeta(const MethodMeta&) = default;
  MethodMeta(MethodMeta&&) = default;
  MethodMeta& operator=(const MethodMeta&) = default;
  MethodMeta& operator=(MethodMeta&& other) = default;
  ~MethodMeta() = default;

  const char* name() const;

  size_t num_inputs() const;
  Result<Tag> input_tag(size_t index) const;
  /// InvalidArgument if the input is no tensor.
  Result<TensorInfo> input_tensor_meta(size_t index) const;

  size_t num_outputs() const;
  Result<Tag> output_tag(size_t index) const;
  /// InvalidArgument if the output is no tensor.
  Result<TensorInfo> output_tensor_meta(size_t index) const;

  /// Tensors that the program knows by name, in the order of the value table.
  size_t num_attributes() const;
  Result<TensorInfo> attribute_tensor_meta(size_t index) const;

  /// The number of arenas that must be given to HierarchicalAllocator, in this order.
  size_t num_memory_planned_buffers() const;
  /// Bytes.
  Result<int64_t> memory_planned_buffer_size(size_t index) const;
  Result<etensor::Device> memory_planned_buffer_device(size_t index) const;

  /// Whether the method calls a delegate of this name.
  bool uses_backend(const char* backend_name) const;
  /// Delegates, one per call site: a name may occur several times.
  size_t num_backends() const;
  Result<const char*> get_backend_name(size_t index) const;

  ET_EXPERIMENTAL size_t num_instructions() const;

  // Older spellings.
  ET_DEPRECATED size_t num_non_const_buffers() const { return num_memory_planned_buffers(); }
  /// Another name of memory_planned_buffer_size.
  Result<int64_t> non_const_buffer_size(size_t index) const {
    return memory_planned_buffer_size(index);
  }

 private:
  friend class Program;
  friend class Method;
  explicit MethodMeta(const executorch_flatbuffer::ExecutionPlan* plan) : plan_(plan) {}

  const executorch_flatbuffer::ExecutionPlan* plan_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::MethodMeta;
using ::executorch::runtime::TensorInfo;
}  // namespace torch::executor
