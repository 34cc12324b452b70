#include <executorch/cpu/gemm/gemm.h>
#include <executorch/kernels/optimized/epilogue.h>
#include <executorch/kernels/optimized/linear_call.h>
#include <executorch/kernels/optimized/loops.h>
#include <executorch/kernels/optimized/patterns.h>
#include <executorch/kernels/optimized/selected_rows.h>

#include <algorithm>

namespace executorch::optimized {
namespace {

using aten::ScalarType;

// ---- At run time.

enum Who { kA, kB, kC, kAddend, kResidual, kCount };

struct Product {
  View views[kCount];
  // The sizes of the product's result.
  View sizes;
};

bool find_term(const Term& term, const View& product, View& view) {
  if (!term.present) {
    const int64_t ones[View::kMaxDims] = {1, 1, 1, 1, 1, 1, 1, 1};
    view = View(ones, product.ndim());
    return true;
  }
  View behind = product;
  view = term.operand.view();
  return view.valid() && apply_steps(term.steps, behind) && view.expand_as(behind) &&
         undo_steps(term.steps, product, view);
}

bool find_sizes(const LinearCall& call, View& a, View& b, View& product) {
  if (!a.valid() || !b.valid()) return false;
  const int rank = a.ndim();
  if (call.is_linear && (b.ndim() != 2 || rank < 1 || !b.transpose(0, 1))) return false;
  if (!call.is_linear && (rank < 2 || rank > 3 || b.ndim() != rank)) return false;
  if (!call.is_linear && rank == 3 && a.size(0) != b.size(0)) return false;
  if (a.size(rank - 1) != b.size(b.ndim() - 2)) return false;
  int64_t sizes[View::kMaxDims];
  for (int d = 0; d < rank; ++d) sizes[d] = a.size(d);
  sizes[rank - 1] = b.size(b.ndim() - 1);
  product = View(sizes, rank);
  return product.valid();
}

// Makes all operands and the result three-dimensional: [batch, rows, columns].
bool to_matrices(const LinearCall& call, Product& p) {
  const int rank = p.sizes.ndim();
  const bool batched = !call.is_linear && rank == 3;
  const int64_t k = p.views[kA].size(rank - 1), n = p.sizes.size(rank - 1);
  const int64_t batch = batched ? p.sizes.size(0) : 1;
  int64_t m = 1;
  for (int d = batched ? 1 : 0; d + 1 < rank; ++d) m *= p.sizes.size(d);
  const int64_t a[] = {batch, m, k}, b[] = {batch, k, n}, c[] = {batch, m, n};
  const int64_t one[] = {1, 1, 1};
  return p.views[kA].reshape(a, 3) && p.views[kB].reshape(b, 3) && p.views[kC].reshape(c, 3) &&
         p.views[kAddend].reshape(call.addend.present ? c : one, 3) &&
         p.views[kResidual].reshape(call.residual.present ? c : one, 3);
}

bool find_views(const LinearCall& call, Product& p) {
  p.views[kA] = call.a.view();
  p.views[kB] = call.b.view();
  if (!find_sizes(call, p.views[kA], p.views[kB], p.sizes) ||
      !find_term(call.addend, p.sizes, p.views[kAddend]) ||
      !find_term(call.residual, p.sizes, p.views[kResidual])) {
    return false;
  }
  View result = p.sizes;
  const Tensor& out = call.out->toTensor();
  if (!apply_steps(call.out_steps, result) || !resize(out, result)) return false;
  p.views[kC] = View(out);
  return undo_steps(call.out_steps, p.sizes, p.views[kC]) && to_matrices(call, p);
}

// The loops around the matrix products. The engine runs some of them as m and batch.
using RowLoops = Loops<kCount>;

template <class T>
struct Runner {
  const RowLoops& loops;
  int first_outer;
  cpu::Gemm<T> gemm;
  const cpu::QuantizedWeights* quantized;  // null: b holds elements of T
  cpu::Scratch& scratch;

