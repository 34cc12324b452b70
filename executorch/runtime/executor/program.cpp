#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/executor/program_validation.h>
#include <executorch/schema/extended_header.h>
#include <executorch/schema/program_generated.h>

#include <cstddef>
#include <cstring>
#include <string_view>

namespace executorch::runtime {
namespace {

using SegmentInfo = DataLoader::SegmentInfo;

/// Reads sizes and offsets from the header. A file without a header is taken for a bare flatbuffer.
Result<internal::ProgramFile> read_head(const DataLoader& loader) {
  ET_ASSIGN_OR_RETURN(const size_t file_bytes, loader.size());
  ET_CHECK_OR_RETURN_ERROR(file_bytes >= schema::kHeadBytes, InvalidArgument,
                           "%zu bytes are too few for a program, which has at least %zu",
                           file_bytes, schema::kHeadBytes);
  auto head = load_exactly(loader, 0, schema::kHeadBytes, SegmentInfo(SegmentInfo::Type::Program));
  ET_CHECK_OK_OR_RETURN_ERROR(head.error());
  const auto* bytes = static_cast<const char*>(head->data());
  ET_CHECK_OR_RETURN_ERROR(
      Program::check_header(bytes, head->size()) == Program::CompatibleVersion, InvalidProgram,
      "not a program of this version: identifier %02x %02x %02x %02x, expected \"%s\"",
      bytes[4] & 0xff, bytes[5] & 0xff, bytes[6] & 0xff, bytes[7] & 0xff,
      schema::kProgramIdentifier);
  schema::ProgramHeader header;
  switch (schema::parse_header(bytes, head->size(), header)) {
    case schema::HeaderStatus::Absent:
      return internal::ProgramFile{file_bytes, file_bytes, 0, 0};
    case schema::HeaderStatus::Found:
      break;
    default:
      ET_LOG(Error, "the program's extended header is damaged: its length is too small");
      return Error::InvalidProgram;
  }
  const uint64_t base = header.segment_base_offset;
  ET_CHECK_OR_RETURN_ERROR(header.program_size >= schema::kHeadBytes &&
                               header.program_size <= file_bytes &&
                               (base == 0 ? header.segment_data_size == 0
                                          : base >= header.program_size && base <= file_bytes &&
                                                header.segment_data_size <= file_bytes - base),
                           InvalidProgram,
                           "header: program of %" PRIu64 " bytes, segments of %" PRIu64
                           " bytes at %" PRIu64 ", in a file of %zu bytes: damaged or truncated",
                           header.program_size, header.segment_data_size, base, file_bytes);
  return internal::ProgramFile{file_bytes, static_cast<size_t>(header.program_size), base,
                               header.segment_data_size};
}

}  // namespace

Result<const void*> internal::LazySegment::get(const DataLoader& loader, uint64_t offset,
                                               uint64_t size, const SegmentInfo& info,
                                               Error (*check)(const void* data, size_t size)) {
  State state = state_.load(std::memory_order_acquire);
  while (state != State::Ready) {
    if (state == State::Empty && state_.compare_exchange_weak(state, State::Loading)) {
      auto loaded = load_exactly(loader, offset, size, info);
      if (!loaded.ok()) {
        state_.store(State::Empty);
        return loaded.error();
      }
      if (check != nullptr && check(loaded->data(), loaded->size()) != Error::Ok) {
        state_.store(State::Refused);
        return Error::InvalidProgram;
      }
      buffer_.~FreeableBuffer();
      new (&buffer_) FreeableBuffer(std::move(*loaded));
      state_.store(State::Ready, std::memory_order_release);
      break;
    }
    if (state == State::Refused) return Error::InvalidProgram;
    state = state_.load(std::memory_order_acquire);
  }
  return buffer_.data();
}

Result<Program> Program::load(DataLoader* loader, Verification /*verification*/) {
  ET_CHECK_OR_RETURN_ERROR(loader != nullptr, InvalidArgument, "Program::load: no data loader");
  ET_ASSIGN_OR_RETURN(const internal::ProgramFile file, read_head(*loader));
  auto data = load_exactly(*loader, 0, file.program_bytes, SegmentInfo(SegmentInfo::Type::Program));
  ET_CHECK_OK_OR_RETURN_ERROR(data.error());
  ET_CHECK_OR_RETURN_ERROR(
      reinterpret_cast<uintptr_t>(data->data()) % alignof(std::max_align_t) == 0, InvalidArgument,
      "the program lies at %p; it needs an address that is a multiple of %zu", data->data(),
      alignof(std::max_align_t));
  ET_CHECK_OK_OR_RETURN_ERROR(internal::validate_program(data->data(), file));
  const uint32_t version = executorch_flatbuffer::GetProgram(data->data())->version();
  ET_CHECK_OR_RETURN_ERROR(version <= kMaxSupportedSchemaVersion, InvalidProgram,
                           "the program's schema has version %" PRIu32
                           "; this runtime reads versions up to %" PRIu32,
                           version, kMaxSupportedSchemaVersion);
  return Program(loader, file.segment_base, std::move(*data));
}

Program::Program(DataLoader* loader, uint64_t segment_base_offset, FreeableBuffer&& program_data)
    : loader_(loader),
      segment_base_offset_(segment_base_offset),
      program_data_(std::move(program_data)),
      flatbuffer_(executorch_flatbuffer::GetProgram(program_data_.data())),
      named_data_(loader, segment_base_offset, flatbuffer_) {}

Program::HeaderStatus Program::check_header(const void* data, size_t size) {
  if (data == nullptr || size < kMinHeadBytes) return ShortData;
  switch (schema::check_identifier(data, schema::kProgramIdentifier)) {
    case schema::Identifier::Match:
      return CompatibleVersion;
    case schema::Identifier::OtherVersion:
      return IncompatibleVersion;
    default:
      return NotPresent;
  }
}

Result<const void*> Program::get_constant_buffer_data(size_t buffer_idx, size_t nbytes) const {
  const auto* buffers = flatbuffer_->constant_buffer();
  if (buffers != nullptr && buffers->size() > 0) {
    const auto* storage = buffer_idx < buffers->size()
                              ? buffers->Get(static_cast<uint32_t>(buffer_idx))->storage()
                              : nullptr;
    const size_t size = storage == nullptr ? 0 : storage->size();
    ET_CHECK_OR_RETURN_ERROR(buffer_idx < buffers->size() && nbytes <= size, InvalidArgument,
                             "constant %zu of %" PRIu32 " has %zu bytes, asked for %zu", buffer_idx,
                             buffers->size(), size, nbytes);
    return storage == nullptr ? nullptr : static_cast<const void*>(storage->data());
  }
  const auto* table = flatbuffer_->constant_segment();
  const size_t count =
      table == nullptr || table->offsets() == nullptr ? 0 : table->offsets()->size();
  ET_CHECK_OR_RETURN_ERROR(buffer_idx < count, InvalidArgument,
                           "constant %zu asked for, the program has %zu", buffer_idx, count);
  const auto* segment = flatbuffer_->segments()->Get(table->segment_index());
  const uint64_t offset = table->offsets()->Get(static_cast<uint32_t>(buffer_idx));
  ET_CHECK_OR_RETURN_ERROR(nbytes <= segment->size() - offset, InvalidArgument,
                           "constant %zu at %" PRIu64 " of %" PRIu64 " bytes, asked for %zu",
                           buffer_idx, offset, segment->size(), nbytes);
  ET_ASSIGN_OR_RETURN(
      const void* const data,
      constants_.get(*loader_, segment_base_offset_ + segment->offset(), segment->size(),
                     SegmentInfo(SegmentInfo::Type::Constant, table->segment_index())));
  return static_cast<const void*>(static_cast<const uint8_t*>(data) + offset);
}

Result<const NamedDataMap*> Program::get_named_data_map() const {
  const auto* entries = flatbuffer_->named_data();
  if (entries == nullptr || entries->size() == 0) return Error::NotFound;
  return static_cast<const NamedDataMap*>(&named_data_);
}

Result<DebugIdentity> Program::debug_identity() const {
  const auto* const entry = named_data_.find(kDebugIdentityKey);
  if (entry == nullptr) return Error::NotFound;
  const uint32_t index = entry->segment_index();
  const auto* const segment = flatbuffer_->segments()->Get(index);
  ET_ASSIGN_OR_RETURN(
      const void* const data,
      identity_.get(*loader_, segment_base_offset_ + segment->offset(), segment->size(),
                    SegmentInfo(SegmentInfo::Type::Backend, index, kDebugIdentityKey),
                    DebugIdentity::check));
  return DebugIdentity(data);
}

size_t Program::num_methods() const {
  return flatbuffer_->execution_plan()->size();
}

Result<const char*> Program::get_method_name(size_t method_index) const {
  ET_CHECK_OR_RETURN_ERROR(method_index < num_methods(), InvalidArgument,
                           "method %zu asked for, the program has %zu", method_index,
                           num_methods());
  return flatbuffer_->execution_plan()->Get(static_cast<uint32_t>(method_index))->name()->c_str();
}

Result<const executorch_flatbuffer::ExecutionPlan*> Program::find_plan(
    const char* method_name) const {
  for (const auto* plan : *flatbuffer_->execution_plan()) {
    if (method_name != nullptr && plan->name()->string_view() == method_name) return plan;
  }
  ET_LOG(Error,
         "the program has no method %s; it has:", method_name == nullptr ? "(null)" : method_name);
  for (const auto* plan : *flatbuffer_->execution_plan()) {
    ET_LOG(Error, "  %s", plan->name()->c_str());
  }
  return Error::InvalidArgument;
}

Result<Method> Program::load_method(const char* method_name, MemoryManager* memory_manager,
                                    EventTracer* event_tracer, const NamedDataMap* named_data_map,
                                    const LoadBackendOptionsMap* backend_options,
                                    Span<const Kernel> kernel_registry) const {
  internal::event_tracer_create_event_block(event_tracer, "Default");
  internal::EventTracerProfileMethodScope scope(event_tracer, "Program::load_method");
  ET_ASSIGN_OR_RETURN(const auto* const plan, find_plan(method_name));
  return Method::load(*plan, *this, memory_manager, event_tracer, named_data_map, backend_options,
                      kernel_registry);
}

Result<MethodMeta> Program::method_meta(const char* method_name) const {
  ET_ASSIGN_OR_RETURN(const auto* const plan, find_plan(method_name));
  return MethodMeta(plan);
}

Result<const char*> Program::get_output_flattening_encoding(const char* method_name) const {
  ET_ASSIGN_OR_RETURN(const auto* const plan, find_plan(method_name));
  const auto* meta = plan->container_meta_type();
  ET_CHECK_OR_RETURN_ERROR(meta != nullptr && meta->encoded_out_str() != nullptr, InvalidProgram,
                           "%s does not say how its outputs are arranged", method_name);
  return meta->encoded_out_str()->c_str();
}

Result<FreeableBuffer> Program::load_segment(const SegmentInfo& info) const {
  const auto* segment = flatbuffer_->segments()->Get(static_cast<uint32_t>(info.segment_index));
  return load_exactly(*loader_, segment_base_offset_ + segment->offset(), segment->size(), info);
}

Error Program::load_initial_state(size_t state_index, size_t nbytes, void* buffer) const {
  const auto* table = flatbuffer_->mutable_data_segments()->Get(0);
  const auto* segment = flatbuffer_->segments()->Get(table->segment_index());
  // Not load_into(): loaders need not have it, and states are small beside constants.
  auto state =
      load_exactly(*loader_,
                   segment_base_offset_ + segment->offset() +
                       table->offsets()->Get(static_cast<uint32_t>(state_index)),
                   nbytes, SegmentInfo(SegmentInfo::Type::Mutable, table->segment_index()));
  ET_CHECK_OK_OR_RETURN_ERROR(state.error());
  if (nbytes > 0) std::memcpy(buffer, state->data(), nbytes);
  return Error::Ok;
}

}  // namespace executorch::runtime
