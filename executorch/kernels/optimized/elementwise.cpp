#include <executorch/kernels/optimized/elementwise_steps.h>
#include <executorch/kernels/optimized/loops.h>
#include <executorch/kernels/optimized/patterns.h>

#include <set>

namespace executorch::optimized {
namespace {

using cpu::Expression;

constexpr int kInputs = Expression::kMaxInputs;
// The most instructions of one pass. With more, registers rarely suffice.
constexpr size_t kMostNodes = 24;
static_assert(kMostNodes * std::size(Computation{}.steps) <= Expression::kMaxSteps);
// The least size of the innermost loop, and of the two innermost, for which interpreting the steps
// is worthwhile.
constexpr int64_t kShortest = 8;
constexpr int64_t kFewest = 64;

// An expression but for the addresses: inputs begin `offset` bytes behind those of their tensors.
struct Prepared {
  Expression expression;
  int64_t offset[kInputs] = {};
  bool is_known = false;
};

struct ElementwiseCall : FusedCall {
  Span<const Operand> inputs;
  cpu::Type in_types[kInputs] = {};
  bool is_bool[kInputs] = {};
  Span<const Expression::Step> steps;
  // Where all calls have the same sizes and views: what the first call prepares for the others.
  Prepared* fixed = nullptr;
};

// ---- At run time.

using TileLoops = Loops<kInputs + 1>;

// Computes the shape that all inputs broadcast to.
bool broadcast(const View* views, size_t n, View& shape) {
  int64_t sizes[View::kMaxDims];
  int rank = 0;
  for (size_t w = 0; w < n; ++w) rank = std::max(rank, views[w].ndim());
  std::fill_n(sizes, rank, 1);
  for (size_t w = 0; w < n; ++w) {
    for (int d = 0; d < views[w].ndim(); ++d) {
      int64_t& size = sizes[rank - views[w].ndim() + d];
      const int64_t own = views[w].size(d);
      if (own != 1 && size != 1 && own != size) return false;
      size = std::max(size, own);
    }
  }
  shape = View(sizes, rank);
  return shape.valid();
}

// Writes the dimensions of `view` in the order in which they lie in memory, outermost first, to
// `order`.
int order_of(const View& view, int64_t (&order)[View::kMaxDims]) {
  int64_t strides[View::kMaxDims];
  for (int d = 0; d < view.ndim(); ++d) {
    order[d] = d;
    if (!view.stride(d, strides[d])) return -1;
  }
  std::stable_sort(order, order + view.ndim(),
                   [&](int64_t a, int64_t b) { return strides[a] > strides[b]; });
  return view.ndim();
}

bool build_loops(const ElementwiseCall& call, View (&views)[kInputs + 1], TileLoops& loops) {
  const size_t n = call.inputs.size();
  for (size_t w = 0; w < n; ++w) {
    views[w] = call.inputs[w].view();
    if (!views[w].valid()) return false;
  }
  View shape;
  const Tensor& out = call.out->toTensor();
  if (!broadcast(views, n, shape) || !resize(out, shape)) return false;
  views[kInputs] = View(out);
  int64_t order[View::kMaxDims];
  const int rank = order_of(views[kInputs], order);
  const int64_t all[] = {out.numel()}, one[] = {1};
  for (size_t w = 0; w <= kInputs; ++w) {
    if (w >= n && w < kInputs) {
      views[w] = View(one, 1);
    } else if ((w < n && !views[w].expand_as(shape)) || !views[w].permute(order, rank) ||
               !views[w].reshape(all, 1)) {
      return false;
    }
  }
  return loops.add(views, 0);
}

bool prepare(const ElementwiseCall& call, Prepared& prepared) {
  View views[kInputs + 1];
  TileLoops loops;
  if (!build_loops(call, views, loops)) return false;
  if (loops.n > 1 && loops.loops[0].size < kShortest &&
      loops.loops[0].size * loops.loops[1].size < kFewest) {
    return false;
  }
  Expression& e = prepared.expression;
  e.type = engine_type(call.out->toTensor());
  e.n_inputs = static_cast<int>(call.inputs.size());
  e.mixed = true;
  for (size_t w = 0; w < call.inputs.size(); ++w) {
    prepared.offset[w] = views[w].offset() * call.inputs[w].tensor().element_size();
    e.in_types[w] = call.in_types[w];
    e.is_bool[w] = call.is_bool[w];
  }
  e.steps = call.steps.data();
  e.n_steps = static_cast<int>(call.steps.size());
  e.n_dims = std::max(1, loops.n);
  for (int d = 0; d < loops.n; ++d) {
    e.dims[d].size = loops.loops[d].size;
    std::copy_n(loops.loops[d].stride, kInputs, e.dims[d].in);
    e.dims[d].out = loops.loops[d].stride[kInputs];
  }
  prepared.is_known = true;
  return true;
}

bool run_prepared(const ElementwiseCall& call, Prepared& prepared) {
  if (!prepared.is_known && !prepare(call, prepared)) return false;
  Expression& e = prepared.expression;
  for (size_t w = 0; w < call.inputs.size(); ++w) {
    const auto* const data = static_cast<const char*>(call.inputs[w].tensor().const_data_ptr());
    e.inputs[w] = data + prepared.offset[w];
  }
  e.out = call.out->toTensor().mutable_data_ptr();
  e.run();
  return true;
}

bool run_elementwise(const FusedCall& base, KernelRuntimeContext&) {
  const auto& call = static_cast<const ElementwiseCall&>(base);
  if (call.fixed != nullptr) return run_prepared(call, *call.fixed);
  Prepared prepared;
  return run_prepared(call, prepared);
}

static_assert(TileLoops::kMost <= Expression::kMaxDims);

// ---- When a method is loaded.

// Whether the innermost dimension stays innermost when a value is read through `step`.
bool keeps_rows(const Step& step) {
  const auto rank = static_cast<int64_t>(step.args[0]->toTensor().dim());
  const auto is_last = [&](const EValue* dim) {
    return dim->isInt() && (dim->toInt() == -1 || dim->toInt() == rank - 1);
  };
  switch (step.kind) {
    case Step::Kind::Permute: {
      const auto dims = step.args[1]->payload.copyable_union.as_int_list_ptr->values();
      return dims.size() > 0 && is_last(dims[dims.size() - 1]);
    }
    case Step::Kind::Transpose:
      return !is_last(step.args[1]) && !is_last(step.args[2]);
    case Step::Kind::Transpose2d:
      return false;
    case Step::Kind::Select:
    case Step::Kind::Unbind:
      return !is_last(step.args[1]);
    default:
      return true;
  }
}

class Match {
 public:
  Match(Graph& graph, Arena& arena, const std::vector<std::optional<Computation>>& known, int root)
      : graph_(graph),
        arena_(arena),
        known_(known),
        root_(root),
        block_(graph.nodes()[root].block),
        region_{root} {}