  [[nodiscard]] bool multiply_once(const cpu::Gemm<T>& product) const {
    return quantized != nullptr ? multiply(product, *quantized, scratch) : product.run(scratch);
  }

  [[nodiscard]] bool run(int level, const T* a, const T* b, T* c, const T* addend,
                         const T* residual) {
    if (level == first_outer) {
      gemm.a.data = a;
      gemm.b.data = b;
      gemm.c.data = c;
      gemm.addend.data = addend;
      gemm.residual.data = residual;
      return multiply_once(gemm);
    }
    const auto& loop = loops.loops[level - 1];
    for (int64_t i = 0; i < loop.size; ++i) {
      if (!run(level - 1, a + i * loop.stride[kA], b + i * loop.stride[kB], c + i * loop.stride[kC],
               addend == nullptr ? nullptr : addend + i * loop.stride[kAddend],
               residual == nullptr ? nullptr : residual + i * loop.stride[kResidual])) {
        return false;
      }
    }
    return true;
  }
};

template <class T>
const T* term_data(const Term& term, const View& view) {
  return term.present ? static_cast<const T*>(term.operand.data(view)) : nullptr;
}

// Whether dimensions d and d + 1 of b are k and n of the weights [n, k], as they lie in memory.
bool reads_all(const Tensor& weights, const View& b, int d) {
  int64_t k, n;
  return b.offset() == 0 && b.size(d) == weights.size(1) && b.size(d + 1) == weights.size(0) &&
         b.stride(d, k) && b.stride(d + 1, n) && (b.size(d) == 1 || k == 1) &&
         (b.size(d + 1) == 1 || n == b.size(d));
}

template <class T>
bool run_typed(const LinearCall& call, const Product& p, cpu::Scratch& scratch) {
  // The loops over rows: the innermost is the engine's m, the others are batches.
  View rows[kCount];
  std::copy(std::begin(p.views), std::end(p.views), rows);
  const int64_t one[] = {1, 1, 1};
  rows[kB] = View(one, 3);
  RowLoops m_loops;
  if (!m_loops.add(rows, 1)) return false;
  RowLoops loops;
  cpu::Gemm<T> gemm;
  const bool has_rows = m_loops.n > 0;
  const auto& inner = m_loops.loops[0];
  gemm.m = has_rows ? inner.size : 1;
  for (int i = 1; i < m_loops.n; ++i) loops.loops[loops.n++] = m_loops.loops[i];
  if (!loops.add(p.views, 0)) return false;
  gemm.n = p.views[kC].size(2);
  gemm.k = p.views[kA].size(2);
  gemm.a.row_stride = inner.stride[kA];
  gemm.c.row_stride = inner.stride[kC];
  gemm.addend.row_stride = inner.stride[kAddend];
  gemm.residual.row_stride = inner.stride[kResidual];
  if (!p.views[kA].stride(2, gemm.a.col_stride) || !p.views[kB].stride(1, gemm.b.row_stride) ||
      !p.views[kB].stride(2, gemm.b.col_stride) || !p.views[kC].stride(2, gemm.c.col_stride) ||
      !p.views[kAddend].stride(2, gemm.addend.col_stride) ||
      !p.views[kResidual].stride(2, gemm.residual.col_stride)) {
    return false;
  }
  gemm.alpha = call.quantized.scale;
  gemm.act = call.act;
  gemm.act_last = call.act_last;
  int first_outer = 0;
  if (loops.n > 0) {
    const auto& batch = loops.loops[0];
    gemm.batch = batch.size;
    gemm.a_batch = batch.stride[kA];
    gemm.b_batch = batch.stride[kB];
    gemm.c_batch = batch.stride[kC];
    gemm.addend_batch = batch.stride[kAddend];
    gemm.residual_batch = batch.stride[kResidual];
    first_outer = 1;
  }
  const T* b = nullptr;
  cpu::QuantizedWeights weights;
  const cpu::Scratch::Frame frame(scratch);
  if (!call.quantized.present()) {
    b = static_cast<const T*>(call.b.data(p.views[kB]));
  } else if (!reads_all(call.b.tensor(), p.views[kB], 1) ||
             !call.quantized.read(call.b.tensor(), scratch, weights)) {
    return false;
  }
  const auto* const quantized = call.quantized.present() ? &weights : nullptr;
  gemm.a.data = static_cast<const T*>(call.a.data(p.views[kA]));
  gemm.b.data = b;
  gemm.c.data = static_cast<T*>(call.out->toTensor().mutable_data_ptr()) + p.views[kC].offset();
  gemm.addend.data = term_data<T>(call.addend, p.views[kAddend]);
  Runner<T> runner{loops, first_outer, gemm, quantized, scratch};
  SelectedRows selected(scratch);
  if (call.factor.base != nullptr && loops.n == 0 && gemm.addend.row_stride == 0 &&
      selected.choose(call.factor, gemm.m)) {
    return selected.run(gemm, [&](const auto& some) { return runner.multiply_once(some); });
  }
  return runner.run(loops.n, gemm.a.data, b, gemm.c.data, gemm.addend.data,
                    term_data<T>(call.residual, p.views[kResidual]));
}

bool run_linear(const FusedCall& base, KernelRuntimeContext& ctx) {
  const auto& call = static_cast<const LinearCall&>(base);
  Product product;
  if (!find_views(call, product)) return false;
  torch::executor::native::internal::EngineScratch scratch(ctx);
  return cpu::with_type(engine_type(call.out->toTensor()),
                        [&](auto t) { return run_typed<decltype(t)>(call, product, scratch); });
}

// ---- When a method is loaded.

// Whether a matrix can be read through `step` with two strides.
bool is_matrix_step(const Step& step) {
  const int64_t rank = step.args[0]->toTensor().dim();
  return step.keeps_order() || (rank == 2 && step.moves_all());
}

bool is_batch_step(const Step& step) {
  return step.moves_all() || step.kind == Step::Kind::Expand;
}

bool is_product(const Graph& graph, int n) {
  const bool product = graph.is(n, "mm.out") || graph.is(n, "addmm.out") ||
                       graph.is(n, "linear.out") || graph.is(n, "bmm.out");
  return product && graph.nodes()[n].live && graph.deferrable(n);
}

class Match {
 public:
  Match(Graph& graph, Arena& arena, int root)
      : graph_(graph), arena_(arena), root_(root), block_(graph.nodes()[root].block) {}

