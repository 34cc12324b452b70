#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/executor/method_allocation.h>
#include <executorch/runtime/executor/platform_memory_allocator.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/schema/program_generated.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

// Limits of loops: on instructions, which take some seconds if they are small, and on their work,
// which takes about half an hour.
#ifndef ET_MAX_INSTRUCTIONS
#define ET_MAX_INSTRUCTIONS 10000000
#endif
#ifndef ET_MAX_WORK
#define ET_MAX_WORK 10000000000
#endif

namespace executorch::runtime {
namespace {

namespace fb = executorch_flatbuffer;
using fb::KernelTypes;
using internal::allocate_list;

MethodRewriter method_rewriter = nullptr;

// The items of a list value: numbers and characters themselves, or indices of other values.
struct Items {
  const void* data;
  size_t count;
  bool are_indices;
};

template <typename T>
Items items_of(const flatbuffers::Vector<T>* items, bool are_indices) {
  return {items->data(), items->size(), are_indices};
}

Items items_of(const fb::EValue& value) {
  switch (value.val_type()) {
    case KernelTypes::DoubleList:
      return items_of(value.val_as_DoubleList()->items(), false);
    case KernelTypes::BoolList:
      return items_of(value.val_as_BoolList()->items(), false);
    case KernelTypes::IntList:
      return items_of(value.val_as_IntList()->items(), true);
    case KernelTypes::TensorList:
      return items_of(value.val_as_TensorList()->items(), true);
    case KernelTypes::OptionalTensorList:
      return items_of(value.val_as_OptionalTensorList()->items(), true);
    default:
      return {value.val_as_String()->string_val()->c_str(),
              value.val_as_String()->string_val()->size(), false};
  }
}

// Memory for a pointer to an item and its contents; a list itself takes no more.
struct alignas(int64_t) Slot {
  EValue* value;
  void* contents[2];
};
template <typename List>
void* fitting(Slot* slot) {
  static_assert(sizeof(List) <= sizeof(Slot) && alignof(List) <= alignof(Slot));
  return slot;
}

template <typename T>
EValue make_view(const Items& items, Slot* slots) {
  using List = aten::ArrayRef<T>;
  return EValue(new (fitting<List>(slots)) List(static_cast<const T*>(items.data), items.count));
}

// Makes a list of values: pointers to them, memory to gather their contents in, and the list.
template <typename T>
EValue make_boxed(const Items& items, Slot* slots) {
  using List = BoxedEvalueList<T>;
  static_assert(sizeof(T) <= sizeof(Slot::contents) && alignof(T) <= alignof(Slot));
  auto** const wrapped = reinterpret_cast<EValue**>(slots);
  constexpr size_t kPointers = alignof(T) > alignof(EValue*) ? alignof(T) / sizeof(EValue*) : 1;
  const size_t padded = (items.count + kPointers - 1) / kPointers * kPointers;
  auto* const unwrapped = reinterpret_cast<T*>(wrapped + padded);
  return EValue(new (fitting<List>(slots + items.count))
                    List(wrapped, unwrapped, static_cast<int>(items.count)));
}

Result<EValue> make_list(const fb::EValue& value, MemoryAllocator& allocator, Span<EValue> values) {
  const KernelTypes type = value.val_type();
  const Items items = items_of(value);
  ET_ASSIGN_OR_RETURN(auto* const slots,
                      allocate_list<Slot>(allocator, items.are_indices ? items.count + 1 : 1));
  auto** const wrapped = reinterpret_cast<EValue**>(slots);
  for (size_t i = 0; items.are_indices && i < items.count; ++i) {
    const int64_t index = type == KernelTypes::IntList ? static_cast<const int64_t*>(items.data)[i]
                                                       : static_cast<const int32_t*>(items.data)[i];
    wrapped[i] = index < 0 ? nullptr : &values[static_cast<size_t>(index)];
  }
  switch (type) {
    case KernelTypes::DoubleList:
      return make_view<double>(items, slots);
    case KernelTypes::BoolList:
      return make_view<bool>(items, slots);
    case KernelTypes::IntList:
      return make_boxed<int64_t>(items, slots);
    case KernelTypes::TensorList:
      return make_boxed<aten::Tensor>(items, slots);
    case KernelTypes::OptionalTensorList:
      return make_boxed<std::optional<aten::Tensor>>(items, slots);
    default:
      return make_view<char>(items, slots);
  }
}

Result<EValue> make_value(const fb::EValue& value, uint32_t index, MemoryAllocator& allocator,
                          Span<EValue> values, deserialization::TensorParser& parser) {
  switch (value.val_type()) {
    case KernelTypes::Null:
      return EValue();
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
    default:
      return make_list(value, allocator, values);
  }
}

}  // namespace

MethodRewriter set_method_rewriter(MethodRewriter rewriter) {
  return std::exchange(method_rewriter, rewriter);
}

Method::Method(const fb::ExecutionPlan& plan, const Program& program, MemoryManager* memory_manager,
               EventTracer* event_tracer) {
  state_.plan = &plan;
  state_.program = &program;
  state_.memory_manager = memory_manager;
  state_.event_tracer = event_tracer;
  state_.max_work = ET_MAX_WORK;
  state_.max_instructions = ET_MAX_INSTRUCTIONS;
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
  ET_CHECK_OK_OR_RETURN_ERROR(check_delegate_calls());
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
                     *state_.memory_manager->method_allocator(),
                     state_.temporaries});
  }
}

