#include <executorch/kernels/portable/internal/elementwise.h>

#include <executorch/cpu/nn/stream.h>
#include <executorch/cpu/threadpool.h>

#include <algorithm>

namespace torch::executor::native::internal {
namespace {

constexpr int64_t kChunk = 1024;  // elements; the buffers in use fit a first-level cache

bool is_allowed(const Rules& rules, ScalarType t) {
  if (t == ScalarType::Bool) return rules.allow_bool;
  return is_float(t) ? rules.allow_float : is_integer(t) && rules.allow_int;
}

bool check_types(KernelRuntimeContext& ctx, const Rules& rules, ScalarType common,
                 const Tensor& out) {
  ET_REQUIRE(ctx, is_allowed(rules, common), InvalidArgument, false,
             "%s: operands of type %s are not supported", rules.op, toString(common));
  const ScalarType result = rules.to_bool                             ? ScalarType::Bool
                            : rules.int_to_float && !is_float(common) ? ScalarType::Float
                                                                      : common;
  const bool stored = rules.exact_out ? result == out.scalar_type() && is_real(result)
                                      : can_store(result, out.scalar_type());
  ET_REQUIRE(ctx, stored, InvalidArgument, false,
             "%s: a result of type %s cannot be stored in out, which is %s", rules.op,
             toString(result), toString(out.scalar_type()));
  return true;
}

void set_number(Pass& pass, int k, const Scalar& s) {
  switch (pass.compute) {
    case Compute::Int:
      pass.number[k].i = scalar_as<int64_t>(s);
      break;
    case Compute::Float:
      pass.number[k].f = scalar_as<float>(s);
      break;
    case Compute::Double:
      pass.number[k].d = scalar_as<double>(s);
      break;
  }
  pass.in[k] = &pass.number[k];
  pass.in_type[k] = scalar_type_of(pass.compute);
  pass.in_wraps[k] = is_integer(pass.common) && elementSize(pass.common) < sizeof(int64_t);
}

bool narrows(ScalarType from, ScalarType common, bool is_zero_dim) {
  if (from == common || from == ScalarType::Bool) return false;
  if (is_integer(common)) return elementSize(common) < sizeof(int64_t);
  return !is_zero_dim && is_float(common) && elementSize(common) == 2;
}

/// A function of one operand of 16 bits is rounded once, to the type of out, if that is another
/// floating type. (With several operands eager's rule holds: first to their common type.)
bool rounds_twice(ScalarType common, ScalarType out) {
  return is_float(common) && elementSize(common) == 2 && is_float(out) && out != common;
}

}  // namespace

bool prepare(KernelRuntimeContext& ctx, const Rules& rules, Tensor& out,
             std::initializer_list<Operand> inputs, Pass& pass) {
  Promotion promotion;
  Shape shape;
  const Operand* first = inputs.begin();
  for (const Operand& in : inputs) {
    if (in.tensor != nullptr) {
      ET_REQUIRE(ctx, is_real(in.tensor->scalar_type()), InvalidArgument, false,
                 "%s: operands of type %s are not supported", rules.op,
                 toString(in.tensor->scalar_type()));
      if (!broadcast_with(ctx, rules.op, *in.tensor, shape)) return false;
    }
    if (&in == first && rules.condition_first) continue;
    in.tensor != nullptr ? promotion.add(*in.tensor) : promotion.add(*in.number);
  }
  pass.common = promotion.result();
  if (!check_types(ctx, rules, pass.common, out)) return false;
  if (rules.int_to_float && !is_float(pass.common)) pass.common = ScalarType::Float;
  if (inputs.size() == 1 && !rules.to_bool && rounds_twice(pass.common, out.scalar_type())) {
    pass.common = ScalarType::Float;
  }
  if (!resize_out(ctx, rules.op, out, shape)) return false;
  pass.compute = compute_of(pass.common);
  const int64_t in_double = pass.compute == Compute::Double ? 8 : 1;
  ctx.add_steps(steps_of(Size(out.numel()) * rules.steps * in_double));
  pass.to_bool = rules.to_bool;
  pass.condition_first = rules.condition_first;
  pass.out = out.mutable_data_ptr();
  pass.out_type = out.scalar_type();
  pass.loop = Loop(shape);
  pass.loop.add(out);
  for (const Operand& in : inputs) {
    const int k = pass.n_inputs++;
    if (in.tensor == nullptr) {
      const int64_t strides[kTensorDimensionLimit] = {};
      pass.loop.add(strides);
      set_number(pass, k, *in.number);
      continue;
    }
    pass.loop.add(*in.tensor);
    pass.in[k] = in.tensor->const_data_ptr();
    pass.in_type[k] = in.tensor->scalar_type();
    pass.in_wraps[k] = !(&in == first && rules.condition_first) &&
                       narrows(pass.in_type[k], pass.common, in.tensor->dim() == 0);
  }
  pass.loop.order_by(0);
  pass.loop.collapse();
  return true;
}

namespace {

/// How the inner loop gets an operand's elements: as a single value; where they lie (Dense, or a
/// Row of the innermost dim); converted from a dense array; or gathered in a buffer.
enum class Read { Constant, Dense, Row, Convert, Gather };

/// A pass in the compute type C. uint8_t and uint16_t stand for all types of that many bytes; the
/// common type is the compute type.
template <class C>
class Runner {
 public:
  Runner(const Pass& pass, InnerLoop inner_loop, const void* function)
      : pass_(pass),
        loop_(pass.loop),
        inner_loop_(inner_loop),
        function_(function),
        type_(kInCommonType ? pass.common : scalar_type_of(kComputeOf<C>)) {
    row_ = loop_.ndim > 0 ? loop_.sizes[loop_.ndim - 1] : 1;
    by_rows_ = loop_.ndim > 1 && row_ >= kMinRow;
    out_size_ = static_cast<int64_t>(elementSize(pass.out_type));
    out_dense_ = loop_.is_dense(0);
    int64_t moved = out_size_;  // bytes an element
    for (int k = 0; k < pass.n_inputs; ++k) {
      read_[k] = read_of(k);
      chunked_ |= read_[k] != Read::Dense && read_[k] != Read::Row;
      moved += loop_.is_dense(k + 1) ? size_of(k) : 0;
    }
    past_ = out_dense_ && executorch::cpu::overflows_caches(loop_.numel * moved);
    // A result of another type than the common one is rounded to the common one first.
    rounds_ = !pass.to_bool && pass.out_type != pass.common && pass.common != type_;
    in_place_ = out_dense_ && !past_ && !rounds_ && pass.out_type == result_type();
    chunked_ |= !in_place_;
  }