  void run() {
    if (!usable(root_) || known_[root_]->gives_bool) return;
    grow();
    while (!assign()) {
      if (region_.size() == 1) return;
      region_.erase(region_.begin());  // the earliest, whose result becomes an input
    }
    const bool copies = std::any_of(inputs_.begin(), inputs_.end(), [](const Graph::Chain& c) {
      return std::any_of(c.steps.begin(), c.steps.end(),
                         [](const Step& s) { return !s.keeps_order(); });
    });
    // A pass that consists of casts only would not be worth interpreting.
    const bool computes =
        std::any_of(region_.begin(), region_.end(), [&](int n) { return !is_cast(graph_, n); });
    if (computes && (region_.size() > 1 || copies)) emit();
  }

 private:
  bool usable(int n) const {
    if (!known_[n].has_value() || !graph_.deferrable(n)) return false;
    const Computation& c = *known_[n];
    const auto fits = [&](int v, bool is_bool) {
      return v < 0 || ((is_bool ? graph_.is_bool(v) : graph_.is_float(v)) && graph_.stable(v));
    };
    return fits(graph_.out(n), c.gives_bool) && fits(c.operands[0], c.is_bool[0]) &&
           fits(c.operands[1], c.is_bool[1]) && fits(c.operands[2], c.is_bool[2]);
  }

  // Whether node n is a cast to a narrower type, so that its result is rounded and a register is
  // not.
  bool rounds(int n) const {
    return is_cast(graph_, n) &&
           graph_.tensor(graph_.out(n)).scalar_type() != aten::ScalarType::Float;
  }

  // Adds producers whose results have the shape of the root's result and are read in this pass
  // only.
  void grow() {
    const auto& shape = graph_.tensor(graph_.out(root_)).sizes();
    for (bool grown = true; grown && region_.size() < kMostNodes;) {
      grown = false;
      for (int n : std::set<int>(region_)) {
        for (int v : known_[n]->operands) {
          const int maker = v < 0 ? -1 : graph_.def(v);
          if (maker < 0 || region_.count(maker) > 0 || !graph_.interior(v, block_) ||
              !graph_.nodes()[maker].live || !usable(maker) || rounds(maker) ||
              !graph_.tensor(v).sizes().equals(shape)) {
            continue;
          }
          const auto& uses = graph_.values()[v].uses;
          if (uses.size() > region_.size()) continue;
          const bool here = std::all_of(uses.begin(), uses.end(),
                                        [&](int use) { return region_.count(use) > 0; });
          if (!here) continue;
          region_.insert(maker);
          grown = true;
        }
      }
    }
  }

