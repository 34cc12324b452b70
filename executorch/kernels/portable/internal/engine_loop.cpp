#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/kernels/portable/internal/elementwise.h>

#include <algorithm>

namespace torch::executor::native::internal {
namespace {

namespace cpu = executorch::cpu;

/// A pass whose arrays all have the type of the result, over which the engine's function runs
/// without buffers between.
class EngineRunner {
 public:
  EngineRunner(const Pass& pass, EngineLoop engine_loop, const void* function)
      : pass_(pass), loop_(pass.loop), engine_loop_(engine_loop), function_(function) {
    const auto type = engine_type(pass.common);
    if (!type.has_value() || pass.out_type != pass.common || !loop_.is_dense(0)) return;
    type_ = *type;
    size_ = cpu::size_of(type_);
    row_ = loop_.ndim > 0 ? loop_.sizes[loop_.ndim - 1] : 1;
    int64_t moved = size_;  // bytes an element
    bool has_arrays = false;
    for (int k = 0; k < pass.n_inputs; ++k) {
      if (!set_operand(k)) return;
      moved += operands_[k].read == Read::Dense ? size_ : 0;
      by_rows_ |= operands_[k].read == Read::Row || operands_[k].read == Read::One;
      has_arrays |= operands_[k].read != Read::Constant;
    }
    fits_ = has_arrays && (!by_rows_ || row_ >= kMinRow);
    past_ = cpu::overflows_caches(loop_.numel * moved);
  }

  bool fits() const { return fits_; }

  void run(int64_t begin, int64_t end) const {
    alignas(cpu::kLine) char chunk[cpu::kStreamBytes];
    for (int64_t pos = begin, n; pos < end; pos += n) {
      char* const y = static_cast<char*>(pass_.out) + pos * size_;
      n = end - pos;
      if (by_rows_) n = std::min(n, row_ - pos % row_);
      if (past_) n = std::min(n, cpu::chunk_at(y) / size_);
      cpu::Operand in[kMaxInputs];
      for (int k = 0; k < pass_.n_inputs; ++k) in[k] = operand(k, pos, n);
      engine_loop_(function_, type_, in, past_ ? chunk : y, n);
      if (past_) cpu::stream(chunk, y, static_cast<size_t>(n * size_));
    }
    if (past_) cpu::end_stream();
  }

 private:
  /// How an operand is read: one value for all elements, a value for each element, a row that is
  /// repeated, or a value for each row.
  enum class Read : uint8_t { Constant, Dense, Row, One };

  /// Prepares operand k. Returns false if it cannot be read where it lies.
  bool set_operand(int k) {
    auto& operand = operands_[k];
    if (loop_.is_constant(k + 1)) {
      operand.read = Read::Constant;
      load(pass_.in[k], pass_.in_type[k], 0, 1, &operand.number);
      if (pass_.in_wraps[k]) round_through(pass_.common, &operand.number, 1);
      return true;
    }
    const int64_t stride = loop_.inner_stride(k + 1);
    operand.read = loop_.is_dense(k + 1) ? Read::Dense : stride == 1 ? Read::Row : Read::One;
    return pass_.in_type[k] == pass_.common && (operand.read != Read::One || stride == 0);
  }

  cpu::Operand operand(int k, int64_t pos, int64_t n) const {
    const Read read = operands_[k].read;
    if (read == Read::Constant) return {nullptr, operands_[k].number};
    const int64_t at = read == Read::Dense ? pos : loop_.offset(k + 1, pos);
    const char* const data = static_cast<const char*>(pass_.in[k]) + at * size_;
    if (read == Read::One) {
      float number;
      load(data, pass_.common, 0, 1, &number);
      return {nullptr, number};
    }
    if (past_ && read == Read::Dense) cpu::prefetch(data + n * size_, n * size_);
    return {data};
  }

  const Pass& pass_;
  const Loop& loop_;
  EngineLoop engine_loop_;
  const void* function_;
  cpu::Type type_ = cpu::Type::F32;
  int64_t size_ = 0, row_ = 1;
  bool fits_ = false;
  bool past_ = false;     // results are written past the caches
  bool by_rows_ = false;  // no run goes beyond a row
  struct {
    Read read;
    float number;
  } operands_[kMaxInputs] = {};
};

}  // namespace

void run_by_engine(const Pass& pass, EngineLoop loop, const void* function) {
  const EngineRunner runner(pass, loop, function);
  if (runner.fits()) {
    cpu::parallel_for(pass.loop.numel, kGrain,
                      [&](int64_t begin, int64_t end) { runner.run(begin, end); });
    return;
  }
  struct Call {
    EngineLoop loop;
    const void* function;
    int n_inputs;
  };
  const Call call = {loop, function, pass.n_inputs};
  const InnerLoop in_float = [](const void* const* in, void* out, int64_t n, const void* context) {
    const auto& made = *static_cast<const Call*>(context);
    cpu::Operand operands[kMaxInputs];
    for (int k = 0; k < made.n_inputs; ++k) operands[k].data = in[k];
    made.loop(made.function, cpu::Type::F32, operands, out, n);
  };
  run(pass, in_float, &call);
}

}  // namespace torch::executor::native::internal