  void run(int64_t begin, int64_t end) const {
    alignas(64) C buffer[kMaxOperands][kChunk];  // the last one for results
    for (int k = 0; k < pass_.n_inputs; ++k) {
      if (read_[k] != Read::Constant) continue;
      const int64_t n = end - begin < kChunk ? end - begin : kChunk;
      load_as(k, pass_.in[k], 0, n, buffer[k]);
      round(k, n, buffer[k]);
    }
    const int64_t limit = chunked_ ? kChunk : end - begin;
    for (int64_t pos = begin, n; pos < end; pos += n) {
      n = limit - (past_ ? past_line(pos) : 0);
      if (end - pos < n) n = end - pos;
      if (by_rows_ && row_ - pos % row_ < n) n = row_ - pos % row_;
      if (n < end - pos) prefetch_after(pos + n);
      const void* in[kMaxInputs] = {};
      for (int k = 0; k < pass_.n_inputs; ++k) in[k] = input(k, pos, n, buffer[k]);
      output(in, pos, n, buffer[kMaxInputs]);
    }
    if (past_) executorch::cpu::end_stream();
  }

 private:
  static constexpr bool kInBytes = sizeof(C) < 4;  // conversions are those of bytes to bytes
  static constexpr bool kInCommonType = kInBytes || std::is_same_v<C, int32_t>;
  ScalarType result_type() const { return pass_.to_bool ? ScalarType::Bool : type_; }
  int64_t size_of(int k) const { return static_cast<int64_t>(elementSize(pass_.in_type[k])); }