  /// `even_alone`: also a product without an epilogue, whose own kernel would do.
  void run(bool even_alone) {
    const bool batched = is(root_, "bmm.out");
    const size_t first = is(root_, "addmm.out") ? 1 : 0;
    const int a = graph_.arg_id(root_, first), b = graph_.arg_id(root_, first + 1);
    type_ = graph_.tensor(a).scalar_type();
    if (!is_operand(a) || !is_operand(b) || !is_operand(graph_.out(root_))) return;
    Epilogue::Term bias;
    if (!find_bias(bias)) return;
    const auto accepts = batched ? is_batch_step : is_matrix_step;
    const auto chain_a = graph_.strip(a, block_, accepts);
    auto chain_b = graph_.strip(b, block_, accepts);
    const Epilogue epilogue(graph_, root_, true, bias);
    if (!batched) find_weights(chain_b);
    if (even_alone || epilogue.last() != root_ || copies(chain_a) || copies(chain_b) ||
        quantized_.present()) {
      emit(chain_a, chain_b, epilogue, bias.value >= 0);
    }
  }

 private:
  bool is(int n, std::string_view op) const { return graph_.is(n, op); }
  bool is_operand(int v) const {
    return graph_.is_float(v) && graph_.tensor(v).scalar_type() == type_ && graph_.stable(v);
  }
  static bool copies(const Graph::Chain& chain) {
    return std::any_of(chain.steps.begin(), chain.steps.end(),
                       [](const Step& step) { return !step.keeps_order(); });
  }

