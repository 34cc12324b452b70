#include <executorch/cpu/size.h>
#include <executorch/kernels/optimized/causal_mask.h>

#include <cmath>
#include <limits>
#include <unordered_map>

// Masks are evaluated symbolically over row i and column j, their last two dimensions:
//   arange(n) is j; unsqueeze(-1) makes it i; their differences, compared with numbers, are
//   relations j - i <= c; where(relation, 0, -inf), tril and triu follow. Masks in constant
//   tensors are read. arange(s, n) is j + s, where s is a number of the call; c may then be s.
namespace executorch::optimized {
namespace {

using aten::ScalarType;

// A key to whose score this number or less is added has probability exactly 0 beside a visible key.
constexpr double kHides = -3e4;
// Larger constant masks are not examined.
constexpr int64_t kMostElements = int64_t{1} << 26;
// The most times that an index may be added to itself.
constexpr int64_t kMostTimes = 4;

struct Expr {
  enum class Kind : uint8_t { None, Index, Fill, Relation, Added };
  Kind kind = Kind::None;
  int rank = 0;
  // Index: the factors of the row index i and of the column index j.
  int64_t rows = 0, cols = 0;
  // Index, Fill: the number (added).
  double number = 0;
  // Index: another number, of the call, and how often it is added. Relation: it is part of offset.
  const EValue* first = nullptr;
  int64_t firsts = 0;
  // Relation: holds where (j - i <= offset) == below. Added: hides all but j - i <= offset.
  int64_t offset = 0;
  bool below = true;
  const EValue* n_rows = nullptr;
  const EValue* n_cols = nullptr;
  int chain = -1;  // the value whose chain of steps from a constant gives the extents
};

Expr relation(Expr e, int64_t offset, bool below) {
  e.kind = Expr::Kind::Relation;
  e.offset = offset;
  e.below = below;
  e.rows = e.cols = 0;
  return e;
}

// (a * i + b * j + c <= 0), for a, b = -1, 1 or 1, -1; the first row may be one of the call.
Expr at_most_zero(const Expr& e) {
  if (std::fabs(e.number) > kMostElements) return {};
  const auto c = static_cast<int64_t>(e.number);
  if (e.first != nullptr && e.firsts != e.rows) return {};
  if (e.cols == 1 && e.rows == -1) return relation(e, -c, true);
  if (e.cols == -1 && e.rows == 1) return relation(e, c - 1, false);  // i - j <= -c
  return {};
}

}  // namespace

class CausalMasks::Evaluator {
 public:
  explicit Evaluator(const Graph& graph) : graph_(graph) {}

  // Evaluates a value that `block` reads. Values that another block computes are not followed, so
  // that the result of a value does not depend on which block asks for it.
  Expr eval_in(int v, int block) {
    block_ = block;
    depth_ = 0;
    return eval(v);
  }

 private:
  Expr eval(int v) {
    const int made = graph_.def(v);
    const bool here = made >= 0 && graph_.nodes()[made].block == block_;
    if (const auto known = known_.find(v); here && known != known_.end()) return known->second;
    if (depth_ == kDeepest) return {};
    graph_.effort().spend(64);
    ++depth_;
    const Expr e = find(v);
    --depth_;
    if (here) known_.emplace(v, e);
    return e;
  }

  Expr find(int v) {
    const Graph::Chain chain = graph_.strip(v, block_);
    if (graph_.values()[chain.base].constant) return of_constant(v, chain);
    const int n = graph_.def(v);
    if (n < 0 || !graph_.interior(v, block_) || !graph_.deferrable(n)) return {};
    const auto step = graph_.step(n, v);
    if (step.has_value()) return moved(eval(graph_.arg_id(n, 0)), *step);
    return computed(n);
  }

  bool is(int n, std::string_view op) const { return graph_.is(n, op); }
  Expr arg(int n, size_t i) { return eval(graph_.arg_id(n, i)); }
  std::optional<double> number(int n, size_t i) const {
    return graph_.constant_number(graph_.arg(n, i));
  }

