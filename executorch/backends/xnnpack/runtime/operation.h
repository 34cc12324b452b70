/// What each kind of node checks at load, infers when shapes change, and computes.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/cpu/scratch.h>

#include <cstring>
#include <span>

namespace executorch::backends::xnnpack {

/// Kinds of nodes whose flatbuffer tables have the same fields and whose output shapes are inferred
/// in the same way.
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

/// Everything the runtime knows about a kind of node. The rows are in a table at the end of the
/// family's file.
struct Operation {
  fb_xnnpack::XNodeUnion kind;
  Form form;
  /// Checks types, constants and attributes when the payload is loaded, after the ids and their
  /// order were checked. Logs what is wrong.
  Error (*check)(const Graph& graph, const Node& node);
  /// Sets the shapes of the outputs. False when the shapes of the inputs do not fit together.
  bool (*infer)(Graph& graph, const Node& node);
  /// Computes from constants what `run` needs, and keeps it in the node. Called once, before the
  /// first run; null where there is nothing to compute. It is the only part of a run that uses the
  /// C++ heap, and so the only one that throws.
  void (*prepare)(const Graph& graph, Node& node) = nullptr;
  /// Computes the outputs. False if scratch memory is refused.
  bool (*run)(const Graph& graph, const Node& node, cpu::Scratch& scratch);
  /// The output may share the memory of the first input, which has as many bytes.
  bool in_place = false;
  /// The output has the bytes of the input, under another shape.
  bool is_view = false;
  /// Each output element depends on the input elements at the same place only, so that the order of
  /// dims does not matter.
  bool is_elementwise = false;

  /// The name of the kind in messages and traces, such as "Add".
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

/// Whether both have the same type and quantization, so that bytes can be copied from one to the
/// other.
bool same_type(const Value& a, const Value& b);
/// Whether every index into the shape fits the runtime's arithmetic.
bool is_sane(const Shape& shape);

// Shared by several families.
bool infer_same(Graph&, const Node&);
bool run_copy(const Graph&, const Node&, cpu::Scratch&);

}  // namespace executorch::backends::xnnpack