  // Finds the bias that is an argument of the product itself.
  bool find_bias(Epilogue::Term& bias) const {
    const auto is_one = [&](size_t i) {
      return graph_.constant_number(graph_.arg(root_, i)) == 1.0;
    };
    if (is(root_, "addmm.out")) {
      bias.value = graph_.arg_id(root_, 0);
      return is_one(3) && is_one(4) && is_operand(bias.value);
    }
    if (!is(root_, "linear.out") || graph_.arg(root_, 2)->isNone()) return true;
    bias.value = graph_.arg_id(root_, 2);
    return is_operand(bias.value);
  }

  // Where `chain` reads the rows of dequantized weights, makes it begin at their integers.
  void find_weights(Graph::Chain& chain) {
    Graph::Chain integers = chain;
    QuantizedOperand found;
    if (!find_quantized(graph_, block_, integers, found)) return;
    const Operand operand = {graph_.values()[integers.base].value,
                             {integers.steps.data(), integers.steps.size()}};
    View b = operand.view();
    const bool is_matrix =
        b.valid() && b.ndim() == 2 && (!is(root_, "linear.out") || b.transpose(0, 1));
    if (!is_matrix || !reads_all(operand.tensor(), b, 0)) return;
    chain = integers;
    quantized_ = found;
  }

  Term term(const Epilogue::Term& found, Span<const Step> steps, std::vector<int>& inputs) {
    if (found.value < 0) return {};
    const Graph::Chain chain{found.value, {}};
    add_inputs(graph_, chain, inputs);
    return {true, arena_.operand(graph_, chain), {steps.data(), found.n_steps}};
  }

  void emit(const Graph::Chain& a, const Graph::Chain& b, const Epilogue& epilogue, bool bias) {
    auto* const call = arena_.make<LinearCall>();
    if (call == nullptr) return;
    std::vector<int> inputs;
    add_inputs(graph_, a, inputs);
    add_inputs(graph_, b, inputs);
    for (const EValue* parameters : {quantized_.scales, quantized_.zero_points}) {
      if (parameters != nullptr) inputs.push_back(graph_.id(parameters));
    }
    add_numbers(graph_, epilogue.steps(), inputs);
    call->a = arena_.operand(graph_, a);
    call->b = arena_.operand(graph_, b);
    call->is_linear = is(root_, "linear.out");
    call->quantized = quantized_;
    call->out_steps = arena_.steps(epilogue.steps());
    call->addend = term(epilogue.addend(), call->out_steps, inputs);
    call->residual = term(epilogue.residual(), call->out_steps, inputs);
    call->act = epilogue.act();
    call->act_last = epilogue.act_last();
    call->run = run_linear;
    call->out = graph_.values()[graph_.out(epilogue.last())].value;
    std::string name = is(root_, "bmm.out") ? "matmul" : "linear";
    if (quantized_.present()) name = "dequantize+linear";
    name.append(bias ? "+bias" : "").append(epilogue.name());
    call->name = arena_.copy(name);
    if (arena_.ok()) graph_.replace(epilogue.last(), call, inputs);
  }

  Graph& graph_;
  Arena& arena_;
  const int root_;
  const int block_;
  ScalarType type_ = ScalarType::Float;
  QuantizedOperand quantized_;
};

}  // namespace

LinearCall* linear_call(Graph& graph, Arena& arena, int n) {
  if (graph.nodes()[n].fused == nullptr && is_product(graph, n)) {
    Match(graph, arena, n).run(true);
    graph.refresh();
  }
  FusedCall* const call = graph.nodes()[n].fused;
  return call != nullptr && call->run == run_linear ? static_cast<LinearCall*>(call) : nullptr;
}

void fuse_linear(Graph& graph, Arena& arena) {
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    if (is_product(graph, n)) Match(graph, arena, n).run(false);
  }
}

}  // namespace executorch::optimized
