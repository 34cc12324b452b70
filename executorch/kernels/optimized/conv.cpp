#include <executorch/kernels/optimized/conv_call.h>
#include <executorch/kernels/optimized/epilogue.h>
#include <executorch/kernels/optimized/patterns.h>
#include <executorch/kernels/portable/internal/engine.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <cmath>
#include <limits>

namespace executorch::optimized {
namespace {

constexpr int kSpatial = 3;

// ---- At run time.

// Reads item d of a list of n items, or of a list of 1 item that holds for all dims.
bool item(const EValue& list, int d, int n, int64_t least, int64_t& value) {
  const auto items = list.tryToIntList();
  if (!items.ok() || (static_cast<int>(items->size()) != n && items->size() != 1)) return false;
  value = (*items)[items->size() == 1 ? 0 : static_cast<size_t>(d)];
  return value >= least && value <= std::numeric_limits<int32_t>::max();
}

bool is_on_cpu(const Tensor& t) {
  return t.dim() >= 3 && t.dim() <= 2 + kSpatial && t.numel() > 0;
}

// Reads sizes and strides. Returns false if the operands do not make a valid convolution.
template <class T>
bool bind_sizes(const ConvCall& call, cpu::Conv<T>& c) {
  const Tensor& x = call.args[0]->toTensor();
  const Tensor& w = call.args[1]->toTensor();
  const Tensor& out = call.out->toTensor();
  const int rank = static_cast<int>(x.dim()), n = rank - 2;
  if (!call.args[8]->isInt()) return false;  // it was at load
  c.groups = call.args[8]->toInt();
  if (!is_on_cpu(x) || !is_on_cpu(w) || w.dim() != rank || out.dim() != rank || c.groups <= 0 ||
      w.size(0) % c.groups != 0 || w.size(1) * c.groups != x.size(1)) {
    return false;
  }
  if (call.args[2]->isTensor()) {
    const Tensor& bias = call.args[2]->toTensor();
    if (bias.dim() != 1 || bias.size(0) != w.size(0)) return false;
  }
  aten::SizesType sizes[2 + kSpatial] = {static_cast<aten::SizesType>(x.size(0)),
                                         static_cast<aten::SizesType>(w.size(0))};
  for (int d = 0; d < n; ++d) {
    auto& a = c.axis[kSpatial - n + d];
    if (!item(*call.args[3], d, n, 1, a.stride) || !item(*call.args[4], d, n, 0, a.padding) ||
        !item(*call.args[5], d, n, 1, a.dilation)) {
      return false;
    }
    a.in = x.size(d + 2);
    a.kernel = w.size(d + 2);
    const int64_t span = a.in + 2 * a.padding - (a.dilation * (a.kernel - 1) + 1);
    if (span < 0) return false;
    a.out = span / a.stride + 1;
    if (a.out > std::numeric_limits<aten::SizesType>::max()) return false;
    a.in_stride = x.strides()[d + 2];
    a.weight_stride = w.strides()[d + 2];
    sizes[d + 2] = static_cast<aten::SizesType>(a.out);
  }

  if (runtime::resize_tensor(out, {sizes, static_cast<size_t>(rank)}) != runtime::Error::Ok) {
    return false;
  }
  for (int d = 0; d < n; ++d) c.axis[kSpatial - n + d].out_stride = out.strides()[d + 2];
  c.batch = x.size(0);
  c.group_in = w.size(1);
  c.group_out = w.size(0) / c.groups;
  c.in_batch = x.strides()[0];
  c.in_channel = x.strides()[1];
  c.weight_out = w.strides()[0];
  c.weight_in = w.strides()[1];
  c.weight_group = c.group_out * w.strides()[0];
  c.out_batch = out.strides()[0];
  c.out_channel = out.strides()[1];
  return true;
}

bool same_layout(const Tensor& a, const Tensor& b) {
  return a.sizes().equals(b.sizes()) && a.strides().equals(b.strides());
}

}  // namespace

template <class T>
bool ConvCall::bind(cpu::Conv<T>& c) const {
  if (!bind_sizes(*this, c)) return false;
  const Tensor& result = out->toTensor();
  if (residual != nullptr && !same_layout(residual->toTensor(), result)) return false;
  const auto data = [](const EValue* value) {
    return static_cast<const T*>(value->toTensor().const_data_ptr());
  };
  c.input = data(args[0]);
  c.weight = weight != nullptr ? static_cast<const T*>(weight) : data(args[1]);
  c.bias = bias != nullptr       ? static_cast<const T*>(bias)
           : args[2]->isTensor() ? data(args[2])
                                 : nullptr;
  c.out = static_cast<T*>(result.mutable_data_ptr());
  c.residual = residual == nullptr ? nullptr : data(residual);
  c.act = act;
  c.act_last = act_last;
  return true;
}
template bool ConvCall::bind(cpu::Conv<float>& c) const;

bool run_convolution(const FusedCall& base, KernelRuntimeContext& ctx) {
  const auto& call = static_cast<const ConvCall&>(base);
  return cpu::with_type(engine_type(call.out->toTensor()), [&](auto t) {
    cpu::Conv<decltype(t)> c;
    torch::executor::native::internal::EngineScratch scratch(ctx);
    return call.bind(c) && c.run(scratch);
  });
}

namespace {

// ---- When a method is loaded.

class Match {
 public:
  Match(Graph& graph, Arena& arena, int root)
      : graph_(graph), arena_(arena), root_(root), block_(graph.nodes()[root].block) {}

