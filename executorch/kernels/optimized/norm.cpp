#include <executorch/cpu/nn/norm.h>
#include <executorch/kernels/optimized/patterns.h>

namespace executorch::optimized {
namespace {

struct NormCall : FusedCall {
  EValue* x = nullptr;
  bool rms = false;
  double eps = 0;
  /// The number of elements of a row, and of the weight and bias if there are any.
  int64_t n = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;
};

bool is_contiguous(const Tensor& t) {
  int64_t stride = 1;
  for (ssize_t d = t.dim() - 1; d >= 0; --d) {
    if (t.size(d) != 1 && t.strides()[static_cast<size_t>(d)] != stride) return false;
    stride *= t.size(d);
  }
  return true;
}

bool run_norm(const FusedCall& base, KernelRuntimeContext&) {
  const auto& call = static_cast<const NormCall&>(base);
  const Tensor& x = call.x->toTensor();
  const Tensor& out = call.out->toTensor();
  if (x.dim() < 1 || x.size(x.dim() - 1) != call.n || x.numel() == 0 || !is_contiguous(x) ||
      !resize(out, View(x)) || !is_contiguous(out)) {
    return false;
  }
  cpu::NormalizeRows norm;
  norm.type = engine_type(out);
  norm.rms = call.rms;
  norm.rows = x.numel() / call.n;
  norm.n = call.n;
  norm.eps = call.eps;
  norm.x = x.const_data_ptr();
  norm.y = out.mutable_data_ptr();
  norm.weight = call.weight;
  norm.bias = call.bias;
  norm.run();
  return true;
}

// Matches y * rsqrt(v + eps) or y / sqrt(v + eps), where v is the mean of y * y (RMS norm), or y is
// x - mean(x) and v is the variance of x (layer norm).
class Match {
 public:
  Match(Graph& graph, Arena& arena, int root)
      : graph_(graph), arena_(arena), root_(root), block_(graph.nodes()[root].block) {}

  void run() {
    const int scaled = graph_.only_use(graph_.out(root_));
    if (!usable(scaled) || !find_scaled(scaled)) return;
    const int variance = find_variance();
    if (variance < 0 || !find_source(variance)) return;
    last_ = scaled;
    const auto& sizes = graph_.tensor(x_).sizes();
    if (sizes.empty()) return;
    width_ = sizes[sizes.size() - 1];
    find_factors();
    emit();
  }

 private:
  bool is(int n, std::string_view op) const { return graph_.is(n, op); }
  bool usable(int n) const { return graph_.deferrable_in(n, block_); }
  int maker(int v) const { return graph_.maker(v, block_); }
  std::optional<double> number(int n, size_t i) const {
    return graph_.constant_element(graph_.arg_id(n, i));
  }

  bool find_scaled(int n) {
    const int r = graph_.out(root_);
    if (is(root_, "sqrt.out")) {
      y_ = is(n, "div.out") && graph_.arg_id(n, 1) == r ? graph_.arg_id(n, 0) : -1;
    } else if (is(n, "mul.out")) {
      const int a = graph_.arg_id(n, 0), b = graph_.arg_id(n, 1);
      y_ = a == r ? b : a;
    }
    return y_ >= 0 && graph_.is_float(y_) && graph_.stable(y_);
  }

  // Finds v in v + eps.
  int find_variance() {
    const int sum = maker(graph_.arg_id(root_, 0));
    if (!is(sum, "add.out") && !is(sum, "add.Scalar_out")) return -1;
    const auto eps = number(sum, 1);
    if (!eps.has_value() || graph_.constant_number(graph_.arg(sum, 2)) != 1.0) return -1;
    eps_ = *eps;
    return graph_.arg_id(sum, 0);
  }

  // Whether node n reduces one dimension, the last, and keeps it with size 1.
  bool over_rows(int n, size_t dims, size_t keep) const {
    const auto& list = *graph_.arg(n, dims);
    if (!list.isIntList()) return false;
    const auto items = list.payload.copyable_union.as_int_list_ptr->values();
    const auto rank = graph_.tensor(graph_.arg_id(n, 0)).dim();
    if (items.size() != 1 || graph_.constant_number(graph_.arg(n, keep)) != 1.0) return false;
    const auto dim = graph_.constant_number(items[0]);
    return rank > 0 && (dim == -1.0 || dim == static_cast<double>(rank - 1));
  }
  bool is_mean(int n) const { return is(n, "mean.out") && over_rows(n, 1, 2); }