  Expr fill(std::optional<double> number, const EValue* sizes) const {
    Expr e;
    if (!number.has_value()) return e;
    e.kind = Expr::Kind::Fill;
    e.number = *number;
    if (sizes != nullptr && sizes->isIntList()) {
      const auto items = sizes->payload.copyable_union.as_int_list_ptr->values();
      e.rank = static_cast<int>(items.size());
      if (e.rank >= 1) e.n_cols = items[items.size() - 1];
      if (e.rank >= 2) e.n_rows = items[items.size() - 2];
    }
    return e;
  }

  Expr arange(const EValue* end) const {
    Expr e;
    e.kind = Expr::Kind::Index;
    e.rank = 1;
    e.cols = 1;
    e.n_cols = end;
    return e;
  }

  Expr arange_from(int n) const {
    Expr e = arange(graph_.arg(n, 1));
    if (number(n, 2) != 1.0) return {};
    if (number(n, 0) == 0.0) return e;
    if (number(n, 0).has_value()) return {};
    e.first = graph_.arg(n, 0);
    e.firsts = 1;
    return e;
  }

  Expr computed(int n) {
    const auto& op = graph_.nodes()[n].op;
    if (op == "arange.start_out") return arange_from(n);
    if (op == "arange.out") return arange(graph_.arg(n, 0));
    if (op == "full.out") return fill(number(n, 1), graph_.arg(n, 0));
    if (op == "ones.out") return fill(1.0, graph_.arg(n, 0));
    if (op == "zeros.out") return fill(0.0, graph_.arg(n, 0));
    if (op == "scalar_tensor.out") return fill(number(n, 0), nullptr);
    if (op == "full_like.out") return same_shape(arg(n, 0), number(n, 1));
    if (op == "_to_copy.out" || op == "_to_dim_order_copy.out") return arg(n, 0);
    if (op == "add.out" || op == "sub.out") return sum(n, op == "add.out" ? 1 : -1);
    if (op == "add.Scalar_out") return shifted(arg(n, 0), number(n, 1), number(n, 2), 1);
    if (op == "sub.Scalar_out") return shifted(arg(n, 0), number(n, 1), number(n, 2), -1);
    if (op == "logical_not.out" || op == "bitwise_not.out") return negated(arg(n, 0));
    if (op == "logical_and.out" || op == "bitwise_and.Tensor_out") {
      return both(arg(n, 0), arg(n, 1));
    }
    if (op == "tril.out" || op == "triu.out") {
      return halved(arg(n, 0), number(n, 1), op == "tril.out");
    }
    if (op == "where.self_out") return chosen(arg(n, 0), arg(n, 1), arg(n, 2));
    if (op == "masked_fill.Scalar_out") {
      return chosen(arg(n, 1), fill(number(n, 2), nullptr), arg(n, 0));
    }
    return compared(n, op);
  }

  // Evaluates a comparison of an index with a number, or of two indices.
  Expr compared(int n, std::string_view op) {
    if (op.size() < 4 || op[2] != '.' || graph_.n_args(n) < 3) return {};
    const std::string_view kind = op.substr(0, 2);
    const std::string_view overload = op.substr(3);
    Expr e = arg(n, 0);
    if (overload == "Scalar_out") {
      const auto other = number(n, 1);
      if (!other.has_value()) return {};
      if (e.kind == Expr::Kind::Relation && *other == 0.0) {
        return kind == "ne" ? e : kind == "eq" ? negated(e) : Expr{};
      }
      e = plus(e, fill(other, nullptr), -1);
    } else if (overload == "Tensor_out") {
      e = plus(e, arg(n, 1), -1);
    } else {
      return {};
    }
    if (e.kind != Expr::Kind::Index) return {};
    if (kind == "gt" || kind == "ge") {
      e.rows = -e.rows;
      e.cols = -e.cols;
      e.number = -e.number;
      e.firsts = -e.firsts;
    } else if (kind != "lt" && kind != "le") {
      return {};
    }
    if (e.number != std::floor(e.number)) return {};
    if (kind == "lt" || kind == "gt") e.number += 1;
    return at_most_zero(e);
  }

