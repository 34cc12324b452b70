/// What each kind of node checks at load, infers when shapes change, and computes.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/cpu/scratch.h>

#include <cstring>
#include <span>

namespace executorch::backends::xnnpack {

/// Kinds whose tables have the same fields, and whose shapes go together.
enum class Form : uint8_t {
  Unary,
  Slope,
  Alpha,
  Binary,
  FullyConnected,
  BatchMatrixMultiply,
  Concatenate,
  Convolution,
  Pooling,
  GlobalPooling,
  ArgMaxPooling,
  Transpose,
  Reshape,
  Slice,
  Resize,
  Pad,
};

/// All that the runtime knows of a kind: a row of a family's table, at the end of its file.
struct Operation {
  fb_xnnpack::XNodeUnion kind;
  Form form;
  /// Types, constants and attributes, once; ids and their order are checked before. Logs a reason.
  Error (*check)(const Graph& graph, const Node& node);
  /// Sets the outputs' shapes; false when those of the inputs do not fit.
  bool (*infer)(Graph& graph, const Node& node);
  /// Keeps in the node what is computed from constants, before it runs for the first time; null
  /// where there is nothing. The only part of a run that uses the C++ heap, and throws.
  void (*prepare)(const Graph& graph, Node& node) = nullptr;
  /// Computes; false if memory is refused.
  bool (*run)(const Graph& graph, const Node& node, cpu::Scratch& scratch);
  /// The output may be written over the first input, which has as many bytes.
  bool in_place = false;
  /// The output is the input's bytes under another shape.
  bool is_view = false;
  /// An element of the output depends on those of the inputs at its place, in any order of dims.
  bool is_elementwise = false;

  /// In messages and traces.
  const char* name() const {
    return fb_xnnpack::EnumNamesXNodeUnion()[static_cast<size_t>(kind)] + std::strlen("XNN");
  }
};

using Operations = std::span<const Operation>;
// One table for each file.
Operations unary_operations();
Operations binary_operations();
Operations movement_operations();
Operations pooling_operations();
Operations matmul_operations();
Operations convolution_operations();

/// The operation of a kind, or null where there is none.
const Operation* find_operation(fb_xnnpack::XNodeUnion kind);

/// Logs "XnnpackBackend: Add: the inputs are of fp32 and fp16" and returns InvalidProgram, unless
/// `condition`.
#define ET_XNN_REQUIRE(condition, node, format, ...)                                 \
  ET_CHECK_OR_RETURN_ERROR(condition, InvalidProgram, "XnnpackBackend: %s: " format, \
                           (node).operation->name(), ##__VA_ARGS__)

const char* name_of(Type type);

/// The value's quantization is the same, so that bytes can be moved.
bool same_type(const Value& a, const Value& b);
/// Every index of a shape is within what the runtime's arithmetic can hold.
bool is_sane(const Shape& shape);

// What several families do.
bool infer_same(Graph&, const Node&);
bool run_copy(const Graph&, const Node&, cpu::Scratch&);

}  // namespace executorch::backends::xnnpack
