#include <executorch/kernels/optimized/patterns.h>

namespace executorch::optimized {

void add_numbers(const Graph& graph, const std::vector<Step>& steps, std::vector<int>& inputs) {
  for (const Step& step : steps) {
    for (EValue* arg : step.args) {
      if (!arg->isTensor() && !arg->isTensorList()) inputs.push_back(graph.id(arg));
    }
  }
}

void add_inputs(const Graph& graph, const Graph::Chain& chain, std::vector<int>& inputs) {
  inputs.push_back(chain.base);
  add_numbers(graph, chain.steps, inputs);
}

bool apply_steps(Span<const Step> steps, View& view) {
  for (const Step& step : steps) {
    if (!step.apply(view)) return false;
  }
  return view.valid();
}

bool undo_steps(Span<const Step> steps, const View& before, View& view) {
  if (steps.empty()) return view.same_sizes(before);
  View next = before;
  const Span<const Step> rest(steps.data() + 1, steps.size() - 1);
  return steps[0].apply(next) && undo_steps(rest, next, view) && steps[0].undo(view, before);
}

}  // namespace executorch::optimized