  /// Makes the call of the convolution with its epilogue. Returns null if that is impossible, or if
  /// the epilogue is empty and not `alone`.
  ConvCall* make(bool alone) {
    if (!takes_operands()) return nullptr;
    const int norm = find_norm();
    const int root = norm >= 0 ? norm : root_;
    const Epilogue epilogue(graph_, root, false);
    if (norm < 0 && epilogue.last() == root_ && !alone) return nullptr;
    auto* const call = arena_.make<ConvCall>();
    if (call == nullptr || (norm >= 0 && !fold(norm, *call))) return nullptr;
    call->args = graph_.nodes()[root_].instruction->args;
    for (size_t i = 0; i < 9; ++i) inputs_.push_back(graph_.arg_id(root_, i));
    call->act = epilogue.act();
    call->act_last = epilogue.act_last();
    if (epilogue.residual().value >= 0) {
      call->residual = graph_.values()[epilogue.residual().value].value;
      inputs_.push_back(epilogue.residual().value);
    }
    last_ = epilogue.last();
    call->run = run_convolution;
    call->out = graph_.values()[graph_.out(last_)].value;
    std::string name = "convolution";
    name.append(norm >= 0 ? "+norm" : "").append(epilogue.name());
    call->name = arena_.copy(name);
    return arena_.ok() ? call : nullptr;
  }
  /// The last node that the call replaces, and the values that it reads.
  int last() const { return last_; }
  const std::vector<int>& inputs() const { return inputs_; }

 private:
  bool is_operand(int v) const {
    return graph_.is_float(v) && graph_.stable(v) &&
           graph_.tensor(v).scalar_type() == graph_.tensor(graph_.out(root_)).scalar_type();
  }
  bool takes_operands() const {
    return graph_.n_args(root_) >= 10 && is_operand(graph_.out(root_)) &&
           is_operand(graph_.arg_id(root_, 0)) && is_operand(graph_.arg_id(root_, 1)) &&
           is_on_cpu(graph_.tensor(graph_.arg_id(root_, 1))) &&
           (graph_.arg(root_, 2)->isNone() || is_operand(graph_.arg_id(root_, 2))) &&
           graph_.constant_number(graph_.arg(root_, 6)) == 0.0 && graph_.arg(root_, 8)->isInt();
  }

  // The data of argument i of node n if it is constant floats, one for each output channel; else
  // null.
  const float* channels(int n, size_t i) const {
    const EValue* arg = graph_.arg(n, i);
    if (!arg->isTensor()) return nullptr;
    const Tensor& t = arg->toTensor();
    const bool fits = graph_.values()[graph_.id(arg)].constant && graph_.stable(graph_.id(arg)) &&
                      t.scalar_type() == aten::ScalarType::Float && t.dim() == 1 &&
                      t.size(0) == graph_.tensor(graph_.arg_id(root_, 1)).size(0);
    return fits ? t.const_data_ptr<float>() : nullptr;
  }

