#include <executorch/runtime/backend/backend_init_context.h>
#include <executorch/runtime/executor/merged_data_map.h>
#include <executorch/runtime/executor/method_allocation.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/schema/program_generated.h>

#include <cstring>
#include <new>

namespace executorch::runtime {
namespace {

namespace fb = executorch_flatbuffer;
using internal::allocate_list;

// Up to this many keys, a linear search is faster than sorting them first.
constexpr uint32_t kFewKeys = 32;

Result<const BackendInterface*> find_backend(const char* method, const char* id) {
  const BackendInterface* backend = get_backend_class(id);
  if (backend == nullptr) {
    ET_LOG(Error, "%s needs backend %s, which is not registered; %zu are:", method, id,
           get_num_registered_backends());
    for (size_t i = 0; i < get_num_registered_backends(); ++i) {
      ET_LOG(Error, "  %s", *get_backend_name(i));
    }
    return Error::NotFound;
  }
  ET_CHECK_OR_RETURN_ERROR(backend->is_available(), NotFound,
                           "%s needs backend %s, which is not available on this machine", method,
                           id);
  return backend;
}

Result<ArrayRef<CompileSpec>> make_compile_specs(MemoryAllocator& allocator,
                                                 const fb::BackendDelegate& delegate) {
  const auto* entries = delegate.compile_specs();
  const size_t count = entries == nullptr ? 0 : entries->size();
  ET_ASSIGN_OR_RETURN(auto* const specs, allocate_list<CompileSpec>(allocator, count));
  for (uint32_t i = 0; i < count; ++i) {
    const auto* entry = entries->Get(i);
    const auto* value = entry->value();
    // Backends only read the value.
    SizedBuffer bytes{value == nullptr ? nullptr : const_cast<uint8_t*>(value->data()),
                      value == nullptr ? 0 : value->size()};
    new (&specs[i]) CompileSpec{entry->key()->c_str(), bytes};
  }
  return ArrayRef<CompileSpec>(specs, count);
}

}  // namespace

Error Method::init_delegates(const NamedDataMap* external_data,
                             const LoadBackendOptionsMap* backend_options) {
  const auto* entries = state_.plan->delegates();
  const size_t count = entries == nullptr ? 0 : entries->size();
  if (count == 0) return Error::Ok;
  ET_ASSIGN_OR_RETURN(const NamedDataMap* const data, merge_data(external_data));
  ET_ASSIGN_OR_RETURN(auto* const delegates,
                      allocate_list<Delegate>(*state_.memory_manager->method_allocator(), count));
  for (uint32_t i = 0; i < count; ++i) {
    // Counted only when complete: the destructor takes back what there is.
    state_.delegates = {delegates, i};
    new (&delegates[i]) Delegate{nullptr, nullptr, FreeableBuffer()};
    const Error error = init_delegate(delegates[i], i, data, backend_options);
    if (error != Error::Ok) {
      delegates[i].~Delegate();
      return error;
    }
  }
  state_.delegates = {delegates, count};
  return Error::Ok;
}

// The named data of the program, sorted by key, because delegates look up each of their weights.
Result<const NamedDataMap*> Method::sort_data() {
  MemoryAllocator& allocator = *state_.memory_manager->method_allocator();
  internal::PteDataMap sorted = state_.program->named_data_;
  ET_ASSIGN_OR_RETURN(const uint32_t n, sorted.get_num_keys());
  ET_ASSIGN_OR_RETURN(auto* const order, allocate_list<uint32_t>(allocator, n));
  sorted.sort(order);
  ET_ASSIGN_OR_RETURN(auto* const place, allocate_list<internal::PteDataMap>(allocator, 1));
  return static_cast<const NamedDataMap*>(new (place) internal::PteDataMap(sorted));
}

Result<const NamedDataMap*> Method::merge_data(const NamedDataMap* external_data) {
  auto own = state_.program->get_named_data_map();
  if (!own.ok()) return external_data;
  if (*(*own)->get_num_keys() > kFewKeys) {
    ET_ASSIGN_OR_RETURN(*own, sort_data());
  }
  if (external_data == nullptr) return *own;
  using internal::MergedDataMap;
  ET_ASSIGN_OR_RETURN(MergedDataMap merged, MergedDataMap::load(external_data, *own));
  ET_ASSIGN_OR_RETURN(auto* const place,
                      allocate_list<MergedDataMap>(*state_.memory_manager->method_allocator(), 1));
  state_.merged_data = new (place) MergedDataMap(merged);
  return static_cast<const NamedDataMap*>(state_.merged_data);
}

Error Method::init_delegate(Delegate& delegate, uint32_t index, const NamedDataMap* data,
                            const LoadBackendOptionsMap* backend_options) {
  const auto& entry = *state_.plan->delegates()->Get(index);
  const char* const id = entry.id()->c_str();
  ET_ASSIGN_OR_RETURN(delegate.backend, find_backend(name(), id));
  const uint32_t data_index = entry.processed()->index();
  if (entry.processed()->location() == fb::DataLocation::INLINE) {
    const auto* bytes =
        state_.program->flatbuffer_->backend_delegate_data()->Get(data_index)->data();
    new (&delegate.blob) FreeableBuffer(bytes == nullptr ? nullptr : bytes->data(),
                                        bytes == nullptr ? 0 : bytes->size(), nullptr);
  } else {
    auto blob = state_.program->load_segment(
        DataLoader::SegmentInfo(DataLoader::SegmentInfo::Type::Backend, data_index, id));
    ET_CHECK_OK_OR_RETURN_ERROR(blob.error(),
                                "%s: the data of delegate %" PRIu32 " (%s) cannot be loaded",
                                name(), index, id);
    new (&delegate.blob) FreeableBuffer(std::move(*blob));
  }
  MemoryAllocator* const allocator = state_.memory_manager->method_allocator();
  ET_ASSIGN_OR_RETURN(const ArrayRef<CompileSpec> specs, make_compile_specs(*allocator, entry));
  BackendInitContext context(
      allocator, state_.event_tracer, name(), data,
      backend_options == nullptr ? Span<const BackendOption>() : backend_options->get_options(id));
  auto handle = delegate.backend->init(context, &delegate.blob, specs);
  ET_CHECK_OK_OR_RETURN_ERROR(handle.error(), "%s: delegate %" PRIu32 " (%s) failed to load: %s",
                              name(), index, id, to_string(handle.error()));
  delegate.handle = *handle;
  return Error::Ok;
}

// Checks that backends do not write constants, and that no call writes a tensor twice. Notes what
// calls write.
Error Method::check_delegate_calls() {
  if (state_.delegates.empty()) return Error::Ok;
  const size_t n_values = state_.values.size();
  auto* const calls = state_.heap->allocateList<uint32_t>(n_values);
  ET_CHECK_OR_RETURN_ERROR(calls != nullptr, MemoryAllocationFailed, "%s: no memory for a check",
                           name());
  std::memset(calls, 0, n_values * sizeof(uint32_t));
  Error error = Error::Ok;
  uint32_t call = 0;
  for (const Chain& chain : state_.chains) {
    for (size_t i = 0; i < chain.size() && error == Error::Ok; ++i) {
      state_.instruction = i;  // for messages
      if (chain[i].kind != Instruction::Kind::Delegate) continue;
      error = check_written(chain[i], calls, ++call);
      chain[i].first_written = find_first_written(chain[i]);
    }
  }
  state_.instruction = 0;
  state_.heap->reset();
  return error;
}

uint32_t Method::find_first_written(const Instruction& instruction) const {
  const Delegate& delegate = state_.delegates[instruction.target];
  const size_t n = instruction.args.size();
  size_t first = n;
  for (size_t i = 0; i < n; ++i) {
    const bool is_written = delegate.backend->writes_argument(delegate.handle, i, n);
    if (is_written && first == n) first = i;
    if (!is_written && first != n) return static_cast<uint32_t>(n);
  }
  return static_cast<uint32_t>(first);
}

// `calls`: the last call that wrote each value, before this one, number `call`.
Error Method::check_written(const Instruction& instruction, uint32_t* calls, uint32_t call) const {
  const Delegate& delegate = state_.delegates[instruction.target];
  const InstructionArgs args = instruction.args;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!delegate.backend->writes_argument(delegate.handle, i, args.size())) continue;
    const bool is_tensor = args[i]->isTensor();
    ET_CHECK_OR_RETURN_ERROR(
        is_tensor && !args[i]->toTensor().unsafeGetTensorImpl()->is_read_only(), InvalidProgram,
        "%s: instruction %zu: delegate %" PRIu32 " writes argument %zu, %s", name(),
        state_.instruction, instruction.target, i,
        is_tensor ? "a constant" : tag_to_string(args[i]->tag));
    if (calls != nullptr) {
      uint32_t& last = calls[args[i] - state_.values.data()];
      ET_CHECK_OR_RETURN_ERROR(last != call, InvalidProgram,
                               "%s: instruction %zu: delegate %" PRIu32
                               " writes argument %zu, which it writes already",
                               name(), state_.instruction, instruction.target, i);
      last = call;
    }
  }
  return Error::Ok;
}

}  // namespace executorch::runtime
