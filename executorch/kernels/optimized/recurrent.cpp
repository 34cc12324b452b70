#include <executorch/cpu/nn/recurrent.h>
#include <executorch/kernels/optimized/patterns.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>

namespace executorch::optimized {
namespace {

using aten::ScalarType;
using cpu::Recurrent;
using runtime::Error;
using Cell = Recurrent::Cell;

struct RecurrentCall : FusedCall {
  /// Without addresses and the number of steps.
  Recurrent layer;
  EValue* shares = nullptr;
  EValue* weights = nullptr;
  int64_t weights_offset = 0;  // in elements
  EValue* bias = nullptr;      // or null
  EValue* h = nullptr;
  EValue* c = nullptr;  // or null
};

struct Bytes {
  const char* begin;
  const char* end;
  explicit Bytes(const Tensor& t)
      : begin(static_cast<const char*>(t.const_data_ptr())), end(begin + t.nbytes()) {}
  bool overlap(const Bytes& other) const { return begin < other.end && other.begin < end; }
};

// Whether what is written has bytes of its own.
bool are_apart(const RecurrentCall& call) {
  const EValue* const written[] = {call.out, call.h, call.c};
  const EValue* const all[] = {call.out, call.h, call.c, call.shares, call.weights, call.bias};
  for (const EValue* a : written) {
    for (const EValue* b : all) {
      if (a == nullptr || b == nullptr || a == b) continue;
      if (Bytes(a->toTensor()).overlap(Bytes(b->toTensor()))) return false;
    }
  }
  return true;
}

// The originals are the body of a loop, which cannot run in place of this call: so all that fails
// is an error.
bool run_recurrent(const FusedCall& base, KernelRuntimeContext& context) {
  const auto& call = static_cast<const RecurrentCall&>(base);
  const Tensor& shares = call.shares->toTensor();
  const Tensor& out = call.out->toTensor();
  Recurrent layer = call.layer;
  const int64_t width = layer.units * Recurrent::gates(layer.cell);
  layer.steps = shares.dim() == 3 ? shares.size(0) : 0;
  if (layer.steps < 1 || shares.size(1) != layer.batch || shares.size(2) != width) {
    ET_LOG(Error, "%s: expected inputs of at least one step, of sizes [steps, %zd, %zd]", call.name,
           static_cast<ssize_t>(layer.batch), static_cast<ssize_t>(width));
    context.fail(Error::InvalidArgument);
    return true;
  }
  const aten::SizesType sizes[] = {static_cast<aten::SizesType>(layer.steps),
                                   static_cast<aten::SizesType>(layer.batch),
                                   static_cast<aten::SizesType>(layer.units)};
  if (const Error error = runtime::resize_tensor(out, {sizes, 3}); error != Error::Ok) {
    context.fail(error);
    return true;
  }
  if (!are_apart(call)) {
    ET_LOG(Error, "%s: what the loop writes overlaps what it reads", call.name);
    context.fail(Error::InvalidProgram);
    return true;
  }
  layer.shares = shares.const_data_ptr<float>();
  layer.weights = call.weights->toTensor().const_data_ptr<float>() + call.weights_offset;
  layer.bias = call.bias == nullptr ? nullptr : call.bias->toTensor().const_data_ptr<float>();
  layer.h = call.h->toTensor().mutable_data_ptr<float>();
  layer.c = call.c == nullptr ? nullptr : call.c->toTensor().mutable_data_ptr<float>();
  layer.out = out.mutable_data_ptr<float>();
  torch::executor::native::internal::EngineScratch scratch(context);
  if (!layer.run(scratch)) context.fail(Error::MemoryAllocationFailed);
  return true;
}

// ---- When a method is loaded.

/// A loop whose body is one basic block, as emitted for scan:
///   share = select_copy(shares, 0, counter); h' and c' = a step; et_copy_index(out, h', counter);
///   copy_(h, h'); copy_(c, c'); counter += 1; done = counter == count; jump to the first one if
///   not done
class Match {
 public:
  /// `last` jumps to the beginning of its basic block.
  Match(Graph& graph, Arena& arena, int last) : graph_(graph), arena_(arena), last_(last) {
    first_ = last;
    while (first_ > 0 && node(first_ - 1).basic_block == node(last).basic_block) --first_;
  }

  void run() {
    if (find_frame() && find_step() && have_sizes() && stay_inside()) emit();
  }

 private:
  const Graph::Node& node(int n) const { return graph_.nodes()[n]; }
  bool is_inside(int n) const { return n >= first_ && n <= last_; }
  // The node of the body that computes v, if its operator is `op`; otherwise -1.
  int maker(int v, std::string_view op) const {
    const int n = v < 0 ? -1 : graph_.def(v);
    return is_inside(n) && node(n).pure && graph_.is(n, op) && graph_.stable(v) ? n : -1;
  }
  int arg(int n, size_t i) const { return graph_.arg_id(n, i); }
  bool is_one(int n, size_t i) const { return graph_.constant_number(graph_.arg(n, i)) == 1.0; }