  // The batch norm that is the only reader of the convolution, or -1.
  int find_norm() const {
    const int v = graph_.out(root_);
    const int n = graph_.only_use(v);
    if (!graph_.is(n, "_native_batch_norm_legit_no_training.out") || !graph_.interior(v, block_) ||
        graph_.nodes()[n].block != block_ || !graph_.deferrable(n) || graph_.arg_id(n, 0) != v ||
        graph_.tensor(v).scalar_type() != aten::ScalarType::Float) {
      return -1;
    }
    const bool has_bias = graph_.arg(root_, 2)->isTensor();
    const auto& outputs = graph_.nodes()[n].outputs;
    const bool only_result = std::all_of(outputs.begin() + 1, outputs.end(), [&](int o) {
      return graph_.values()[o].uses.empty() && !graph_.values()[o].output && graph_.stable(o);
    });
    const bool known = graph_.values()[graph_.arg_id(root_, 1)].constant && channels(n, 3) &&
                       channels(n, 4) && (channels(n, 1) || graph_.arg(n, 1)->isNone()) &&
                       (channels(n, 2) || graph_.arg(n, 2)->isNone()) &&
                       graph_.constant_number(graph_.arg(n, 6)).has_value() &&
                       (!has_bias || channels(root_, 2));
    return only_result && known ? n : -1;
  }

  // Folds batch norm n into the weight and bias of the call:
  // y = (conv + bias - mean) * weight / sqrt(variance + eps) + shift
  bool fold(int n, ConvCall& call) {
    const Tensor& w = graph_.tensor(graph_.arg_id(root_, 1));
    const auto n_out = static_cast<size_t>(w.size(0));
    const auto per_channel = static_cast<size_t>(w.numel()) / n_out;
    graph_.effort().spend(n_out * per_channel);
    // The folding below needs output channels that are outermost in memory.
    if (w.strides()[0] != static_cast<int64_t>(per_channel)) return false;
    auto* const weight = draft_list<float>(n_out * per_channel);
    auto* const bias = draft_list<float>(n_out);
    if (weight == nullptr || bias == nullptr) return false;
    const float* const old = w.const_data_ptr<float>();
    const float* const old_bias = channels(root_, 2);
    const float* const gamma = channels(n, 1);
    const float* const beta = channels(n, 2);
    const float* const mean = channels(n, 3);
    const float* const variance = channels(n, 4);
    const double eps = *graph_.constant_number(graph_.arg(n, 6));
    for (size_t o = 0; o < n_out; ++o) {
      const double scale = (gamma != nullptr ? gamma[o] : 1.0) / std::sqrt(variance[o] + eps);
      for (size_t i = 0; i < per_channel; ++i) {
        weight[o * per_channel + i] = static_cast<float>(old[o * per_channel + i] * scale);
      }
      bias[o] = static_cast<float>(((old_bias != nullptr ? old_bias[o] : 0.0) - mean[o]) * scale +
                                   (beta != nullptr ? beta[o] : 0.0));
    }
    call.weight = weight;
    call.bias = bias;
    return true;
  }
  template <class T>
  T* draft_list(size_t n) {
    return graph_.draft().allocator.allocateList<T>(n);
  }

  Graph& graph_;
  Arena& arena_;
  const int root_;
  const int block_;
  int last_ = -1;
  std::vector<int> inputs_;
};

}  // namespace

ConvCall* plain_convolution(Graph& graph, Arena& arena, int n) {
  return graph.is(n, "convolution.out") && graph.deferrable(n) ? Match(graph, arena, n).make(true)
                                                               : nullptr;
}

void fuse_convolution(Graph& graph, Arena& arena) {
  const int n_nodes = static_cast<int>(graph.nodes().size());
  for (int n = 0; n < n_nodes; ++n) {
    if (!graph.is(n, "convolution.out") || !graph.nodes()[n].live || !graph.deferrable(n)) continue;
    Match match(graph, arena, n);
    if (ConvCall* const call = match.make(false)) graph.replace(match.last(), call, match.inputs());
  }
}

}  // namespace executorch::optimized
