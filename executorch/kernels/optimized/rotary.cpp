#include <executorch/cpu/nn/rotary.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/optimized/loops.h>
#include <executorch/kernels/optimized/patterns.h>

namespace executorch::optimized {
namespace {

enum Who { kX, kCos, kSin, kOut, kCount };

/// Computes x * cos + cat(-x[half:], x[:half]) * sin along the last dimension, of 2 * half
/// elements.
struct RotaryCall : FusedCall {
  Operand x, cos, sin;
  int64_t half = 0;
};

bool find_views(const RotaryCall& call, View (&views)[kCount]) {
  views[kX] = call.x.view();
  views[kCos] = call.cos.view();
  views[kSin] = call.sin.view();
  const View& x = views[kX];
  if (!x.valid() || x.ndim() < 1 || x.size(x.ndim() - 1) != 2 * call.half || !views[kCos].valid() ||
      !views[kCos].expand_as(x) || !views[kSin].valid() || !views[kSin].expand_as(x)) {
    return false;
  }
  const Tensor& out = call.out->toTensor();
  if (!resize(out, x)) return false;
  views[kOut] = View(out);
  return std::all_of(views, views + kCount, [&](const View& view) {
    int64_t stride = 0;
    return view.valid() && view.stride(x.ndim() - 1, stride) && stride == 1;
  });
}

bool run_rotary(const FusedCall& base, KernelRuntimeContext&) {
  constexpr int64_t kGrainElements = 1 << 14;
  const auto& call = static_cast<const RotaryCall&>(base);
  View views[kCount];
  if (!find_views(call, views)) return false;
  Loops<kCount> loops;
  for (int d = views[kX].ndim() - 1; d-- > 0;) {
    if (!loops.add(views, d)) return false;
  }
  int64_t n_rows = 1;
  for (int i = 0; i < loops.n; ++i) n_rows *= loops.loops[i].size;
  const Tensor& out = call.out->toTensor();
  const cpu::Type type = engine_type(out);
  const auto size = static_cast<int64_t>(out.element_size());
  const void* const data[kCount] = {call.x.data(views[kX]), call.cos.data(views[kCos]),
                                    call.sin.data(views[kSin]), out.mutable_data_ptr()};
  cpu::parallel_for(n_rows, kGrainElements / (2 * call.half) + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t at[kCount];
      loops.locate(row, 0, at);
      const auto of = [&](Who w) { return static_cast<const char*>(data[w]) + at[w] * size; };
      cpu::rotate_halves(type, of(kX), of(kCos), of(kSin), call.half,
                         static_cast<char*>(out.mutable_data_ptr()) + at[kOut] * size);
    }
  });
  return true;
}

// Matches the pattern around the concatenation of the negated upper half and the lower half of x.
class Match {
 public:
  Match(Graph& graph, Arena& arena, int root)
      : graph_(graph), arena_(arena), root_(root), block_(graph.nodes()[root].block) {}

  void run() {
    if (!find_halves()) return;
    const int product = only_reader(root_);
    if (!graph_.is(product, "mul.out")) return;
    const int sum = only_reader(product);
    if (!graph_.is(sum, "add.out") || graph_.constant_number(graph_.arg(sum, 2)) != 1.0) return;
    const int other = maker(other_operand(sum, graph_.out(product)));
    if (!graph_.is(other, "mul.out") || only_reader(other) != sum) return;
    const int a = graph_.arg_id(other, 0), b = graph_.arg_id(other, 1);
    if (a != x_ && b != x_) return;
    emit(sum, a == x_ ? b : a, other_operand(product, graph_.out(root_)));
  }

 private:
  bool usable(int n) const { return graph_.deferrable_in(n, block_); }
  int maker(int v) const { return graph_.maker(v, block_); }
  // The only node that reads the result of n, if that result is interior; else -1.
  int only_reader(int n) const {
    const int v = graph_.out(n), reader = graph_.only_use(v);
    return graph_.interior(v, block_) && usable(reader) ? reader : -1;
  }
  // The operand of n that is not v; -1 if both are v.
  int other_operand(int n, int v) const {
    const int a = graph_.arg_id(n, 0), b = graph_.arg_id(n, 1);
    return a == b ? -1 : a == v ? b : a;
  }
  bool is_last_dim(const EValue* dim, int v) const {
    const auto number = graph_.constant_number(dim);
    return number == -1.0 || number == static_cast<double>(graph_.tensor(v).dim() - 1);
  }