  Read read_of(int k) const {
    const bool plain = is_condition(k) || (pass_.in_type[k] == type_ && !pass_.in_wraps[k]);
    if (loop_.is_constant(k + 1)) return Read::Constant;
    if (loop_.is_dense(k + 1)) return plain ? Read::Dense : Read::Convert;
    if (plain && by_rows_ && loop_.inner_stride(k + 1) == 1) return Read::Row;
    return Read::Gather;
  }

  /// The number of elements from the last cache line boundary to position `pos` of the result.
  int64_t past_line(int64_t pos) const {
    const auto at =
        reinterpret_cast<uintptr_t>(pass_.out) + static_cast<uintptr_t>(pos * out_size_);
    return static_cast<int64_t>(at % executorch::cpu::kLine) / out_size_;
  }

  void prefetch_after(int64_t pos) const {
    for (int k = 0; k < pass_.n_inputs; ++k) {
      if (read_[k] != Read::Dense && read_[k] != Read::Convert) continue;
      executorch::cpu::prefetch(static_cast<const char*>(pass_.in[k]) + pos * size_of(k),
                                kChunk * size_of(k));
    }
  }

  const void* input(int k, int64_t pos, int64_t n, C* buffer) const {
    const char* const data = static_cast<const char*>(pass_.in[k]);
    switch (read_[k]) {
      case Read::Dense:
        return data + pos * size_of(k);
      case Read::Row:
        return data + loop_.offset(k + 1, pos) * size_of(k);
      case Read::Constant:
        return buffer;
      case Read::Convert:
        load_as(k, data + pos * size_of(k), 1, n, buffer);
        break;
      case Read::Gather:
        gather_as(k, pos, n, buffer);
        break;
    }
    round(k, n, buffer);
    return buffer;
  }

  /// Whether operand k is a condition, which the inner loop takes as it is.
  bool is_condition(int k) const { return k == 0 && pass_.condition_first; }

  /// Converts elements of operand k to the compute type.
  void load_as(int k, const void* src, int64_t stride, int64_t n, void* dst) const {
    const ScalarType type = pass_.in_type[k];
    if (kInBytes || is_condition(k)) {
      convert(src, type, stride, dst, is_condition(k) ? type : type_, 1, n);
    } else if constexpr (!kInBytes) {
      load(src, type, stride, n, static_cast<C*>(dst));
    }
  }

  void gather_as(int k, int64_t pos, int64_t n, C* dst) const {
    const ScalarType type = pass_.in_type[k];
    if (is_condition(k)) return collect(k, pos, n, reinterpret_cast<uint8_t*>(dst));
    if (type == type_) return collect(k, pos, n, dst);
    if constexpr (!kInBytes) return gather(loop_, k + 1, pass_.in[k], type, pos, n, dst);
    const char* const data = static_cast<const char*>(pass_.in[k]);
    for_each_piece(loop_, k + 1, pos, n, [&](int64_t offset, int64_t m, int64_t stride) {
      load_as(k, data + offset * size_of(k), stride, m, dst);
      dst += m;
    });
  }

  /// Copies elements of operand k, which need no conversion. Rows may be so short that a call for
  /// each would be felt.
  template <class T>
  void collect(int k, int64_t pos, int64_t n, T* dst) const {
    const T* const data = static_cast<const T*>(pass_.in[k]);
    for_each_piece(loop_, k + 1, pos, n, [&](int64_t offset, int64_t m, int64_t stride) {
      const T* const src = data + offset;
      if (stride == 0) {
        std::fill_n(dst, m, *src);
      } else if (stride == 1) {
        std::copy_n(src, m, dst);
      } else {
        for (int64_t i = 0; i < m; ++i) dst[i] = src[i * stride];
      }
      dst += m;
    });
  }