  Expr sum(int n, double sign) {
    const auto alpha = number(n, 2);
    if (!alpha.has_value()) return {};
    return plus(arg(n, 0), arg(n, 1), sign * *alpha);
  }

  static Expr plus(const Expr& a, const Expr& b, double factor) {
    const auto countable = [](const Expr& e) {
      return e.kind == Expr::Kind::Index || (e.kind == Expr::Kind::Fill && e.rank == 0);
    };
    if (!countable(a) || !countable(b) || (factor != 1 && factor != -1)) return {};
    Expr e = a;
    e.kind = Expr::Kind::Index;
    e.rank = std::max(a.rank, b.rank);
    e.rows += static_cast<int64_t>(factor) * b.rows;
    e.cols += static_cast<int64_t>(factor) * b.cols;
    e.number += factor * b.number;
    if (std::abs(e.rows) > kMostTimes || std::abs(e.cols) > kMostTimes) return {};
    e.n_rows = a.n_rows != nullptr ? a.n_rows : b.n_rows;
    e.n_cols = a.n_cols != nullptr ? a.n_cols : b.n_cols;
    if (b.first == nullptr) return e;
    if (a.first != nullptr && a.first != b.first) return {};
    e.first = b.first;
    e.firsts += static_cast<int64_t>(factor) * b.firsts;
    return std::abs(e.firsts) > kMostTimes ? Expr{} : e;
  }

  static Expr shifted(Expr e, std::optional<double> by, std::optional<double> alpha, double sign) {
    if (e.kind != Expr::Kind::Index || !by.has_value() || !alpha.has_value()) return {};
    e.number += sign * *alpha * *by;
    return e;
  }

  static Expr same_shape(Expr e, std::optional<double> number) {
    if (e.kind == Expr::Kind::None || !number.has_value()) return {};
    e.kind = Expr::Kind::Fill;
    e.number = *number;
    e.first = nullptr;
    e.firsts = 0;
    return e;
  }

  static Expr negated(Expr e) {
    if (e.kind != Expr::Kind::Relation) return {};
    e.below = !e.below;
    return e;
  }

  static Expr both(const Expr& a, const Expr& b) {
    if (a.kind == Expr::Kind::Relation && b.kind == Expr::Kind::Fill && b.number != 0) return a;
    if (b.kind == Expr::Kind::Relation && a.kind == Expr::Kind::Fill && a.number != 0) return b;
    return {};
  }

  // tril keeps j - i <= diagonal, triu j - i >= diagonal; the rest becomes 0.
  static Expr halved(const Expr& e, std::optional<double> diagonal, bool lower) {
    if (e.kind != Expr::Kind::Fill || !diagonal.has_value() || e.rank < 2 ||
        std::fabs(*diagonal) > kMostElements) {
      return {};
    }
    const auto d = static_cast<int64_t>(*diagonal);
    Expr r = lower ? relation(e, d, true) : relation(e, d - 1, false);
    if (e.number == 1) return r;
    if (e.number > kHides || lower) return {};
    r.kind = Expr::Kind::Added;
    return r;
  }

  static Expr chosen(const Expr& condition, const Expr& yes, const Expr& no) {
    if (condition.kind != Expr::Kind::Relation || yes.kind != Expr::Kind::Fill ||
        no.kind != Expr::Kind::Fill) {
      return {};
    }
    const Expr& visible = condition.below ? yes : no;
    const Expr& hidden = condition.below ? no : yes;
    if (visible.number != 0 || hidden.number > kHides) return {};
    Expr e = condition;
    e.kind = Expr::Kind::Added;
    return e;
  }

