#include <executorch/kernels/portable/internal/reduce.h>

#include <executorch/kernels/portable/internal/engine.h>

namespace torch::executor::native::internal {

bool prepare(KernelRuntimeContext& ctx, const char* op, const Tensor& in, uint32_t mask,
             bool keepdim, bool ordered, std::initializer_list<Tensor*> outs, Reduction& reduction,
             bool allow_complex) {
  ET_REQUIRE(ctx, is_real(in.scalar_type()) || (allow_complex && is_complex(in.scalar_type())),
             InvalidArgument, false, "%s: tensors of type %s are not supported", op,
             toString(in.scalar_type()));
  Shape result, kept, reduced;
  int64_t kept_strides[kTensorDimensionLimit], reduced_strides[kTensorDimensionLimit];
  for (int64_t d = 0; d < in.dim(); ++d) {
    const int64_t stride = in.strides()[static_cast<size_t>(d)];
    if (mask >> d & 1) {
      reduced_strides[reduced.ndim()] = stride;
      reduced.push(in.size(d));
      if (keepdim) result.push(1);
    } else {
      kept_strides[kept.ndim()] = stride;
      kept.push(in.size(d));
      result.push(in.size(d));
    }
  }
  reduction.kept = Loop(kept);
  reduction.reduced = Loop(reduced);
  for (Tensor* out : outs) {
    if (!resize_out(ctx, op, *out, result)) return false;
    int64_t strides[kTensorDimensionLimit];
    for (int64_t d = 0, k = 0; d < in.dim(); ++d) {
      if (mask >> d & 1) continue;
      strides[k] = out->strides()[static_cast<size_t>(keepdim ? d : k)];
      ++k;
    }
    reduction.kept.add(strides);
  }
  reduction.kept.add(kept_strides);
  reduction.kept.order_by(reduction.kept.n_operands - 1);
  reduction.kept.collapse();
  reduction.reduced.add(reduced_strides);
  if (!ordered) reduction.reduced.order_by(0);
  reduction.reduced.collapse();
  reduction.in = in.const_data_ptr();
  reduction.in_type = in.scalar_type();
  return true;
}

bool rows_for_engine(const Reduction& r) {
  return engine_type(r.in_type).has_value() && r.reduced.numel > 0 && r.reduced.is_dense(0);
}

bool reduce_by_engine(KernelRuntimeContext& ctx, const Reduction& r, const Tensor* out,
                      executorch::cpu::Reduce::Op op, double divisor, const Tensor* indices) {
  const auto type = engine_type(r.in_type);
  const Loop& kept = r.kept;
  const int in = kept.n_operands - 1;
  if (!type.has_value() || (out != nullptr && out->scalar_type() != r.in_type) ||
      r.reduced.ndim > 1 || r.reduced.numel == 0 || !kept.is_dense(0) || !kept.is_dense(in - 1)) {
    return false;
  }
  if (kept.numel == 0) return true;
  const int64_t step = r.reduced.ndim == 0 ? 1 : r.reduced.strides[0][0];
  executorch::cpu::Reduce a;
  a.type = *type;
  a.op = op;
  a.divisor = divisor;
  a.n = r.reduced.numel;
  a.x_step = step;
  a.x = r.in;
  if (out != nullptr) a.y = out->mutable_data_ptr();
  if (indices != nullptr) a.indices = indices->mutable_data_ptr<int64_t>();
  const bool across = step != 1 && kept.inner_stride(in) == 1;
  if (across ? kept.ndim > 2 : indices != nullptr || step != 1 || kept.ndim > 1) return false;
  a.inner = across ? kept.sizes[kept.ndim - 1] : 1;
  if (indices != nullptr && a.inner == 1) return false;
  a.outer = kept.numel / (a.inner > 0 ? a.inner : 1);
  a.x_outer = kept.ndim > (across ? 1 : 0) ? kept.strides[in][0] : 0;
  EngineScratch scratch(ctx);
  return a.run(scratch);
}

}  // namespace torch::executor::native::internal
