#include <executorch/kernels/portable/internal/elementwise.h>

namespace torch::executor::native::internal {
namespace {

constexpr int64_t kChunk = 512;  // elements; four buffers of it fit a first-level cache
constexpr int64_t kMinRow = 64;  // shorter rows are gathered many at a time

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
  ET_REQUIRE(ctx, can_store(result, out.scalar_type()), InvalidArgument, false,
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
  if (!resize_out(ctx, rules.op, out, shape)) return false;

  pass.compute = compute_of(pass.common);
  pass.to_bool = rules.to_bool;
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

template <class C>
void run_as(const Pass& pass, InnerLoop inner_loop, const void* function) {
  const Loop& loop = pass.loop;
  const ScalarType compute_type = scalar_type_of(kComputeOf<C>);
  const ScalarType result_type = pass.to_bool ? ScalarType::Bool : compute_type;
  const int64_t result_size = static_cast<int64_t>(elementSize(result_type));
  const int64_t row = loop.ndim > 0 ? loop.sizes[loop.ndim - 1] : 1;
  const bool by_rows = loop.ndim > 1 && row >= kMinRow;
  const bool out_dense = loop.is_dense(0);
  const bool out_in_place = out_dense && pass.out_type == result_type;

  enum class Read { Constant, Dense, Row, Gather } read[kMaxInputs];
  bool chunked = !out_in_place;
  alignas(64) C buffer[kMaxOperands][kChunk];  // the last one for results
  bool flags[kChunk];
  for (int k = 0; k < pass.n_inputs; ++k) {
    const bool plain = pass.in_type[k] == compute_type && !pass.in_wraps[k];
    if (loop.is_constant(k + 1)) {
      read[k] = Read::Constant;
      load(pass.in[k], pass.in_type[k], 0, kChunk, buffer[k]);
      if (pass.in_wraps[k]) round_through(pass.common, buffer[k], kChunk);
    } else if (plain && loop.is_dense(k + 1)) {
      read[k] = Read::Dense;
    } else if (plain && by_rows && loop.strides[k + 1][loop.ndim - 1] == 1) {
      read[k] = Read::Row;
    } else {
      read[k] = Read::Gather;
    }
    chunked |= read[k] == Read::Constant || read[k] == Read::Gather;
  }

  const int64_t limit = chunked ? kChunk : loop.numel;
  for (int64_t pos = 0, n; pos < loop.numel; pos += n) {
    n = loop.numel - pos;
    if (by_rows && row - pos % row < n) n = row - pos % row;
    if (n > limit) n = limit;
    const void* in[kMaxInputs] = {};
    for (int k = 0; k < pass.n_inputs; ++k) {
      const C* base = static_cast<const C*>(pass.in[k]);
      in[k] = read[k] == Read::Dense ? base + pos
              : read[k] == Read::Row ? base + loop.offset(k + 1, pos)
                                     : buffer[k];
      if (read[k] != Read::Gather) continue;
      gather(loop, k + 1, pass.in[k], pass.in_type[k], pos, n, buffer[k]);
      if (pass.in_wraps[k]) round_through(pass.common, buffer[k], n);
    }
    if (out_in_place) {
      char* out = static_cast<char*>(pass.out) + pos * result_size;
      inner_loop(in, out, n, function);
      continue;
    }
    if (pass.to_bool) {
      inner_loop(in, flags, n, function);
      scatter(loop, 0, pass.out, pass.out_type, pos, n, flags);
      continue;
    }
    inner_loop(in, buffer[kMaxInputs], n, function);
    if (pass.out_type != pass.common && pass.common != compute_type) {
      round_through(pass.common, buffer[kMaxInputs], n);
    }
    scatter(loop, 0, pass.out, pass.out_type, pos, n, buffer[kMaxInputs]);
  }
}

}  // namespace

void run(const Pass& pass, InnerLoop inner_loop, const void* function) {
  with_compute(pass.compute, [&](auto tag) { run_as<decltype(tag)>(pass, inner_loop, function); });
}

}  // namespace torch::executor::native::internal
