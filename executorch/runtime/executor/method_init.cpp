#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/executor/method_allocation.h>
#include <executorch/runtime/executor/platform_memory_allocator.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/schema/program_generated.h>

#include <new>
#include <optional>

namespace executorch {
namespace runtime {
namespace {

namespace fb = executorch_flatbuffer;
using fb::KernelTypes;
using internal::allocate_list;

MethodRewriter method_rewriter = nullptr;

// The runtime's list values point at an ArrayRef over the program's own items.
template <typename T, typename Item>
Result<EValue> make_view(MemoryAllocator& allocator, const Item* items, size_t count) {
  ET_ASSIGN_OR_RETURN(auto* const view, allocate_list<aten::ArrayRef<T>>(allocator, 1));
  static_assert(sizeof(T) == sizeof(Item));
  new (view) aten::ArrayRef<T>(reinterpret_cast<const T*>(items), count);
  return EValue(view);
}

// A list of other values: pointers to them, and room to gather their contents in.
template <typename T, typename Item>
Result<EValue> make_boxed(MemoryAllocator& allocator, Span<EValue> values,
                          const flatbuffers::Vector<Item>& items) {
  ET_ASSIGN_OR_RETURN(auto* const wrapped, allocate_list<EValue*>(allocator, items.size()));
  ET_ASSIGN_OR_RETURN(auto* const unwrapped, allocate_list<T>(allocator, items.size()));
  for (uint32_t i = 0; i < items.size(); ++i) {
    wrapped[i] = items.Get(i) < 0 ? nullptr : &values[static_cast<size_t>(items.Get(i))];
  }
  ET_ASSIGN_OR_RETURN(auto* const list, allocate_list<BoxedEvalueList<T>>(allocator, 1));
  new (list) BoxedEvalueList<T>(wrapped, unwrapped, static_cast<int>(items.size()));
  return EValue(list);
}

Result<EValue> make_value(const fb::EValue& value, uint32_t index, MemoryAllocator& allocator,
                          Span<EValue> values, deserialization::TensorParser& parser) {
  switch (value.val_type()) {
    case KernelTypes::Int:
      return EValue(value.val_as_Int()->int_val());
    case KernelTypes::Bool:
      return EValue(value.val_as_Bool()->bool_val());
    case KernelTypes::Double:
      return EValue(value.val_as_Double()->double_val());
    case KernelTypes::Tensor: {
      ET_ASSIGN_OR_RETURN(const aten::Tensor tensor, parser.parse(index));
      return EValue(tensor);
    }
    case KernelTypes::String: {
      const auto* text = value.val_as_String()->string_val();
      return make_view<char>(allocator, text->c_str(), text->size());
    }
    case KernelTypes::DoubleList: {
      const auto* items = value.val_as_DoubleList()->items();
      return make_view<double>(allocator, items->data(), items->size());
    }
    case KernelTypes::BoolList: {
      const auto* items = value.val_as_BoolList()->items();
      return make_view<bool>(allocator, items->data(), items->size());
    }
    case KernelTypes::IntList:
      return make_boxed<int64_t>(allocator, values, *value.val_as_IntList()->items());
    case KernelTypes::TensorList:
      return make_boxed<aten::Tensor>(allocator, values, *value.val_as_TensorList()->items());
    case KernelTypes::OptionalTensorList:
      return make_boxed<std::optional<aten::Tensor>>(allocator, values,
                                                     *value.val_as_OptionalTensorList()->items());
    default:
      return EValue();
  }
}

}  // namespace

void set_method_rewriter(MethodRewriter rewriter) {
  method_rewriter = rewriter;
}

Method::Method(const fb::ExecutionPlan& plan, const Program& program, MemoryManager* memory_manager,
               EventTracer* event_tracer) {
  state_.plan = &plan;
  state_.program = &program;
  state_.memory_manager = memory_manager;
  state_.event_tracer = event_tracer;
}

Result<Method> Method::load(const fb::ExecutionPlan& plan, const Program& program,
                            MemoryManager* memory_manager, EventTracer* event_tracer,
                            const NamedDataMap* external_data,
                            const LoadBackendOptionsMap* backend_options,
                            Span<const Kernel> kernels) {
  ET_CHECK_OR_RETURN_ERROR(
      memory_manager != nullptr && memory_manager->method_allocator() != nullptr, InvalidArgument,
      "%s cannot be loaded without a method allocator", plan.name()->c_str());
  Method method(plan, program, memory_manager, event_tracer);
  ET_CHECK_OK_OR_RETURN_ERROR(method.init(external_data, backend_options, kernels));
  return method;
}

Error Method::init(const NamedDataMap* external_data, const LoadBackendOptionsMap* backend_options,
                   Span<const Kernel> kernels) {
  internal::EventTracerProfileMethodScope scope(state_.event_tracer, "Method::init");
  ET_CHECK_OK_OR_RETURN_ERROR(init_temp_allocator());
  ET_CHECK_OK_OR_RETURN_ERROR(init_values(external_data));
  ET_CHECK_OK_OR_RETURN_ERROR(init_delegates(external_data, backend_options));
  ET_CHECK_OK_OR_RETURN_ERROR(init_instructions(kernels));
  rewrite();
  return Error::Ok;
}

void Method::rewrite() {
  const bool logs_all = internal::attached(state_.event_tracer) != nullptr &&
                        state_.event_tracer->intermediate_outputs_logging_status();
  if (method_rewriter != nullptr && !logs_all) {
    const auto* inputs = state_.plan->inputs();
    const auto* outputs = state_.plan->outputs();
    method_rewriter({name(),
                     state_.chains,
                     state_.values,
                     {inputs->data(), inputs->size()},
                     {outputs->data(), outputs->size()},
                     *state_.memory_manager->method_allocator()});
  }
}

Error Method::init_temp_allocator() {
  state_.temp_allocator = state_.memory_manager->temp_allocator();
  if (state_.temp_allocator == nullptr) {
    using internal::PlatformMemoryAllocator;
    ET_ASSIGN_OR_RETURN(auto* const allocator, allocate_list<PlatformMemoryAllocator>(
                                                   *state_.memory_manager->method_allocator(), 1));
    state_.temp_allocator = new (allocator) PlatformMemoryAllocator;
    state_.owns_temp_allocator = true;
  }
  return Error::Ok;
}

Error Method::init_values(const NamedDataMap* external_data) {
  const auto& entries = *state_.plan->values();
  MemoryAllocator& allocator = *state_.memory_manager->method_allocator();
  ET_ASSIGN_OR_RETURN(auto* const values, allocate_list<EValue>(allocator, entries.size()));
  size_t n_external = 0;
  for (uint32_t i = 0; i < entries.size(); ++i) {
    new (&values[i]) EValue();
    const auto* tensor = entries.Get(i)->val_as_Tensor();
    const auto* extra = tensor == nullptr ? nullptr : tensor->extra_tensor_info();
    n_external += extra != nullptr && extra->location() == fb::TensorDataLocation::EXTERNAL ? 1 : 0;
  }
  state_.values = {values, entries.size()};
  ET_ASSIGN_OR_RETURN(auto* const external_constants,
                      allocate_list<NamedData>(allocator, n_external));
  n_external = 0;
  deserialization::TensorParser parser(*state_.program, *state_.plan, *state_.memory_manager,
                                       external_data, external_constants, n_external);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    auto value = make_value(*entries.Get(i), i, allocator, state_.values, parser);
    state_.external_constants = {external_constants, n_external};
    ET_CHECK_OK_OR_RETURN_ERROR(value.error(), "%s: value %" PRIu32 " cannot be loaded", name(), i);
    values[i] = std::move(*value);
  }
  return init_input_flags();
}

// Numbers, strings and None have their values from the program and need not be set.
Error Method::init_input_flags() {
  ET_ASSIGN_OR_RETURN(
      auto* const flags,
      allocate_list<bool>(*state_.memory_manager->method_allocator(), inputs_size()));
  for (size_t i = 0; i < inputs_size(); ++i) {
    flags[i] = !input_value(i).isTensor();
  }
  state_.input_set = {flags, inputs_size()};
  return Error::Ok;
}

Method::~Method() {
  for (Delegate& delegate : state_.delegates) {
    delegate.backend->destroy(delegate.handle);
    delegate.~Delegate();
  }
  for (NamedData& constant : state_.external_constants) {
    constant.~NamedData();
  }
  if (state_.merged_data != nullptr) {
    state_.merged_data->~NamedDataMap();
  }
  if (state_.owns_temp_allocator) {
    state_.temp_allocator->~MemoryAllocator();
  }
}

}  // namespace runtime
}  // namespace executorch
