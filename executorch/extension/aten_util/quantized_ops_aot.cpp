/// quantized_ops_aot_lib: loaded by torch.ops.load_library(), it gives eager PyTorch the out
/// variants of `quantized_decomposed` on CPU tensors, computed by the runtime's kernels.
#include <executorch/extension/aten_util/make_aten_functor_from_et_functor.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <torch/library.h>

#include <deque>
#include <string>

namespace {

using executorch::extension::internal::check_context;
using executorch::extension::internal::FromAten;
using executorch::runtime::EValue;

constexpr const char* kSchemas[] = {
#include <executorch/extension/aten_util/quantized_schemas.inc>
};

/// The arguments of one call as the runtime's values.
class Arguments {
 public:
  explicit Arguments(c10::ArrayRef<c10::IValue> values) {
    for (const c10::IValue& value : values) add(value);
    for (EValue& value : values_) pointers_.push_back(&value);
  }

  executorch::runtime::Span<EValue*> get() { return {pointers_.data(), pointers_.size()}; }
  /// Tensors in the order of the arguments.
  std::deque<FromAten<torch::executor::Tensor>>& tensors() { return tensors_; }

 private:
  void add(const c10::IValue& value) {
    if (value.isTensor()) {
      values_.emplace_back(tensors_.emplace_back(value.toTensor()).value);
    } else if (value.isInt()) {
      values_.emplace_back(value.toInt());
    } else if (value.isDouble()) {
      values_.emplace_back(value.toDouble());
    } else {
      TORCH_CHECK(value.isNone(), "an argument is ", value.tagKind(),
                  ", expected a tensor, a number", " or None");
      values_.emplace_back();
    }
  }

  std::deque<FromAten<torch::executor::Tensor>> tensors_;
  std::deque<EValue> values_;
  std::vector<EValue*> pointers_;
};

/// Calls the runtime's kernel of the operator's name; out tensors, the last arguments, are
/// returned.
void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = toString(op.operator_name());
  const auto kernel = executorch::runtime::get_op_function_from_registry(name.c_str());
  TORCH_CHECK(kernel.ok(), "the runtime has no kernel for ", name);
  const size_t n = op.schema().arguments().size(), n_out = op.schema().returns().size();
  std::vector<at::Tensor> outs;
  {
    Arguments arguments(torch::jit::last(*stack, n));
    executorch::extension::MallocMemoryAllocator temp_memory;
    executorch::runtime::KernelRuntimeContext context(nullptr, &temp_memory);
    (*kernel)(context, arguments.get());
    check_context(context);
    const auto values = torch::jit::last(*stack, n_out);
    for (size_t i = 0; i < n_out; ++i) {
      at::Tensor out = values[i].toTensor();
      arguments.tensors()[arguments.tensors().size() - n_out + i].copy_back(out);
      outs.push_back(out);
    }
  }
  torch::jit::drop(*stack, n);
  for (at::Tensor& out : outs) stack->emplace_back(std::move(out));
}

/// "add.out(Tensor a, ..." -> "add.out".
std::string name_of(const char* schema) {
  const std::string text = schema;
  return text.substr(0, text.find('('));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(quantized_decomposed, m) {
  for (const char* schema : kSchemas) {
    const std::string name = name_of(schema);
    const size_t dot = name.find('.');
    // Whoever imported the exporter before has them.
    const bool known =
        c10::Dispatcher::singleton()
            .findSchema({"quantized_decomposed::" + name.substr(0, dot), name.substr(dot + 1)})
            .has_value();
    if (!known) m.def(schema);
  }
}

TORCH_LIBRARY_IMPL(quantized_decomposed, CPU, m) {
  for (const char* schema : kSchemas) {
    m.impl(name_of(schema).c_str(), torch::CppFunction::makeFromBoxedFunction<&call>());
  }
}
