#include <executorch/kernels/optimized/patterns.h>
#include <executorch/kernels/portable/internal/pool.h>

namespace executorch::optimized {
namespace {

struct PoolCall : FusedCall {
  /// The arguments of the pooling: input, kernel size, stride, padding, dilation, ceil mode.
  Span<EValue*> args;
};

bool run_pooling(const FusedCall& base, KernelRuntimeContext& context) {
  const auto& call = static_cast<const PoolCall&>(base);
  aten::ArrayRef<int64_t> lists[4];
  for (size_t i = 0; i < 4; ++i) {
    const auto list = call.args[1 + i]->tryToIntList();
    if (!list.ok()) return false;
    lists[i] = {list->data(), list->size()};
  }
  if (!call.args[5]->isBool()) return false;  // it was at load
  return torch::executor::native::internal::max_pool2d_values(
      context, call.args[0]->toTensor(), lists[0], lists[1], lists[2], lists[3],
      call.args[5]->toBool(), call.out->toTensor());
}

bool only_values_are_wanted(const Graph& graph, int n) {
  const auto& outputs = graph.nodes()[n].outputs;
  const int out = graph.out(n);
  return graph.n_args(n) >= 8 && graph.arg(n, 5)->isBool() && graph.is_float(out) &&
         graph.stable(out) && graph.is_float(graph.arg_id(n, 0)) && graph.arg_id(n, 6) == out &&
         std::all_of(outputs.begin() + 1, outputs.end(), [&](int o) {
           return graph.values()[o].uses.empty() && !graph.values()[o].output && graph.stable(o);
         });
}

}  // namespace

void drop_pool_indices(Graph& graph, Arena& arena) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    if (!graph.is(n, "max_pool2d_with_indices.out") || !graph.nodes()[n].live ||
        !graph.deferrable(n) || !only_values_are_wanted(graph, n)) {
      continue;
    }
    auto* const call = arena.make<PoolCall>();
    if (call == nullptr) return;
    call->args = graph.nodes()[n].instruction->args;
    call->run = run_pooling;
    call->out = graph.values()[graph.out(n)].value;
    call->name = "max_pool2d";
    graph.replace(n, call, {graph.arg_id(n, 0)});
  }
}

}  // namespace executorch::optimized
