/// What each kind of node checks at load, infers when shapes change, and computes.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/cpu/scratch.h>

namespace executorch::backends::xnnpack {

/// Which fields a kind's table has.
enum class Form : uint8_t {
  Unary,
  Slope,
  Alpha,
  Binary,
  FullyConnected,
  Concatenate,
  Convolution,
  Pooling,
  ArgMaxPooling,
  Transpose,
  Reshape,
  Slice,
  Resize,
  Pad,
  NotSupported,
};

struct Operation {
  /// In messages and traces.
  const char* name;
  Form form;
  /// Types, constants and attributes, once; ids and their order are checked before. Logs a reason.
  Error (*check)(const Graph& graph, const Node& node) = nullptr;
  /// Sets the outputs' shapes; false when those of the inputs do not fit.
  bool (*infer)(Graph& graph, const Node& node) = nullptr;
  /// Keeps in the node what is computed from constants, before it runs for the first time; null
  /// where there is nothing. The only part of a run that uses the C++ heap, and throws.
  void (*prepare)(const Graph& graph, Node& node) = nullptr;
  /// Computes; false if memory is refused.
  bool (*run)(const Graph& graph, const Node& node, cpu::Scratch& scratch) = nullptr;
  /// The output may be written over the first input, which has as many bytes.
  bool in_place = false;
  /// The output is the input's bytes under another shape.
  bool is_view = false;
};

/// The operation of a kind, or null for a number that is none.
const Operation* find_operation(fb_xnnpack::XNodeUnion kind);

/// Logs "XnnpackBackend: Add: the inputs are of fp32 and fp16" and returns InvalidProgram, unless
/// `condition`.
#define ET_XNN_REQUIRE(condition, node, format, ...)                                 \
  ET_CHECK_OR_RETURN_ERROR(condition, InvalidProgram, "XnnpackBackend: %s: " format, \
                           (node).operation->name, ##__VA_ARGS__)

const char* name_of(Type type);

/// The value's quantization is the same, so that bytes can be moved.
bool same_type(const Value& a, const Value& b);
/// Every index of a shape is within what the runtime's arithmetic can hold.
bool is_sane(const Shape& shape);

// One family each; the rows are in operation.cpp.
Error check_unary(const Graph&, const Node&);
Error check_convert(const Graph&, const Node&);
bool infer_same(Graph&, const Node&);
bool run_unary(const Graph&, const Node&, cpu::Scratch&);
bool run_convert(const Graph&, const Node&, cpu::Scratch&);

Error check_binary(const Graph&, const Node&);
bool infer_binary(Graph&, const Node&);
bool run_binary(const Graph&, const Node&, cpu::Scratch&);
bool infer_prelu(Graph&, const Node&);

Error check_softmax(const Graph&, const Node&);
bool run_softmax(const Graph&, const Node&, cpu::Scratch&);

Error check_fully_connected(const Graph&, const Node&);
bool infer_fully_connected(Graph&, const Node&);
void prepare_fully_connected(const Graph&, Node&);
bool run_fully_connected(const Graph&, const Node&, cpu::Scratch&);
Error check_batch_matmul(const Graph&, const Node&);
bool infer_batch_matmul(Graph&, const Node&);
void prepare_batch_matmul(const Graph&, Node&);
bool run_batch_matmul(const Graph&, const Node&, cpu::Scratch&);

Error check_convolution(const Graph&, const Node&);
bool infer_convolution(Graph&, const Node&);
void prepare_convolution(const Graph&, Node&);
bool run_convolution(const Graph&, const Node&, cpu::Scratch&);

Error check_pooling(const Graph&, const Node&);
bool infer_pooling(Graph&, const Node&);
bool run_pooling(const Graph&, const Node&, cpu::Scratch&);
bool infer_global_pooling(Graph&, const Node&);
bool run_global_pooling(const Graph&, const Node&, cpu::Scratch&);
Error check_arg_max(const Graph&, const Node&);
bool run_arg_max(const Graph&, const Node&, cpu::Scratch&);
Error check_resize(const Graph&, const Node&);
bool infer_resize(Graph&, const Node&);
bool run_resize(const Graph&, const Node&, cpu::Scratch&);

Error check_transpose(const Graph&, const Node&);
bool infer_transpose(Graph&, const Node&);
bool run_transpose(const Graph&, const Node&, cpu::Scratch&);
Error check_moved(const Graph&, const Node&);
bool infer_reshape(Graph&, const Node&);
bool run_copy(const Graph&, const Node&, cpu::Scratch&);
bool infer_slice(Graph&, const Node&);
bool run_slice(const Graph&, const Node&, cpu::Scratch&);
bool infer_pad(Graph&, const Node&);
bool run_pad(const Graph&, const Node&, cpu::Scratch&);
Error check_concatenate(const Graph&, const Node&);
bool infer_concatenate(Graph&, const Node&);
bool run_concatenate(const Graph&, const Node&, cpu::Scratch&);

}  // namespace executorch::backends::xnnpack
