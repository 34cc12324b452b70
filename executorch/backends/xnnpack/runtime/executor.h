/// Runs a graph over the tensors of a call.
#pragma once

#include <executorch/backends/xnnpack/runtime/graph.h>
#include <executorch/backends/xnnpack/runtime/memory_plan.h>
#include <executorch/backends/xnnpack/runtime/node_report.h>
#include <executorch/backends/xnnpack/runtime/shared_arena.h>
#include <executorch/cpu/scratch.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/span.h>

namespace executorch::backends::xnnpack {

/// One call at a time; different executors are independent.
class Executor {
 public:
  explicit Executor(std::unique_ptr<Graph> graph);

  /// `args` by external slot. Checks the tensors' types and ranks, infers shapes when those of the
  /// inputs changed, resizes the outputs and computes them. Logs what is wrong.
  Error execute(runtime::Span<runtime::EValue*> args, runtime::EventTracer* tracer,
                cpu::Scratch& scratch);

 private:
  Error bind_inputs(runtime::Span<runtime::EValue*> args, bool& changed);
  Error bind_outputs(runtime::Span<runtime::EValue*> args);
  Error run_nodes(runtime::EventTracer* tracer, cpu::Scratch& scratch);

  std::unique_ptr<Graph> graph_;
  MemoryPlan plan_;
  NodeReports reports_;
  SharedArenaUser user_;
  /// The shapes of internal values are those that follow from the inputs'.
  bool inferred_ = true;
};

}  // namespace executorch::backends::xnnpack
