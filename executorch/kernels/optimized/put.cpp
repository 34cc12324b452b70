#include <executorch/cpu/nn/copy.h>
#include <executorch/cpu/nn/elementwise.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/optimized/loops.h>
#include <executorch/kernels/optimized/patterns.h>

namespace executorch::optimized {
namespace {

using aten::ScalarType;

enum Who { kValues, kBuffer, kCount };

/// Writes rows [first, end) of one dimension of a buffer, which is `out`. Floats are converted to
/// half precision if the buffer has it.
struct PutCall : FusedCall {
  Operand values;
  int64_t dim = 0;
  EValue* first = nullptr;
  EValue* end = nullptr;
};

// Computes the view of the rows that are written. Returns false if the buffer does not have these
// rows.
bool find_rows(const PutCall& call, View& rows) {
  rows = View(call.out->toTensor());
  if (!rows.valid() || call.dim >= rows.ndim() || !call.first->isInt() || !call.end->isInt()) {
    return false;
  }
  const int64_t first = call.first->toInt(), end = call.end->toInt();
  return first >= 0 && first < end && end <= rows.size(static_cast<int>(call.dim)) &&
         rows.slice(call.dim, first, end, 1);
}

// Copies and converts runs of contiguous elements. Returns false if no elements are contiguous.
template <class T>
bool convert_runs(const Loops<kCount>& loops, const float* from, T* to) {
  constexpr int64_t kGrainElements = 1 << 14;
  const auto& run = loops.loops[0];
  if (loops.n == 0 || run.stride[kValues] != 1 || run.stride[kBuffer] != 1) return false;
  int64_t n_runs = 1;
  for (int i = 1; i < loops.n; ++i) n_runs *= loops.loops[i].size;
  cpu::parallel_for(n_runs, kGrainElements / run.size + 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t at[kCount];
      loops.locate(r, 1, at);
      cpu::convert(from + at[kValues], to + at[kBuffer], run.size);
    }
  });
  return true;
}

void copy_elements(const Loops<kCount>& loops, size_t element_size, const void* from, void* to) {
  cpu::Copy::Dim dims[Loops<kCount>::kMost];
  for (int i = 0; i < loops.n; ++i) {
    const auto& loop = loops.loops[loops.n - 1 - i];
    dims[i] = {loop.size, loop.stride[kValues], loop.stride[kBuffer]};
  }
  cpu::Copy copy;
  copy.dims = dims;
  copy.n_dims = loops.n;
  copy.element_size = element_size;
  copy.src = from;
  copy.dst = to;
  copy.run();
}

bool run_put(const FusedCall& base, KernelRuntimeContext&) {
  const auto& call = static_cast<const PutCall&>(base);
  View views[kCount] = {call.values.view(), View()};
  if (!find_rows(call, views[kBuffer]) || !views[kValues].same_sizes(views[kBuffer])) return false;
  Loops<kCount> loops;
  for (int d = views[kBuffer].ndim(); d-- > 0;) {
    if (!loops.add(views, d)) return false;
  }
  const Tensor& buffer = call.out->toTensor();
  const void* const from = call.values.data(views[kValues]);
  void* const to = static_cast<char*>(buffer.mutable_data_ptr()) +
                   views[kBuffer].offset() * buffer.element_size();
  if (call.values.tensor().scalar_type() == buffer.scalar_type()) {
    copy_elements(loops, static_cast<size_t>(buffer.element_size()), from, to);
    return true;
  }
  if (call.values.tensor().scalar_type() != ScalarType::Float) return false;
  const auto* const floats = static_cast<const float*>(from);
  switch (buffer.scalar_type()) {
    case ScalarType::Half:
      return convert_runs(loops, floats, static_cast<cpu::F16*>(to));
    case ScalarType::BFloat16:
      return convert_runs(loops, floats, static_cast<cpu::BF16*>(to));
    default:
      return false;
  }
}