  // ---- What surrounds the step.

  bool find_frame() {
    const int done = arg(last_, 0);
    for (int n = first_; n < last_; ++n) {
      const std::string_view name = node(n).name;
      const size_t n_args = graph_.n_args(n);
      if (node(n).copies) {
        if (n_carried_ == 2) return false;
        carried_[n_carried_] = node(n).written;
        after_[n_carried_++] = arg(n, 1);
      } else if (name == "et_copy_index.tensor" && n_args == 3 && store_ < 0) {
        store_ = n;
      } else if (name == "eq.Scalar" && n_args == 3 && arg(n, 2) == done && counter_ < 0) {
        counter_ = arg(n, 0);
        count_ = arg(n, 1);
      } else if (!node(n).pure) {
        return false;
      }
    }
    return n_carried_ > 0 && store_ >= 0 && counter_ >= 0 && counts() && find_share() && begins();
  }

  // Whether the loop adds one to the counter, once.
  bool counts() const {
    int found = 0;
    for (int n = first_; n < last_; ++n) {
      for (int v : node(n).outputs) found += v == counter_ ? 1 : 0;
      if (node(n).name == "add.Scalar" && graph_.n_args(n) == 3 && arg(n, 0) == counter_ &&
          arg(n, 2) == counter_ && is_one(n, 1)) {
        found += 2;
      }
    }
    return found == 3 && arg(store_, 2) == counter_;
  }

  // Whether the nodes before the loop set the counter to 0 and `count_` to the number of shares.
  bool begins() const {
    const int reset = writer_before(counter_), size = writer_before(count_);
    return reset >= 0 && node(reset).name == "sub.Scalar" && arg(reset, 0) == counter_ &&
           arg(reset, 1) == counter_ && size >= 0 && node(size).name == "sym_size.int" &&
           arg(size, 0) == shares_ && graph_.constant_number(graph_.arg(size, 1)) == 0.0 &&
           graph_.values()[count_].n_defs == 1;
  }
  // The last node before the loop that writes v, in the basic block that leads to it.
  int writer_before(int v) const {
    for (int n = first_ - 1; n >= 0; --n) {
      if (node(n).basic_block != node(first_ - 1).basic_block) break;
      const auto& outputs = node(n).outputs;
      graph_.effort().spend(outputs.size() + 1);
      if (std::find(outputs.begin(), outputs.end(), v) != outputs.end()) return n;
    }
    return -1;
  }

  bool find_share() {
    for (int n = first_; n < last_; ++n) {
      if (!graph_.is(n, "select_copy.int_out") || arg(n, 2) != counter_) continue;
      if (share_ >= 0 || graph_.constant_number(graph_.arg(n, 1)) != 0.0) return false;
      share_ = graph_.out(n);
      shares_ = arg(n, 0);
    }
    return share_ >= 0;
  }

  // ---- The step.

  bool find_step() {
    if (n_carried_ == 2) return find_lstm(0) || find_lstm(1);
    h_ = carried_[0];
    return find_gru(after_[0]) || find_plain(after_[0], "tanh.out", Cell::Tanh) ||
           find_plain(after_[0], "relu.out", Cell::Relu);
  }

  // The operands of a call of `op`, in both orders.
  template <class F>
  bool either(int v, std::string_view op, const F& f) const {
    const int n = maker(v, op);
    if (n < 0 || (op == "add.out" && !is_one(n, 2))) return false;
    return f(arg(n, 0), arg(n, 1)) || f(arg(n, 1), arg(n, 0));
  }
  // What a function of one tensor is called with; -1 if v is no result of it.
  int inside(int v, std::string_view op) const {
    const int n = maker(v, op);
    return n < 0 ? -1 : arg(n, 0);
  }
  // What v is a part of: of `n_parts` equal ones along the last dim, number `part`; otherwise -1.
  int whole(int v, size_t part, size_t n_parts) const {
    const int n = maker(v, "split_with_sizes_copy.out");
    if (n < 0 || node(n).outputs.size() != n_parts || node(n).outputs[part] != v) return -1;
    const auto dim = graph_.constant_number(graph_.arg(n, 2));
    if (dim != 1.0 && dim != -1.0) return -1;
    for (int each : node(n).outputs) {
      if (!graph_.tensor(each).sizes().equals(graph_.tensor(v).sizes())) return -1;
    }
    return arg(n, 0);
  }

