#include <executorch/cpu/nn/conv_chain.h>
#include <executorch/kernels/optimized/conv_call.h>
#include <executorch/kernels/portable/internal/engine.h>

#include <string>

namespace executorch::optimized {
namespace {

struct ChainCall : FusedCall {
  Span<const ConvCall*> steps;

  bool bind(cpu::ConvChain& chain) const {
    for (const ConvCall* step : steps) {
      cpu::Conv<float>& c = chain.steps[chain.n++];
      if (!step->bind(c) || !has_rows(c)) return false;
    }
    return true;
  }

 private:
  static bool has_rows(const cpu::Conv<float>& c) {
    const cpu::ConvAxis &z = c.axis[0], &h = c.axis[1], &w = c.axis[2];
    return z.in == 1 && z.kernel == 1 && z.padding == 0 && w.in_stride == 1 &&
           h.in_stride == w.in && w.out_stride == 1 && h.out_stride == w.out;
  }
};

bool run_chain(const FusedCall& call, KernelRuntimeContext& ctx) {
  cpu::ConvChain chain;
  torch::executor::native::internal::EngineScratch scratch(ctx);
  return static_cast<const ChainCall&>(call).bind(chain) && chain.run(scratch);
}

class ChainMatch {
 public:
  ChainMatch(Graph& graph, Arena& arena) : graph_(graph), arena_(arena) {}

  // Fuses a chain that ends with node n, if there is one and it is faster. Returns whether it did.
  bool run(int n) {
    std::vector<const ConvCall*> steps;
    const int block = graph_.nodes()[n].block;
    for (int last = n; last >= 0 && steps.size() < cpu::ConvChain::kMost;) {
      const ConvCall* const step = step_at(last);
      if (step == nullptr || (!steps.empty() && step->residual != nullptr)) break;
      steps.insert(steps.begin(), step);
      const int x = graph_.id(step->args[0]);
      const int made = graph_.def(x);
      const bool inner = made >= 0 && graph_.only_use(x) == last && graph_.interior(x, block) &&
                         graph_.nodes()[made].block == block;
      last = inner ? made : -1;
    }
    // Keep the longest tail of the chain that is faster in bands.
    for (; steps.size() > 1; steps.erase(steps.begin())) {
      if (replace(n, steps)) return true;
    }
    return false;
  }

 private:
  // The call of a float convolution, fused or plain, whose last node is n; null if there is none.
  const ConvCall* step_at(int n) {
    const FusedCall* const fused = graph_.nodes()[n].fused;
    const ConvCall* const step = fused == nullptr ? plain_convolution(graph_, arena_, n)
                                 : fused->run == run_convolution
                                     ? static_cast<const ConvCall*>(fused)
                                     : nullptr;
    const bool fits =
        step != nullptr && step->out->toTensor().scalar_type() == aten::ScalarType::Float;
    return fits ? step : nullptr;
  }

  bool replace(int n, const std::vector<const ConvCall*>& steps) {
    auto* const call = arena_.make<ChainCall>();
    if (call == nullptr) return false;
    call->steps = arena_.copy(steps);
    cpu::ConvChain chain;
    if (!arena_.ok() || !call->bind(chain) || !chain.pays()) return false;
    std::vector<int> inputs;
    std::string name;
    for (const ConvCall* step : steps) {
      for (size_t i = step == steps.front() ? 0 : 1; i < 9; ++i) {
        inputs.push_back(graph_.id(step->args[i]));
      }
      if (step->residual != nullptr) inputs.push_back(graph_.id(step->residual));
      name.append(name.empty() ? "" : "+").append(step->name);
    }
    call->run = run_chain;
    call->out = steps.back()->out;
    call->name = arena_.copy(name);
    if (arena_.ok()) graph_.replace(n, call, inputs);
    return arena_.ok();
  }

  Graph& graph_;
  Arena& arena_;
};

}  // namespace

void fuse_convolution_chains(Graph& graph, Arena& arena) {
  // Backwards, because a chain ends with the convolution that follows the widest planes.
  for (int n = static_cast<int>(graph.nodes().size()) - 1; n >= 0; --n) {
    if (graph.nodes()[n].live && ChainMatch(graph, arena).run(n)) graph.refresh();
  }
}

}  // namespace executorch::optimized