Error Method::init_temp_allocator() {
  using internal::PlatformMemoryAllocator;
  ET_ASSIGN_OR_RETURN(auto* const allocator, allocate_list<PlatformMemoryAllocator>(
                                                 *state_.memory_manager->method_allocator(), 1));
  state_.heap = new (allocator) PlatformMemoryAllocator;
  MemoryAllocator* const given = state_.memory_manager->temp_allocator();
  state_.temp_allocator = given != nullptr ? given : state_.heap;
  return Error::Ok;
}

Error Method::init_values(const NamedDataMap* external_data) {
  const auto& entries = *state_.plan->values();
  MemoryAllocator& allocator = *state_.memory_manager->method_allocator();
  ET_ASSIGN_OR_RETURN(auto* const values, allocate_list<EValue>(allocator, entries.size()));
  for (uint32_t i = 0; i < entries.size(); ++i) new (&values[i]) EValue();
  state_.values = {values, entries.size()};
  ET_CHECK_OK_OR_RETURN_ERROR(init_external_constants());
  deserialization::TensorParser parser(*state_.program, *state_.plan, *state_.memory_manager,
                                       external_data, state_.external_constants);
  for (uint32_t i = 0; i < entries.size(); ++i) {
    auto value = make_value(*entries.Get(i), i, allocator, state_.values, parser);
    ET_CHECK_OK_OR_RETURN_ERROR(value.error(), "%s: value %" PRIu32 " cannot be loaded", name(), i);
    values[i] = std::move(*value);
  }
  return init_input_flags();
}

// Lists the keys of external tensors once each, in order, so that many tensors find theirs.
Error Method::init_external_constants() {
  const auto& entries = *state_.plan->values();
  MemoryAllocator& allocator = *state_.memory_manager->method_allocator();
  const auto key_of = [&](uint32_t i) {
    const auto* tensor = entries.Get(i)->val_as_Tensor();
    const auto* extra = tensor == nullptr ? nullptr : tensor->extra_tensor_info();
    const bool is_external =
        extra != nullptr && extra->location() == fb::TensorDataLocation::EXTERNAL;
    return is_external ? extra->fully_qualified_name() : nullptr;
  };
  size_t n_external = 0;
  for (uint32_t i = 0; i < entries.size(); ++i) n_external += key_of(i) != nullptr ? 1 : 0;
  if (n_external == 0) return Error::Ok;
  ET_ASSIGN_OR_RETURN(auto* const keys, allocate_list<std::string_view>(allocator, n_external));
  n_external = 0;
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (key_of(i) != nullptr) new (&keys[n_external++]) std::string_view(key_of(i)->string_view());
  }
  std::make_heap(keys, keys + n_external);  // as std::sort, by less code
  std::sort_heap(keys, keys + n_external);
  n_external = static_cast<size_t>(std::unique(keys, keys + n_external) - keys);
  ET_ASSIGN_OR_RETURN(auto* const constants, allocate_list<NamedData>(allocator, n_external));
  for (size_t i = 0; i < n_external; ++i) new (&constants[i]) NamedData{keys[i], {}};
  state_.external_constants = {constants, n_external};
  return Error::Ok;
}

// Numbers, strings and None have their values from the program and need not be set.
Error Method::init_input_flags() {
  ET_ASSIGN_OR_RETURN(
      auto* const flags,
      allocate_list<bool>(*state_.memory_manager->method_allocator(), inputs_size()));
  for (size_t i = 0; i < inputs_size(); ++i) flags[i] = !input_value(i).isTensor();
  state_.input_set = {flags, inputs_size()};
  return Error::Ok;
}

Method::~Method() {
  for (Delegate& delegate : state_.delegates) {
    delegate.backend->destroy(delegate.handle);
    delegate.~Delegate();
  }
  for (NamedData& constant : state_.external_constants) constant.~NamedData();
  if (state_.merged_data != nullptr) state_.merged_data->~NamedDataMap();
  if (state_.heap != nullptr) state_.heap->~MemoryAllocator();
}

}  // namespace executorch::runtime
