/// What tracers are told of a graph's nodes.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/cpu/scratch.h>
#include <executorch/runtime/core/event_tracer.h>

#include <string>
#include <vector>

namespace executorch::backends::xnnpack {

/// Names, "FullyConnected #3" by the number in the payload, and work of the nodes. Made when a
/// tracer first asks, once per shapes, so that a traced run does not format texts.
class NodeReports {
 public:
  /// Call when the shapes of values changed.
  void forget() { reports_.clear(); }
  /// Describes the nodes with the present shapes, unless that is done. Throws where texts find no
  /// memory.
  void prepare(const Graph& graph) {
    if (reports_.empty()) make(graph);
  }
  /// Call after prepare(). A node that ran from `start` until now, and what it gave. Its work is in the metadata:
  ///   {"family":"matmul","flop":1769472,"bytes":7094784,
  ///    "shapes":"Float[1,768] ... -> Float[1,2304]"}
  /// "int8":true where products are of bytes. flop: two for each multiply-add, 5 an element of
  /// softmax, one an element or window tap elsewhere, none where data only move. bytes: every operand
  /// and result once.
  /// Values are logged as the exporter's graph has them: quantized ones as the floats they stand
  /// for, images as NCHW. Where the payload has NHWC the metadata have "images":true.
  /// False when values find no memory in `scratch`.
  bool log(runtime::EventTracer& tracer, const Graph& graph, size_t node, et_timestamp_t start,
           cpu::Scratch& scratch);

 private:
  struct Report {
    std::string name, work;
  };
  void make(const Graph& graph);

  std::vector<Report> reports_;
  std::vector<bool> images_;  // by value
};

}  // namespace executorch::backends::xnnpack
