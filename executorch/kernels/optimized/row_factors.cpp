#include <executorch/kernels/optimized/elementwise_steps.h>
#include <executorch/kernels/optimized/linear_call.h>
#include <executorch/kernels/optimized/patterns.h>

#include <algorithm>
#include <string>

namespace executorch::optimized {
namespace {

int64_t last_size(const Tensor& tensor) {
  return tensor.dim() > 0 ? tensor.size(tensor.dim() - 1) : 0;
}

/// A product by one factor a row, and what is computed for it alone.
class Match {
 public:
  Match(Graph& graph, Arena& arena, int root)
      : graph_(graph), arena_(arena), root_(root), block_(graph.nodes()[root].block) {}

  void run() {
    const Tensor& y = graph_.tensor(graph_.out(root_));
    if (last_size(y) < 2 || !is_only_added() || !has_one_dim_of_rows(y)) return;
    n_rows_ = y.numel() / last_size(y);
    const int a = graph_.arg_id(root_, 0), b = graph_.arg_id(root_, 1);
    for (const auto& [rows, factor] : {std::pair(a, b), std::pair(b, a)}) {
      if (!is_factor(factor) || !has_rows(rows) || last_size(graph_.tensor(rows)) == 1) continue;
      collect(rows);
      const Graph::Chain chain = graph_.strip(factor, block_);
      for (const int n : products_) give(n, chain);
      return;
    }
  }

 private:
  using Nodes = std::vector<int>;

  /// Perhaps after a conversion to the type of the sum.
  bool is_only_added() const {
    int v = graph_.out(root_), use = graph_.only_use(v);
    while (is_cast(graph_, use) && graph_.interior(v, block_)) {
      v = graph_.out(use);
      use = graph_.only_use(v);
    }
    return graph_.is(use, "add.out") && graph_.interior(v, block_);
  }

  /// Otherwise, if sizes change from call to call, tensors that broadcast against each other could
  /// have as many rows, but not the same ones.
  static bool has_one_dim_of_rows(const Tensor& y) {
    const auto sizes = y.sizes().slice(0, static_cast<size_t>(y.dim() - 1));
    return std::count_if(sizes.begin(), sizes.end(), [](int64_t size) { return size > 1; }) <= 1;
  }

  bool is_factor(int v) const {
    if (!graph_.is_float(v) || !graph_.stable(v)) return false;
    const Tensor &t = graph_.tensor(v), &y = graph_.tensor(graph_.out(root_));
    return t.dim() == y.dim() && last_size(t) == 1 && t.numel() == n_rows_;
  }

  bool has_rows(int v) const {
    if (!graph_.is_float(v)) return false;
    const Tensor& t = graph_.tensor(v);
    return last_size(t) > 0 && t.numel() / last_size(t) == n_rows_ && default_order(t);
  }
  bool has_same_rows(int v, int other) const {
    return has_rows(v) && last_size(graph_.tensor(v)) == last_size(graph_.tensor(other));
  }

  /// Whether a step neither joins nor reorders rows of `size` elements.
  bool keeps_rows(const Step& step, int64_t size) const {
    switch (step.kind) {
      case Step::Kind::Same:
        return true;
      case Step::Kind::Reshape: {
        const auto& list = *step.args[1]->payload.copyable_union.as_int_list_ptr;
        return !list.values().empty() && list.values().back() != nullptr &&
               graph_.constant_number(list.values().back()) == static_cast<double>(size);
      }
      case Step::Kind::ReshapeAs:
        return last_size(step.args[1]->toTensor()) == size;
      default:
        return false;
    }
  }

  bool keep_rows(Span<const Step> steps, int64_t size) const {
    return std::all_of(steps.begin(), steps.end(),
                       [&](const Step& step) { return keeps_rows(step, size); });
  }

  /// Whether the node divides rows, or takes a part of each.
  bool is_part(int n) const {
    const auto step = graph_.step(n, graph_.out(n));
    const int from = graph_.arg_id(n, 0);
    if (!step.has_value() || !has_rows(from)) return false;
    const Nodes& outputs = graph_.nodes()[n].outputs;
    if (!std::all_of(outputs.begin(), outputs.end(),
                     [&](int v) { return !graph_.is_tensor(v) || has_rows(v); })) {
      return false;
    }
    const int64_t size = last_size(graph_.tensor(from));
    const auto is_dim = [&](size_t i) {
      const auto dim = graph_.constant_number(graph_.arg(n, i));
      return dim == -1.0 || dim == static_cast<double>(graph_.tensor(from).dim() - 1);
    };
    const auto is_constant = [&](size_t i) {
      return graph_.arg(n, i)->isNone() || graph_.constant_number(graph_.arg(n, i)).has_value();
    };
    switch (step->kind) {
      case Step::Kind::Slice:
        return is_dim(1) && is_constant(2) && is_constant(3) && is_constant(4);
      case Step::Kind::Split:
        return is_dim(2) && is_constant(1);
      case Step::Kind::SplitSizes: {
        bool constant = graph_.arg(n, 1)->isIntList();
        for_each_item(*graph_.arg(n, 1), [&](const EValue* item) {
          constant = constant && graph_.constant_number(item).has_value();
        });
        return is_dim(2) && constant;
      }
      default:
        return size == last_size(graph_.tensor(graph_.out(n))) && keeps_rows(*step, size);
    }
  }