class Match {
 public:
  Match(Graph& graph, Arena& arena, int node)
      : graph_(graph), arena_(arena), node_(node), block_(graph.nodes()[node].block) {}

  void run() {
    const int buffer = graph_.nodes()[node_].written;
    const int values = graph_.arg_id(node_, 2);
    if (!graph_.stable(values) || !default_order(graph_.tensor(buffer)) ||
        graph_.tensor(buffer).scalar_type() != graph_.tensor(values).scalar_type() ||
        graph_.constant_number(graph_.arg(node_, 3)) != 0.0 || !find_dim()) {
      return;
    }
    Graph::Chain chain = with_cast(graph_.strip(values, block_));
    // The bytes of an input may have been reused by the time the fused instruction runs.
    if (graph_.values()[chain.base].input) chain = {values, {}};
    if (!overlap(buffer, graph_.values()[chain.base].root)) emit(buffer, chain);
  }

 private:
  // If the chain begins with the result of a cast from float to half precision, returns one that
  // begins with floats, before the cast.
  Graph::Chain with_cast(Graph::Chain chain) const {
    const int n = graph_.def(chain.base);
    const auto type_of = [&](int v) { return graph_.tensor(v).scalar_type(); };
    if (!graph_.is_cast(n) || !graph_.interior(chain.base, block_) || !graph_.deferrable(n) ||
        type_of(chain.base) == ScalarType::Float ||
        type_of(graph_.arg_id(n, 0)) != ScalarType::Float ||
        !default_order(graph_.tensor(chain.base))) {
      return chain;
    }
    Graph::Chain whole = graph_.strip(graph_.arg_id(n, 0), block_);
    whole.steps.insert(whole.steps.end(), chain.steps.begin(), chain.steps.end());
    return whole;
  }

  bool overlap(int a, int b) const {
    const auto &x = graph_.values()[a], &y = graph_.values()[b];
    return x.data < y.data + y.nbytes && y.data < x.data + x.nbytes;
  }

  // Finds the indexed dimension: the list of indices has a null item for each dimension before it.
  bool find_dim() {
    const auto items =
        graph_.arg(node_, 1)->payload.copyable_union.as_list_optional_tensor_ptr->values();
    for (size_t d = 0; d < items.size(); ++d) {
      if (items[d] == nullptr || items[d]->isNone()) continue;
      dim_ = static_cast<int64_t>(d);
      return d + 1 == items.size() && find_numbers(graph_.id(items[d]));
    }
    return false;
  }

  bool find_numbers(int positions) {
    const int n = graph_.def(positions);
    if (!graph_.is(n, "arange.start_out") || !graph_.interior(positions, block_) ||
        !graph_.deferrable(n) || graph_.constant_number(graph_.arg(n, 2)) != 1.0 ||
        graph_.tensor(positions).scalar_type() != ScalarType::Long) {
      return false;
    }
    first_ = graph_.arg_id(n, 0);
    end_ = graph_.arg_id(n, 1);
    return true;
  }

  void emit(int buffer, const Graph::Chain& chain) {
    auto* const call = arena_.make<PutCall>();
    if (call == nullptr) return;
    std::vector<int> inputs = {buffer, first_, end_};
    add_inputs(graph_, chain, inputs);
    call->values = arena_.operand(graph_, chain);
    call->dim = dim_;
    call->first = graph_.values()[first_].value;
    call->end = graph_.values()[end_].value;
    call->run = run_put;
    call->name = "put";
    call->out = graph_.values()[buffer].value;
    if (arena_.ok()) graph_.replace(node_, call, inputs);
  }

  Graph& graph_;
  Arena& arena_;
  const int node_;
  const int block_;
  int64_t dim_ = 0;
  int first_ = -1, end_ = -1;
};

}  // namespace

void fuse_put(Graph& graph, Arena& arena) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    if (graph.is(n, "index_put_")) Match(graph, arena, n).run();
  }
}

}  // namespace executorch::optimized
