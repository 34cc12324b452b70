#include <executorch/cpu/size.h>
#include <executorch/kernels/optimized/fused_call.h>
#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/kernel/traced_call.h>
#include <executorch/runtime/platform/log.h>

#include <cstring>

namespace executorch::optimized {
namespace {

using runtime::Error;

// Gives a tensor temporary memory until it is detached from it, and then its own memory back.
class TemporaryMemory {
 public:
  bool attach(KernelRuntimeContext& context, const Tensor& tensor) {
    impl_ = tensor.unsafeGetTensorImpl();
    const auto bytes = cpu::Size(impl_->capacity()) * impl_->element_size();
    auto memory = context.allocate_temp(static_cast<size_t>(bytes.value_or(INT64_MAX)));
    if (!memory.ok()) {
      context.fail(memory.error());
      return false;
    }
    own_data_ = impl_->mutable_data();
    impl_->set_data(*memory);
    return true;
  }
  void detach() { impl_->set_data(own_data_); }
  void copy_and_detach() {
    std::memcpy(own_data_, impl_->data(), impl_->nbytes());
    detach();
  }

 private:
  aten::TensorImpl* impl_ = nullptr;
  void* own_data_ = nullptr;
};

void set_failed(KernelRuntimeContext& context, const Original& original) {
  if (original.number < 0) return;
  context.set_failed_instruction(static_cast<uint32_t>(original.number), original.args);
}

void run_in_order(const FusedCall& call, KernelRuntimeContext& context) {
  for (const Original& original : call.originals) {
    runtime::internal::call_traced(original.op, nullptr, original.kernel, context, original.args);
    if (context.failure_state() != Error::Ok) {
      ET_LOG(Error, "%s, fused as %s, failed", original.op, call.name);
      return set_failed(context, original);
    }
  }
}

void run_originals(const FusedCall& call, KernelRuntimeContext& context) {
  const size_t n = call.intermediates.size();
  auto memory = context.allocate_temp((n + 1) * sizeof(TemporaryMemory));
  if (!memory.ok()) return context.fail(memory.error());
  auto* const temporary = new (*memory) TemporaryMemory[n + 1];
  size_t attached = 0;
  while (attached < n &&
         temporary[attached].attach(context, call.intermediates[attached]->toTensor())) {
    ++attached;
  }
  if (attached == n) run_in_order(call, context);
  while (attached > 0) temporary[--attached].detach();
}

void run(const FusedCall& call, KernelRuntimeContext& context) {
  set_failed(context, call.originals[call.originals.size() - 1]);
  if (!call.run(call, context) && context.failure_state() == Error::Ok) {
    run_originals(call, context);
  }
}

}  // namespace

const FusedCall& fused_call(Span<EValue*> args) {
  return *reinterpret_cast<const FusedCall*>(static_cast<intptr_t>(args[0]->toInt()));
}

void run_fused(KernelRuntimeContext& context, Span<EValue*> args) {
  const FusedCall& call = fused_call(args);
  runtime::EventTracer* const tracer = context.internal_event_tracer();
  runtime::internal::EventTracerProfileOpScope scope(tracer, call.traced_name);
  TemporaryMemory temporary;
  if (call.out_overlaps_operand && !temporary.attach(context, call.out->toTensor())) return;
  run(call, context);
  if (call.out_overlaps_operand) temporary.copy_and_detach();
  if (context.failure_state() == Error::Ok) {
    runtime::internal::event_tracer_log_evalue(tracer, *call.out);
  }
}

bool resize(const Tensor& out, const View& view) {
  aten::SizesType sizes[View::kMaxDims];
  if (!view.valid()) return false;
  for (int d = 0; d < view.ndim(); ++d) {
    const cpu::Size size = view.size(d);
    if (!size.fits<aten::SizesType>()) return false;
    sizes[d] = static_cast<aten::SizesType>(size.value());
  }
  return runtime::resize_tensor(out, {sizes, static_cast<size_t>(view.ndim())}) == Error::Ok;
}

}  // namespace executorch::optimized