  Expr moved(Expr e, const Step& step) const {
    if (e.kind == Expr::Kind::None || step.kind == Step::Kind::Same) return e;
    if (step.kind == Step::Kind::Expand) {
      const auto sizes = step.args[1]->payload.copyable_union.as_int_list_ptr->values();
      e.rank = static_cast<int>(sizes.size());
      return e;
    }
    if (step.kind == Step::Kind::Unsqueeze) {
      const auto dim = graph_.constant_number(step.args[1]);
      if (!dim.has_value() || std::fabs(*dim) > e.rank + 1) return {};
      const int at = static_cast<int>(*dim) + (*dim < 0 ? e.rank + 1 : 0);
      return inserted(e, e.rank - at);
    }
    if (step.kind != Step::Kind::Reshape || e.rank != 1) return {};
    const auto sizes = step.args[1]->payload.copyable_union.as_int_list_ptr->values();
    int from_end = -1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (graph_.constant_number(sizes[d]) == 1.0) continue;
      if (from_end >= 0) return {};
      from_end = static_cast<int>(sizes.size() - 1 - d);
    }
    if (from_end > 1) return {};
    if (from_end == 1) e = inserted(e, 0);
    e.rank = static_cast<int>(sizes.size());
    return e;
  }

  // Evaluates the insertion of a dimension of size 1 that has `after` dimensions behind it.
  static Expr inserted(Expr e, int after) {
    const bool matters = e.kind != Expr::Kind::Fill;
    if (after < 2 && matters && e.rank >= 2) return {};
    if (after == 0) {
      std::swap(e.rows, e.cols);
      std::swap(e.n_rows, e.n_cols);
    }
    ++e.rank;
    return e;
  }

  // Evaluates a constant mask, which may be sliced from its first row and column on.
  Expr of_constant(int v, const Graph::Chain& chain) {
    for (const Step& step : chain.steps) {
      const bool from_zero = step.kind == Step::Kind::Slice &&
                             (step.args[2]->isNone() || is_number(step.args[2], 0)) &&
                             is_number(step.args[4], 1);
      const bool leading = step.kind == Step::Kind::Unsqueeze && is_number(step.args[1], 0);
      if (!from_zero && !leading && step.kind != Step::Kind::Same &&
          step.kind != Step::Kind::Expand) {
        return {};
      }
    }
    const auto [known, is_new] = constants_.try_emplace(chain.base);
    if (is_new) {
      const Tensor& mask = graph_.tensor(chain.base);
      graph_.effort().spend(static_cast<size_t>(std::min<int64_t>(mask.numel(), kMostElements)));
      known->second = read(mask);
    }
    Expr e = known->second;
    e.chain = v;
    return e;
  }
  bool is_number(const EValue* value, double number) const {
    return graph_.constant_number(value) == number;
  }

  static double element(const Tensor& t, int64_t i) {
    switch (t.scalar_type()) {
      case ScalarType::Float:
        return static_cast<double>(t.const_data_ptr<float>()[i]);
      case ScalarType::Half:
        return static_cast<double>(static_cast<float>(t.const_data_ptr<aten::Half>()[i]));
      case ScalarType::BFloat16:
        return static_cast<double>(static_cast<float>(t.const_data_ptr<aten::BFloat16>()[i]));
      case ScalarType::Bool:
        return t.const_data_ptr<bool>()[i] ? 1 : 0;
      case ScalarType::Long:
        return static_cast<double>(t.const_data_ptr<int64_t>()[i]);
      default:
        return std::numeric_limits<double>::quiet_NaN();
    }
  }

