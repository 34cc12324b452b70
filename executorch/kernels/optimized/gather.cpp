#include <executorch/kernels/optimized/patterns.h>
#include <executorch/kernels/portable/internal/along_dim.h>

namespace executorch::optimized {
namespace {

namespace native = torch::executor::native::internal;

/// gather of a tensor that is read through views, at positions that are.
struct GatherCall : FusedCall {
  Operand data;
  Operand index;
  EValue* dim = nullptr;
};

// Writes the sizes and strides of `view` to `layout`. Returns false if a dimension has no single
// stride.
bool lay_out(const View& view, native::Layout& layout) {
  for (int d = 0; d < view.ndim(); ++d) {
    int64_t stride;
    if (!view.stride(d, stride)) return false;
    layout.push(view.size(d), stride);
  }
  return true;
}

bool run_gather(const FusedCall& base, KernelRuntimeContext&) {
  const auto& call = static_cast<const GatherCall&>(base);
  const View views[] = {call.data.view(), call.index.view()};
  native::Layout data, index;
  if (!views[0].valid() || !views[1].valid() || !call.dim->isInt() || !lay_out(views[0], data) ||
      !lay_out(views[1], index) || index.shape.ndim() < 1 ||
      index.shape.ndim() != data.shape.ndim()) {
    return false;
  }
  const int64_t ndim = index.shape.ndim(), named = call.dim->toInt();
  const int64_t dim = named < 0 ? named + ndim : named;
  if (dim < 0 || dim >= ndim) return false;
  for (int64_t d = 0; d < ndim; ++d) {
    if (d != dim && index.shape[d] > data.shape[d]) return false;
  }
  const Tensor& out = call.out->toTensor();
  if (!resize(out, views[1])) return false;
  const native::AlongDim along(index, dim, data, native::Layout(out));
  // The originals report a bad index.
  return !native::gather_along(along, static_cast<size_t>(out.element_size()),
                               call.data.data(views[0]), call.index.tensor().scalar_type(),
                               call.index.data(views[1]), out.mutable_data_ptr())
              .has_value();
}

void match(Graph& graph, Arena& arena, int node) {
  const int data = graph.arg_id(node, 0), index = graph.arg_id(node, 2), out = graph.out(node);
  const int block = graph.nodes()[node].block;
  const auto index_type = graph.tensor(index).scalar_type();
  if (!graph.stable(data) || !graph.stable(index) || !graph.stable(out) ||
      (index_type != aten::ScalarType::Long && index_type != aten::ScalarType::Int) ||
      graph.tensor(data).scalar_type() != graph.tensor(out).scalar_type()) {
    return;
  }
  const Graph::Chain chains[] = {graph.strip(data, block), graph.strip(index, block)};
  if (chains[0].steps.empty() && chains[1].steps.empty()) return;
  auto* const call = arena.make<GatherCall>();
  if (call == nullptr) return;
  std::vector<int> inputs;
  for (const Graph::Chain& chain : chains) add_inputs(graph, chain, inputs);
  call->data = arena.operand(graph, chains[0]);
  call->index = arena.operand(graph, chains[1]);
  call->dim = graph.arg(node, 1);
  call->run = run_gather;
  call->name = "gather";
  call->out = graph.values()[out].value;
  if (arena.ok()) graph.replace(node, call, inputs);
}

}  // namespace

void fuse_gather(Graph& graph, Arena& arena) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    if (graph.is(n, "gather.out") && graph.nodes()[n].live && graph.deferrable(n)) {
      match(graph, arena, n);
    }
  }
}

}  // namespace executorch::optimized