  bool find_lstm(int first) {
    cell_ = Cell::Lstm;
    h_ = carried_[first], c_ = carried_[1 - first];
    const int h = after_[first], c = after_[1 - first];
    int gates[4] = {-1, -1, -1, -1};  // i, f, u, o, as what they are functions of
    const auto is_update = [&](int v) {
      return either(v, "mul.out", [&](int a, int b) {
        gates[0] = inside(a, "sigmoid.out");
        gates[2] = inside(b, "tanh.out");
        return gates[0] >= 0 && gates[2] >= 0;
      });
    };
    const auto is_kept = [&](int v) {
      return either(v, "mul.out", [&](int a, int b) {
        gates[1] = inside(a, "sigmoid.out");
        return gates[1] >= 0 && b == c_;
      });
    };
    const auto is_out = [&](int a, int b) {
      gates[3] = inside(a, "sigmoid.out");
      return gates[3] >= 0 && inside(b, "tanh.out") == c;
    };
    if (!either(c, "add.out", [&](int a, int b) { return is_kept(a) && is_update(b); }) ||
        !either(h, "mul.out", is_out)) {
      return false;
    }
    const int sum = whole(gates[0], 0, 4);
    for (size_t g = 1; g < 4; ++g) {
      if (whole(gates[g], g, 4) != sum) return false;
    }
    return find_sum(sum) && is_stored(h);
  }

  bool find_gru(int h) {
    cell_ = Cell::Gru;
    int next = -1, keep = -1, reset = -1, product = -1;
    const auto is_mixed = [&](int a, int b) {
      next = b;
      return either(a, "mul.out", [&](int difference, int gate) {
        const int n = maker(difference, "sub.out");
        keep = inside(gate, "sigmoid.out");
        return n >= 0 && keep >= 0 && arg(n, 0) == h_ && arg(n, 1) == next && is_one(n, 2);
      });
    };
    if (!either(h, "add.out", is_mixed)) return false;
    const auto is_reset = [&](int a, int b) {
      product = whole(a, 2, 3);
      reset = inside(b, "sigmoid.out");
      return product >= 0 && reset >= 0;
    };
    const auto is_next = [&](int a, int b) {
      return whole(a, 2, 3) == share_ && either(b, "mul.out", is_reset);
    };
    const auto is_gate = [&](int v, size_t part) {
      return either(v, "add.out", [&](int a, int b) {
        return whole(a, part, 3) == product && whole(b, part, 3) == share_;
      });
    };
    return either(inside(next, "tanh.out"), "add.out", is_next) && is_gate(reset, 0) &&
           is_gate(keep, 1) && find_product(product) && is_stored(h);
  }

  bool find_plain(int h, std::string_view function, Cell cell) {
    cell_ = cell;
    return find_sum(inside(h, function)) && is_stored(h);
  }

  bool find_sum(int v) {
    return either(v, "add.out", [&](int a, int b) { return b == share_ && find_product(a); });
  }

  // The product of h with constant weights, and a bias.
  bool find_product(int v) {
    const int block = v < 0 || graph_.def(v) < 0 ? -1 : node(graph_.def(v)).block;
    if (const int n = maker(v, "mm.out"); n >= 0) {
      return arg(n, 0) == h_ && find_weights(arg(n, 1), block, false);
    }
    if (const int n = maker(v, "addmm.out"); n >= 0) {
      bias_ = arg(n, 0);
      return arg(n, 1) == h_ && is_one(n, 3) && is_one(n, 4) &&
             find_weights(arg(n, 2), block, false);
    }
    const int n = maker(v, "linear.out");
    if (n < 0 || arg(n, 0) != h_) return false;
    if (graph_.is_tensor(arg(n, 2))) bias_ = arg(n, 2);
    return find_weights(arg(n, 1), block, true);
  }

  bool find_weights(int v, int block, bool by_units) {
    weights_ = graph_.strip(v, block);
    if (is_inside(graph_.def(weights_.base)) || !is_float32(weights_.base)) return false;
    const Operand operand = {graph_.values()[weights_.base].value,
                             {weights_.steps.data(), weights_.steps.size()}};
    const View view = operand.view();
    if (!view.valid() || view.ndim() != 2) return false;
    const int units = by_units ? 0 : 1, k = 1 - units;
    sizes_[0] = view.size(units), sizes_[1] = view.size(k);
    offset_ = view.offset();
    return view.stride(units, layer_.unit_stride) && view.stride(k, layer_.k_stride);
  }

  // Whether h, or a copy of it, is what is stored as the result of each step.
  bool is_stored(int h) const {
    int v = arg(store_, 1);
    for (int n = graph_.def(v); v != h && is_inside(n) && node(n).pure; n = graph_.def(v)) {
      const auto step = graph_.step(n, v);
      if (!step.has_value() || step->kind != Step::Kind::Same) return false;
      v = arg(n, 0);
    }
    return v == h;
  }

  // ---- Conditions.