  // Assigns registers: inputs first, then results of steps. Returns false if there are not enough.
  bool assign() {
    inputs_.clear();
    steps_.clear();
    std::vector<int> input_values;
    const auto is_inside = [&](int v) {
      return graph_.def(v) >= 0 && region_.count(graph_.def(v)) > 0;
    };
    for (int n : region_) {
      for (int v : known_[n]->operands) {
        if (v < 0 || is_inside(v)) continue;
        if (std::find(input_values.begin(), input_values.end(), v) == input_values.end()) {
          input_values.push_back(v);
          inputs_.push_back(graph_.strip(v, block_, keeps_rows));
        }
      }
    }
    if (input_values.size() > kInputs) return false;
    std::vector<int> holds = input_values;  // which value a register has
    for (int n : region_) {
      const Computation& c = *known_[n];
      int from[3];
      for (int i = 0; i < 3; ++i) from[i] = find(holds, c.operands[c.operands[i] < 0 ? 0 : i]);
      const int to = free_register(holds, input_values.size(), n);
      if (*std::min_element(from, from + 3) < 0 || to < 0) return false;
      for (int s = 0; s < c.n_steps; ++s) {
        Expression::Step step = c.steps[s];
        step.to = static_cast<uint8_t>(to);
        step.a = static_cast<uint8_t>(s == 0 ? from[0] : to);
        step.b = static_cast<uint8_t>(from[1]);
        step.c = static_cast<uint8_t>(from[2]);
        steps_.push_back(step);
      }
      holds[static_cast<size_t>(to)] = graph_.out(n);
    }
    return true;
  }
  static int find(const std::vector<int>& holds, int v) {
    const auto at = std::find(holds.begin(), holds.end(), v);
    return at == holds.end() ? -1 : static_cast<int>(at - holds.begin());
  }
  // A register whose value no node from n on reads (a second step of n may read its operand again).
  int free_register(std::vector<int>& holds, size_t n_inputs, int n) const {
    for (size_t r = n_inputs; r < holds.size(); ++r) {
      const auto& uses = graph_.values()[holds[r]].uses;
      if (uses.empty() || uses.back() < n) return static_cast<int>(r);
    }
    if (holds.size() == Expression::kMaxRegisters) return -1;
    holds.push_back(-1);
    return static_cast<int>(holds.size()) - 1;
  }

  // Whether a chain's views are the same in every call.
  bool is_fixed(const Graph::Chain& chain) const {
    const auto is_known = [&](const EValue* value) {
      if (!value->isTensor()) return !value->isInt() || graph_.constant_number(value).has_value();
      return value->toTensor().shape_dynamism() == aten::TensorShapeDynamism::STATIC;
    };
    bool all = is_known(graph_.values()[chain.base].value);
    for (const Step& step : chain.steps) {
      for (const EValue* arg : step.args) {
        all = all && is_known(arg);
        for_each_item(*arg, [&](const EValue* item) { all = all && is_known(item); });
      }
    }
    return all;
  }

  void emit() {
    auto* const call = arena_.make<ElementwiseCall>();
    if (call == nullptr) return;
    const auto fixed = [&](const Graph::Chain& chain) { return is_fixed(chain); };
    if (std::all_of(inputs_.begin(), inputs_.end(), fixed)) call->fixed = arena_.make<Prepared>();
    std::vector<int> inputs;
    std::vector<Operand> operands;
    for (const auto& chain : inputs_) {
      call->in_types[operands.size()] = engine_type(graph_.tensor(chain.base));
      call->is_bool[operands.size()] = graph_.is_bool(chain.base);
      add_inputs(graph_, chain, inputs);
      operands.push_back(arena_.operand(graph_, chain));
    }
    const auto copied = arena_.copy(operands);
    const auto steps = arena_.copy(steps_);
    call->inputs = {copied.data(), copied.size()};
    call->steps = {steps.data(), steps.size()};
    call->run = run_elementwise;
    call->name = "elementwise";
    call->out = graph_.values()[graph_.out(root_)].value;
    if (arena_.ok()) graph_.replace(root_, call, inputs);
  }

  Graph& graph_;
  Arena& arena_;
  const std::vector<std::optional<Computation>>& known_;
  const int root_;
  const int block_;
  std::set<int> region_;
  std::vector<Graph::Chain> inputs_;
  std::vector<Expression::Step> steps_;
};

}  // namespace

void fuse_elementwise(Graph& graph, Arena& arena) {
  const int n_nodes = static_cast<int>(graph.nodes().size());
  std::vector<std::optional<Computation>> known(static_cast<size_t>(n_nodes));
  for (int n = 0; n < n_nodes; ++n) {
    if (graph.nodes()[n].fused == nullptr && graph.nodes()[n].live) {
      known[static_cast<size_t>(n)] = translate(graph, n);
    }
  }
  // Backwards, so that a chain is found from its last node and taken as a whole.
  for (int n = n_nodes - 1; n >= 0; --n) {
    if (!graph.nodes()[n].live || !known[static_cast<size_t>(n)].has_value()) continue;
    if (!graph.deferrable(n)) continue;
    Match(graph, arena, known, n).run();
    if (graph.nodes()[n].fused != nullptr) graph.refresh();
  }
}

}  // namespace executorch::optimized
