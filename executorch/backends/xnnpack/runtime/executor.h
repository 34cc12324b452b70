/// Runs a graph over the tensors of a call.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/backends/xnnpack/runtime/memory_plan.h>
#include <executorch/backends/xnnpack/runtime/node_report.h>
#include <executorch/backends/xnnpack/runtime/selected_rows.h>
#include <executorch/backends/xnnpack/runtime/shared_arena.h>
#include <executorch/cpu/scratch.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/span.h>

#include <vector>

namespace executorch::backends::xnnpack {

/// Runs one call at a time; different executors may run at the same time. After an exception the
/// executor can be used again.
class Executor {
 public:
  /// Throws where a container finds no memory.
  explicit Executor(std::unique_ptr<Graph> graph);

  /// `args` by external slot. Checks the tensors' types and ranks, infers shapes when those of the
  /// inputs changed, resizes the outputs and computes them. Memory of the call beside results
  /// comes from `scratch`. Logs what is wrong. Throws where shapes changed, or the first call
  /// prepares constants, and a container finds no memory.
  Error execute(runtime::Span<runtime::EValue*> args, runtime::EventTracer* tracer,
                cpu::Scratch& scratch);

  /// An estimate, in nanoseconds, of what a call with the shapes of the last one takes on one
  /// thread.
  uint64_t steps() const { return steps_; }
  uint32_t n_arguments() const { return graph_->n_externals; }
  /// Whether a call writes argument `index`, which is below n_arguments().
  bool writes_argument(size_t index) const;

 private:
  Error bind_inputs(runtime::Span<runtime::EValue*> args, bool& changed);
  Error fit_shapes();
  Error bind_outputs(runtime::Span<runtime::EValue*> args);
  Error run_node(size_t i, cpu::Scratch& scratch);
  Error run_traced(size_t i, runtime::EventTracer* tracer, cpu::Scratch& scratch);
  Error run_group(const RowGroup& group, runtime::EventTracer* tracer, cpu::Scratch& scratch);
  Error run_nodes(runtime::EventTracer* tracer, cpu::Scratch& scratch);

  std::unique_ptr<Graph> graph_;
  std::vector<RowGroup> groups_;  // found before `plan_` is made: nodes are moved
  MemoryPlan plan_;
  NodeReports reports_;
  SharedArenaUser user_;
  /// Whether the shapes of internal values were inferred from the present inputs, and the plan has
  /// memory for each.
  bool fitted_ = false;
  uint64_t steps_ = 0;
};

}  // namespace executorch::backends::xnnpack