  // Evaluates a tensor [..., rows, cols] of two different numbers, one on each side of a diagonal.
  static Expr read(const Tensor& t) {
    const int64_t rank = t.dim();
    Expr e;
    e.rank = static_cast<int>(rank);
    if (t.numel() == 1) {
      e.kind = Expr::Kind::Fill;
      e.number = element(t, 0);
      return e;
    }
    if (rank < 2 || t.numel() > kMostElements || t.strides()[rank - 1] != 1) return {};
    const int64_t rows = t.size(rank - 2), cols = t.size(rank - 1);
    if (rows * cols != t.numel() || t.strides()[rank - 2] != cols || rows < 2 || cols < 2) {
      return {};
    }
    // The first row shows in which column the number changes.
    const double below = element(t, 0), above = element(t, cols - 1);
    int64_t offset = 0;
    while (offset + 1 < cols && element(t, offset + 1) == below) ++offset;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        if (element(t, i * cols + j) != (j - i <= offset ? below : above)) return {};
      }
    }
    if (below == 0 && above <= kHides) {
      e = relation(e, offset, true);
      e.kind = Expr::Kind::Added;
      return e;
    }
    if (below == 1 && above == 0) return relation(e, offset, true);
    if (below == 0 && above == 1) return relation(e, offset, false);
    return {};
  }

  // The deepest nesting that is evaluated. Programs make masks in a dozen steps.
  static constexpr int kDeepest = 64;

  const Graph& graph_;
  int block_ = 0;
  int depth_ = 0;
  std::unordered_map<int, Expr> known_;
  std::unordered_map<int, Expr> constants_;
};

namespace {

std::optional<CausalMask> finish(const Graph& graph, const Expr& e, int block, Arena& arena) {
  CausalMask causal_mask;
  causal_mask.fixed_offset = e.offset;
  causal_mask.first = e.first;
  // In a row without a visible key, a very low number in place of -infinity would change the
  // result.
  if (e.offset < 0 && e.first == nullptr) return std::nullopt;
  if (e.chain >= 0) {
    causal_mask.has_shape = true;
    causal_mask.shape = arena.operand(graph, graph.strip(e.chain, block));
  } else {
    causal_mask.rows = e.n_rows;
    causal_mask.cols = e.n_cols;
    if (e.n_rows == nullptr || e.n_cols == nullptr) return std::nullopt;
  }
  return arena.ok() ? std::optional(causal_mask) : std::nullopt;
}

}  // namespace

std::optional<int64_t> CausalMask::offset(int64_t n_rows, int64_t n_cols) const {
  if (!has_shape) {
    if (!rows->isInt() || !cols->isInt() || (first != nullptr && !first->isInt())) return {};
    const int64_t start = first == nullptr ? 0 : first->toInt();
    const cpu::Size offset = cpu::Size(start) + fixed_offset, end = cpu::Size(start) + n_rows;
    const bool fits = start >= 0 && end.ok() && end.value() == rows->toInt() &&
                      cols->toInt() == n_cols && offset.within(INT64_MAX);
    return fits ? std::optional(offset.value()) : std::nullopt;
  }
  const View view = shape.view();
  const bool fits = view.ndim() >= 2 && view.size(view.ndim() - 2) == n_rows &&
                    view.size(view.ndim() - 1) == n_cols;
  return fits ? std::optional(fixed_offset) : std::nullopt;
}

CausalMasks::CausalMasks(const Graph& graph)
    : graph_(graph), evaluator_(std::make_unique<Evaluator>(graph)) {}
CausalMasks::~CausalMasks() = default;

std::optional<CausalMask> CausalMasks::added(int value, int block, Arena& arena) {
  const Expr e = evaluator_->eval_in(value, block);
  if (e.kind != Expr::Kind::Added) return std::nullopt;
  return finish(graph_, e, block, arena);
}

std::optional<CausalMask> CausalMasks::of(int value, bool visible, int block, Arena& arena) {
  const Expr e = evaluator_->eval_in(value, block);
  if (e.kind != Expr::Kind::Relation || e.below != visible) return std::nullopt;
  return finish(graph_, e, block, arena);
}

}  // namespace executorch::optimized