  // Returns x if `v` is x - mean(x), else -1.
  int centred(int v) const {
    const int n = maker(v);
    if (!is(n, "sub.out") || graph_.constant_number(graph_.arg(n, 2)) != 1.0) return -1;
    const int mean = maker(graph_.arg_id(n, 1));
    const int x = graph_.arg_id(n, 0);
    return is_mean(mean) && graph_.arg_id(mean, 0) == x ? x : -1;
  }

  bool find_source(int variance) {
    const int n = maker(variance);
    const int x = centred(y_);
    if (is(n, "var.correction_out") && x >= 0 && graph_.arg_id(n, 0) == x && over_rows(n, 1, 3)) {
      rms_ = false;
      x_ = x;
      return graph_.constant_number(graph_.arg(n, 2)) == 0.0;
    }
    if (!is_mean(n)) return false;
    const int square = maker(graph_.arg_id(n, 0));
    const bool power = is(square, "pow.Tensor_Scalar_out") && number(square, 1) == 2.0;
    const bool product = is(square, "mul.out") && graph_.arg_id(square, 1) == y_;
    if ((!power && !product) || graph_.arg_id(square, 0) != y_) return false;
    rms_ = x < 0;
    x_ = rms_ ? y_ : x;
    return graph_.is_float(x_) && graph_.stable(x_);
  }

  // The data of `v` if it is a constant with a float for each element of a row; else null.
  const float* row(int v) const {
    if (!graph_.is_tensor(v) || !graph_.values()[v].constant || !graph_.stable(v)) return nullptr;
    const Tensor& t = graph_.tensor(v);
    const bool fits =
        t.scalar_type() == aten::ScalarType::Float && t.dim() == 1 && t.size(0) == width_;
    return fits ? t.const_data_ptr<float>() : nullptr;
  }

  void find_factors() {
    for (const std::string_view op : {"mul.out", "add.out"}) {
      const int v = graph_.out(last_);
      const int n = graph_.only_use(v);
      if (!graph_.interior(v, block_) || !usable(n) || !is(n, op)) continue;
      if (op == "add.out" && graph_.constant_number(graph_.arg(n, 2)) != 1.0) continue;
      const int a = graph_.arg_id(n, 0), b = graph_.arg_id(n, 1);
      const float* const factor = row(a == v ? b : a);
      if (factor == nullptr) continue;
      (op == "mul.out" ? weight_ : bias_) = factor;
      last_ = n;
    }
  }

  void emit() {
    const int out = graph_.out(last_);
    if (!graph_.is_float(out) ||
        graph_.tensor(out).scalar_type() != graph_.tensor(x_).scalar_type()) {
      return;
    }
    auto* const call = arena_.make<NormCall>();
    if (call == nullptr) return;
    call->x = graph_.values()[x_].value;
    call->rms = rms_;
    call->eps = eps_;
    call->n = width_;
    call->weight = weight_;
    call->bias = bias_;
    call->run = run_norm;
    call->name = rms_ ? "rms_norm" : "layer_norm";
    call->out = graph_.values()[out].value;
    graph_.replace(last_, call, {x_});
  }

  Graph& graph_;
  Arena& arena_;
  const int root_;
  const int block_;
  int y_ = -1, x_ = -1, last_ = -1;
  bool rms_ = false;
  double eps_ = 0;
  int64_t width_ = 0;
  const float* weight_ = nullptr;
  const float* bias_ = nullptr;
};

}  // namespace

void fuse_norm(Graph& graph, Arena& arena) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const bool root = graph.is(n, "rsqrt.out") || graph.is(n, "sqrt.out");
    if (root && graph.nodes()[n].live && graph.deferrable(n)) Match(graph, arena, n).run();
  }
}

}  // namespace executorch::optimized