  // Returns x if v is its lower half, or its upper half if `upper`; else -1.
  int half_of(int v, bool upper) const {
    const int n = maker(v);
    const auto step = n < 0 ? std::nullopt : graph_.step(n, v);
    if (!step.has_value()) return -1;
    const int x = graph_.arg_id(n, 0);
    const bool fits =
        step->kind == Step::Kind::Slice ? is_slice(n, x, upper) : is_part(n, x, *step, upper);
    return fits ? x : -1;
  }
  bool is_slice(int n, int x, bool upper) const {
    const auto number = [&](size_t i) { return graph_.constant_number(graph_.arg(n, i)); };
    const auto end = number(3);
    const auto half = static_cast<double>(half_);
    return is_last_dim(graph_.arg(n, 1), x) && number(2) == (upper ? half : 0) && end.has_value() &&
           (upper ? *end >= 2 * half : *end == half) && number(4) == 1.0;
  }
  bool is_part(int n, int x, const Step& step, bool upper) const {
    if (step.kind != Step::Kind::Split && step.kind != Step::Kind::SplitSizes) return false;
    if (step.part != (upper ? 1U : 0U) || !is_last_dim(graph_.arg(n, 2), x)) return false;
    const auto is_half = [&](const EValue* size) {
      return size != nullptr && graph_.constant_number(size) == static_cast<double>(half_);
    };
    const EValue* const sizes = graph_.arg(n, 1);
    if (step.kind == Step::Kind::Split) return is_half(sizes);
    const auto items = sizes->payload.copyable_union.as_int_list_ptr->values();
    return items.size() == 2 && std::all_of(items.begin(), items.end(), is_half);
  }

  bool find_halves() {
    const auto& list = *graph_.arg(root_, 0);
    const int out = graph_.out(root_);
    if (!list.isTensorList() || !is_last_dim(graph_.arg(root_, 1), out)) return false;
    const auto parts = list.payload.copyable_union.as_tensor_list_ptr->values();
    const Tensor& whole = graph_.tensor(out);
    if (parts.size() != 2 || whole.dim() < 1) return false;
    const int64_t width = whole.size(whole.dim() - 1);
    half_ = width / 2;
    if (half_ < 1 || width % 2 != 0) return false;
    const int negated = maker(graph_.id(parts[0]));
    if (!graph_.is(negated, "neg.out")) return false;
    x_ = half_of(graph_.id(parts[1]), false);
    return x_ >= 0 && x_ == half_of(graph_.arg_id(negated, 0), true);
  }

  void emit(int sum, int cos, int sin) {
    const int out = graph_.out(sum);
    const auto fits = [&](int v) {
      return v >= 0 && graph_.is_float(v) && graph_.stable(v) &&
             graph_.tensor(v).scalar_type() == graph_.tensor(out).scalar_type();
    };
    const auto width = [&](int v) {
      const Tensor& t = graph_.tensor(v);
      return t.dim() < 1 ? 0 : t.size(t.dim() - 1);
    };
    if (!fits(out) || !fits(x_) || !fits(cos) || !fits(sin) || width(x_) != 2 * half_ ||
        width(cos) != 2 * half_ || width(sin) != 2 * half_) {
      return;
    }
    auto* const call = arena_.make<RotaryCall>();
    if (call == nullptr) return;
    std::vector<int> inputs;
    const auto operand = [&](int v) {
      const Graph::Chain chain = graph_.strip(v, block_);
      add_inputs(graph_, chain, inputs);
      return arena_.operand(graph_, chain);
    };
    call->x = operand(x_);
    call->cos = operand(cos);
    call->sin = operand(sin);
    call->half = half_;
    call->run = run_rotary;
    call->name = "rotary";
    call->out = graph_.values()[out].value;
    if (arena_.ok()) graph_.replace(sum, call, inputs);
  }

  Graph& graph_;
  Arena& arena_;
  const int root_;
  const int block_;
  int x_ = -1;
  int64_t half_ = 0;
};

}  // namespace

void fuse_rotary(Graph& graph, Arena& arena) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    if (graph.is(n, "cat.out") && graph.deferrable(n)) Match(graph, arena, n).run();
  }
}

}  // namespace executorch::optimized