  static bool contains(const Nodes& nodes, int n) {
    return std::find(nodes.begin(), nodes.end(), n) != nodes.end();
  }
  template <class F>
  bool all_readers(int n, const F& f) const {
    const Nodes& outputs = graph_.nodes()[n].outputs;
    return std::all_of(outputs.begin(), outputs.end(), [&](int v) {
      const Nodes& uses = graph_.values()[v].uses;
      return std::all_of(uses.begin(), uses.end(), f);
    });
  }
  bool is_read_here(int n) const {
    return all_readers(n, [&](int use) { return use == root_ || contains(nodes_, use); });
  }
  /// Whether only products that leave out the rows read what the node computes.
  bool is_inner(int n) const {
    return all_readers(n,
                       [&](int use) { return contains(products_, use) || contains(inner_, use); });
  }
  /// Whether 0 gives a finite number, where the other operands are finite: times a factor of 0 that
  /// is 0, as what was not computed would have given.
  static bool is_finite_at_zero(const Computation& computation) {
    using Op = cpu::Expression::Op;
    switch (computation.steps[0].op) {
      case Op::Add:
      case Op::Subtract:
      case Op::Multiply:
      case Op::Linear:
      case Op::Act:
        return true;
      default:
        return false;
    }
  }

  /// Goes back from a value to the products that only it, and values like it, are computed from. A
  /// node with several readers is looked at again after each of them.
  void collect(int start) {
    Nodes pending = {start};
    while (!pending.empty() && nodes_.size() < kMostNodes) {
      const int v = pending.back(), n = graph_.interior(v, block_) ? graph_.def(v) : -1;
      pending.pop_back();
      graph_.effort().spend(32);
      if (n < 0 || !graph_.nodes()[n].live || contains(nodes_, n)) continue;
      if (!has_rows(v) || !is_read_here(n)) continue;
      const LinearCall* const call = linear_call(graph_, arena_, n);
      if (call != nullptr) {
        if (add_product(n, *call)) pending.push_back(graph_.id(call->a.base));
        continue;
      }
      if (!graph_.deferrable(n)) continue;
      const auto computation = translate(graph_, n);
      const bool inner = is_inner(n);
      if (computation.has_value() && (inner || is_finite_at_zero(*computation))) {
        add(n, inner);
        for (const int operand : computation->operands) {
          if (operand >= 0 && has_same_rows(operand, v)) pending.push_back(operand);
        }
      } else if (is_part(n)) {
        add(n, inner);
        pending.push_back(graph_.arg_id(n, 0));
      }
    }
  }
  void add(int n, bool inner) {
    nodes_.push_back(n);
    if (inner) inner_.push_back(n);
  }
  /// Returns whether what the product reads has its rows.
  bool add_product(int n, const LinearCall& call) {
    // Constant weights have the same sizes in every call, and so have the rows of their products.
    if (call.residual.present || !graph_.values()[graph_.id(call.b.base)].constant ||
        !keep_rows(call.out_steps, last_size(call.out->toTensor()))) {
      return false;
    }
    nodes_.push_back(n);
    products_.push_back(n);
    const int a = graph_.id(call.a.base);
    return has_rows(a) && keep_rows(call.a.steps, last_size(graph_.tensor(a)));
  }

  /// Lets product n look at the factors, if they are computed before it.
  void give(int n, const Graph::Chain& factor) {
    Nodes inputs = graph_.nodes()[n].inputs;
    add_inputs(graph_, factor, inputs);
    const auto is_before = [&](int v) { return graph_.def(v) < n; };
    if (!std::all_of(inputs.begin(), inputs.end(), is_before)) return;
    const Operand operand = arena_.operand(graph_, factor);
    LinearCall* const call = linear_call(graph_, arena_, n);
    if (call == nullptr || !arena_.ok()) return;
    const char* const name = arena_.copy(std::string(call->name) + "+selected_rows");
    if (!arena_.ok()) return;
    call->factor = operand;
    call->name = name;
    graph_.replace(n, call, inputs);
  }

  static constexpr size_t kMostNodes = 32;

  Graph& graph_;
  Arena& arena_;
  const int root_;
  const int block_;
  int64_t n_rows_ = 0;
  /// What is computed for these rows alone: all, products, and what only these products read.
  Nodes nodes_, products_, inner_;
};

}  // namespace

void select_rows(Graph& graph, Arena& arena) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const auto& node = graph.nodes()[n];
    const bool is_product = node.live && node.fused == nullptr && graph.is(n, "mul.out");
    if (is_product && graph.deferrable(n)) Match(graph, arena, n).run();
  }
}

}  // namespace executorch::optimized