  bool is_float32(int v) const {
    return v >= 0 && graph_.is_tensor(v) && graph_.is_float(v) && default_order(graph_.tensor(v)) &&
           graph_.tensor(v).scalar_type() == ScalarType::Float;
  }
  bool has_sizes(int v, int64_t rows, int64_t columns) const {
    if (!is_float32(v)) return false;
    const auto sizes = graph_.tensor(v).sizes();
    return sizes.size() == 2 && sizes[0] == rows && sizes[1] == columns &&
           graph_.tensor(v).unsafeGetTensorImpl()->shape_dynamism() ==
               aten::TensorShapeDynamism::STATIC;
  }
  // Of any number of steps.
  bool has_rows(int v, int64_t rows, int64_t columns) const {
    if (!is_float32(v)) return false;
    const auto sizes = graph_.tensor(v).sizes();
    return sizes.size() == 3 && sizes[1] == rows && sizes[2] == columns;
  }

  bool have_sizes() {
    if (!is_float32(h_) || graph_.tensor(h_).dim() != 2) return false;
    layer_.cell = cell_;
    layer_.batch = graph_.tensor(h_).size(0);
    layer_.units = graph_.tensor(h_).size(1);
    const int64_t width = layer_.units * Recurrent::gates(cell_);
    const auto is_bias = [&](const Tensor& t) { return t.dim() == 1 && t.size(0) == width; };
    return has_sizes(h_, layer_.batch, layer_.units) &&
           (c_ < 0 || has_sizes(c_, layer_.batch, layer_.units)) &&
           has_sizes(share_, layer_.batch, width) && has_rows(shares_, layer_.batch, width) &&
           has_rows(arg(store_, 0), layer_.batch, layer_.units) && sizes_[0] == width &&
           sizes_[1] == layer_.units &&
           (bias_ < 0 ||
            (is_float32(bias_) && !is_inside(graph_.def(bias_)) && is_bias(graph_.tensor(bias_))));
  }

  // Whether nothing outside reads what only the loop computes. Numbers are set before the loop.
  bool stay_inside() const {
    std::vector<bool> is_inner(graph_.values().size());
    for (int n = first_; n < last_; ++n) {
      for (int v : node(n).outputs) is_inner[v] = true;
    }
    for (size_t v = 0; v < is_inner.size(); ++v) {
      if (is_inner[v] && (graph_.values()[v].output || graph_.values()[v].input)) return false;
    }
    for (int v : {shares_, weights_.base, bias_, arg(store_, 0)}) {
      if (v >= 0 && is_inner[v]) return false;
    }
    for (int n = 0; n < static_cast<int>(graph_.nodes().size()); ++n) {
      if (is_inside(n)) continue;
      const auto is_foreign = [&](int v) {
        return is_inner[v] && (n > last_ || graph_.is_tensor(v));
      };
      graph_.effort().spend(node(n).inputs.size() + node(n).outputs.size());
      if (std::any_of(node(n).inputs.begin(), node(n).inputs.end(), is_foreign) ||
          std::any_of(node(n).outputs.begin(), node(n).outputs.end(), is_foreign)) {
        return false;
      }
    }
    return true;
  }

  void emit() {
    auto* const call = arena_.make<RecurrentCall>();
    if (call == nullptr) return;
    const auto value = [&](int v) { return v < 0 ? nullptr : graph_.values()[v].value; };
    call->run = run_recurrent;
    call->name = cell_ == Cell::Lstm ? "lstm" : cell_ == Cell::Gru ? "gru" : "rnn";
    call->out = value(arg(store_, 0));
    call->layer = layer_;
    call->shares = value(shares_);
    call->weights = value(weights_.base);
    call->weights_offset = offset_;
    call->bias = value(bias_);
    call->h = value(h_);
    call->c = value(c_);
    std::vector<int> inputs = {shares_, weights_.base, h_, arg(store_, 0)};
    for (int v : {bias_, c_}) {
      if (v >= 0) inputs.push_back(v);
    }
    graph_.replace_loop(first_, last_, store_, call, inputs);
  }

  Graph& graph_;
  Arena& arena_;
  int first_, last_;
  int store_ = -1;                 // the node of et_copy_index
  int counter_ = -1, count_ = -1;  // values, as all below
  int share_ = -1, shares_ = -1;
  int n_carried_ = 0, carried_[2] = {-1, -1}, after_[2] = {-1, -1};
  int h_ = -1, c_ = -1, bias_ = -1;
  Graph::Chain weights_;
  int64_t sizes_[2] = {}, offset_ = 0;  // of the weights, [gates * units, units]
  Cell cell_ = Cell::Lstm;
  Recurrent layer_;
};

}  // namespace

void fuse_recurrent(Graph& graph, Arena& arena) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    if (graph.nodes()[n].live && graph.repeats_block(n)) Match(graph, arena, n).run();
  }
}

}  // namespace executorch::optimized
