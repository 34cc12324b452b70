#include <executorch/cpu/nn/expression.h>
#include <executorch/kernels/optimized/loops.h>
#include <executorch/kernels/optimized/patterns.h>

#include <set>

namespace executorch::optimized {
namespace {

using cpu::Activation;
using cpu::Expression;
using Op = Expression::Op;

constexpr int kInputs = Expression::kMaxInputs;
// The most instructions of one pass. With more, registers rarely suffice.
constexpr size_t kMostNodes = 24;
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

// The steps of an expression that compute an instruction. Registers are filled in later.
struct Computation {
  Expression::Step steps[2];
  int n_steps = 0;
  // The values that a and b of the first step read; -1 if there is none.
  int a = -1, b = -1;
};

// Whether node n converts between two different types that the engine stores.
bool is_cast(const Graph& graph, int n) {
  return graph.is_cast(n) &&
         graph.tensor(graph.arg_id(n, 0)).scalar_type() != graph.tensor(graph.out(n)).scalar_type();
}

class Translator {
 public:
  explicit Translator(const Graph& graph) : graph_(graph) {}

  std::optional<Computation> translate(int n) const {
    const std::string_view op = graph_.nodes()[n].op;
    if (op == "add.out" || op == "sub.out") return sum(n, op == "add.out");
    if (op == "mul.out") return product(n);
    if (op == "div.out") return quotient(n);
    if (op == "maximum.out") return binary(n, Op::Maximum);
    if (op == "minimum.out") return binary(n, Op::Minimum);
    if (op == "atan2.out") return binary(n, Op::Atan2);
    if (op == "add.Scalar_out" && alpha(n)) return linear(n, 1, number(n));
    if (op == "sub.Scalar_out" && alpha(n)) return linear(n, 1, negative(number(n)));
    if (op == "rsub.Scalar_out" && alpha(n)) return linear(n, -1, number(n));
    if (op == "mul.Scalar_out") return linear(n, number(n), 0);
    if (op == "div.Scalar_out") return scaled(n, Op::Quotient, 0, number(n));
    if (op == "neg.out") return linear(n, -1, 0);
    if (op == "reciprocal.out") return scaled(n, Op::Over, 0, 1);
    if (op == "abs.out") return with(n, {.op = Op::Abs});
    if (op == "pow.Tensor_Scalar_out") return power(n);
    if (is_cast(graph_, n)) return with(n, {.op = Op::Act});
#define ET_ROW(name, function) \
  if (op == #function ".out") return of_function(n, cpu::Function::name);
    ET_FUNCTIONS(ET_ROW)
#undef ET_ROW
    return activation(n, op);
  }

 private:
  std::optional<double> number(int n) const {
    return graph_.constant_number(graph_.arg(n, 1));
  }
  static std::optional<double> negative(std::optional<double> x) {
    return x.has_value() ? std::optional(-*x) : x;
  }
  bool alpha(int n) const {
    return graph_.constant_number(graph_.arg(n, 2)) == 1.0;
  }
  // The constant number that argument i of node n is; nothing if it is no such number.
  std::optional<double> element(int n, size_t i) const {
    const int v = graph_.arg_id(n, i);
    return graph_.is_tensor(v) && graph_.tensor(v).dim() <= 1 ? graph_.constant_element(v)
                                                              : std::nullopt;
  }

  Computation with(int n, const Expression::Step& step, int a = 0, int b = -1) const {
    Computation c;
    c.steps[c.n_steps++] = step;
    c.a = graph_.arg_id(n, static_cast<size_t>(a));
    c.b = b < 0 ? -1 : graph_.arg_id(n, static_cast<size_t>(b));
    return c;
  }
  std::optional<Computation> of_function(int n, cpu::Function function) const {
    return with(n, {.op = Op::Apply, .function = function});
  }
  std::optional<Computation> binary(int n, Op op) const {
    return with(n, {.op = op}, 0, 1);
  }
  std::optional<Computation> scaled(int n, Op op, int a, std::optional<double> number) const {
    if (!number.has_value()) return std::nullopt;
    return with(n, {.op = op, .scale = static_cast<float>(*number)}, a);
  }
  std::optional<Computation> linear(int n, std::optional<double> scale, std::optional<double> shift,
                                    int a = 0) const {
    if (!scale.has_value() || !shift.has_value()) return std::nullopt;
    return with(n,
                {.op = Op::Linear,
                 .scale = static_cast<float>(*scale),
                 .shift = static_cast<float>(*shift)},
                a);
  }

  std::optional<Computation> sum(int n, bool plus) const {
    if (!alpha(n)) return std::nullopt;
    if (const auto y = element(n, 1)) return linear(n, 1, plus ? *y : -*y);
    if (const auto x = element(n, 0)) return linear(n, plus ? 1 : -1, *x, 1);
    return binary(n, plus ? Op::Add : Op::Subtract);
  }
  std::optional<Computation> product(int n) const {
    if (const auto y = element(n, 1)) return linear(n, *y, 0);
    if (const auto x = element(n, 0)) return linear(n, *x, 0, 1);
    return binary(n, Op::Multiply);
  }
  std::optional<Computation> quotient(int n) const {
    if (const auto y = element(n, 1)) return scaled(n, Op::Quotient, 0, *y);
    if (const auto x = element(n, 0)) return scaled(n, Op::Over, 1, *x);
    return binary(n, Op::Divide);
  }
  std::optional<Computation> power(int n) const {
    const auto exponent = number(n);
    if (exponent == 0.5) return of_function(n, cpu::Function::Sqrt);
    if (exponent != 2.0 && exponent != 3.0) return std::nullopt;
    Computation c = with(n, {.op = Op::Multiply});
    c.b = c.a;
    // x^3: the second step multiplies x^2 by x.
    if (exponent == 3.0) c.steps[c.n_steps++] = {.op = Op::Multiply};
    return c;
  }

  std::optional<Computation> activation(int n, std::string_view op) const {
    Expression::Step step = {.op = Op::Act};
    Activation& act = step.act;
    using Kind = Activation::Kind;
    if (op == "relu.out") {
      act = cpu::relu();
    } else if (op == "sigmoid.out") {
      act.kind = Kind::Sigmoid;
    } else if (op == "tanh.out") {
      act.kind = Kind::Tanh;
    } else if (op == "gelu.out" && graph_.arg(n, 1)->isString()) {
      act.kind = graph_.arg(n, 1)->toString() == "tanh" ? Kind::GeluTanh : Kind::Gelu;
    } else if (op == "hardtanh.out" || op == "clamp.out") {
      act.kind = Kind::Clamp;
      if (!bound(n, 1, act.low) || !bound(n, 2, act.high)) return std::nullopt;
    } else {
      return std::nullopt;
    }
    return with(n, step);
  }
  bool bound(int n, size_t i, float& bound) const {
    const auto known = graph_.constant_number(graph_.arg(n, i));
    if (known.has_value()) bound = static_cast<float>(*known);
    return known.has_value() || graph_.arg(n, i)->isNone();
  }

  const Graph& graph_;
};

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
    if (!usable(root_)) return;
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
    const auto fits = [&](int v) { return v < 0 || (graph_.is_float(v) && graph_.stable(v)); };
    return known_[n].has_value() && graph_.is_float(graph_.out(n)) && graph_.deferrable(n) &&
           fits(graph_.out(n)) && fits(known_[n]->a) && fits(known_[n]->b);
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
        for (int v : {known_[n]->a, known_[n]->b}) {
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
      for (int v : {known_[n]->a, known_[n]->b}) {
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
      const int a = find(holds, c.a), b = c.b < 0 ? a : find(holds, c.b);
      const int to = free_register(holds, input_values.size(), n);
      if (a < 0 || b < 0 || to < 0) return false;
      for (int s = 0; s < c.n_steps; ++s) {
        Expression::Step step = c.steps[s];
        step.to = static_cast<uint8_t>(to);
        step.a = static_cast<uint8_t>(s == 0 ? a : to);
        step.b = static_cast<uint8_t>(b);
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
  const Translator translator(graph);
  std::vector<std::optional<Computation>> known(static_cast<size_t>(n_nodes));
  for (int n = 0; n < n_nodes; ++n) {
    if (graph.nodes()[n].fused == nullptr && graph.nodes()[n].live) {
      known[static_cast<size_t>(n)] = translator.translate(n);
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