  /// Gives operand k, which is in the compute type, the values that it has in the common type.
  void round(int k, int64_t n, C* values) const {
    if constexpr (!kInCommonType) {
      if (pass_.in_wraps[k]) round_through(pass_.common, values, n);
    }
  }

  void output(const void* const* in, int64_t pos, int64_t n, C* buffer) const {
    if (in_place_) {
      return inner_loop_(in, static_cast<char*>(pass_.out) + pos * out_size_, n, function_);
    }
    if (pass_.to_bool) {
      bool* const flags = reinterpret_cast<bool*>(buffer);
      inner_loop_(in, flags, n, function_);
      return put(flags, pos, n);
    }
    inner_loop_(in, buffer, n, function_);
    if constexpr (!kInCommonType) {
      if (rounds_) round_through(pass_.common, buffer, n);
    }
    put(buffer, pos, n);
  }

  /// Stores results that were computed in a buffer rather than in place.
  void put(const void* results, int64_t pos, int64_t n) const {
    const ScalarType from = result_type(), to = pass_.out_type;
    if (!out_dense_) {
      if constexpr (!kInBytes) {
        if (!pass_.to_bool) {
          return scatter(loop_, 0, pass_.out, to, pos, n, static_cast<const C*>(results));
        }
      }
      const char* next = static_cast<const char*>(results);
      const int64_t size = static_cast<int64_t>(elementSize(from));
      for_each_piece(loop_, 0, pos, n, [&](int64_t offset, int64_t m, int64_t stride) {
        char* const target = static_cast<char*>(pass_.out) + offset * out_size_;
        convert(next, from, 1, target, to, stride, m);
        next += m * size;
      });
      return;
    }
    void* const target = static_cast<char*>(pass_.out) + pos * out_size_;
    if (!past_) return convert(results, from, 1, target, to, 1, n);
    const void* stored = results;
    alignas(64) char converted[kChunk * sizeof(double)];
    if (to != from) {
      convert(results, from, 1, converted, to, 1, n);
      stored = converted;
    }
    executorch::cpu::stream(stored, target, static_cast<size_t>(n * out_size_));
  }

  const Pass& pass_;
  const Loop& loop_;
  InnerLoop inner_loop_;
  const void* function_;
  ScalarType type_;  // the compute type
  int64_t row_, out_size_;
  bool by_rows_;
  bool out_dense_;
  bool past_;             // results are written past the caches
  bool rounds_;           // results pass through the common type on their way to out
  bool in_place_;         // the inner loop writes where results belong
  bool chunked_ = false;  // buffers are in use
  Read read_[kMaxInputs];
};

template <class C>
void run_in(const Pass& pass, InnerLoop inner_loop, const void* function) {
  const Runner<C> runner(pass, inner_loop, function);
  executorch::cpu::parallel_for(pass.loop.numel, kGrain,
                                [&](int64_t begin, int64_t end) { runner.run(begin, end); });
}

}  // namespace

void run(const Pass& pass, InnerLoop inner_loop, const void* function) {
  with_compute(pass.compute, [&](auto tag) { run_in<decltype(tag)>(pass, inner_loop, function); });
}

void run_narrow(const Pass& pass, InnerLoop inner_loop, const void* function) {
  switch (elementSize(pass.common)) {
    case 1:
      return run_in<uint8_t>(pass, inner_loop, function);
    case 2:
      return run_in<uint16_t>(pass, inner_loop, function);
    default:
      return run_in<int32_t>(pass, inner_loop, function);
  }
}

}  // namespace torch::executor::native::internal
