#include <executorch/devtools/etdump/etdump_flatcc.h>
#include <executorch/devtools/etdump/etdump_generated.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/runtime/platform/platform.h>

#include <cstring>

namespace executorch::etdump {
namespace {

namespace fb = etdump_flatbuffer;
using internal::DumpBuilder;
using runtime::DelegateDebugIdType;
using runtime::Error;
using runtime::EventTracerEntry;
using Field = DumpBuilder::Field;
using Ref = DumpBuilder::Ref;
using Shape = DumpBuilder::Shape;

constexpr int64_t kLost = -1;
constexpr size_t kTableBytes = DumpBuilder::kMostTableBytes;
constexpr size_t kHeadBytes = DumpBuilder::kMostHeadBytes;
}  // namespace

ETDumpGen::ETDumpGen(runtime::Span<uint8_t> buffer) : builder_(buffer) {}

void ETDumpGen::reset() {
  builder_.reset();
  state_ = State::kInit;
  error_ = Error::Ok;
  n_blocks_ = n_allocators_ = n_events_ = 0;
  ++generation_;
}

void ETDumpGen::clear_builder() {
  reset();
  builder_.release();
}

Error ETDumpGen::lose(Error error, const char* what) {
  if (error_ == Error::Ok) {
    error_ = error;
    ET_LOG(Error, "ETDump: %s is not recorded, perhaps more: %s", what,
           error == Error::InvalidState             ? "no event block is open"
           : error == Error::MemoryAllocationFailed ? "out of memory"
                                                    : runtime::to_string(error));
  }
  return error;
}

void ETDumpGen::create_event_block(const char* name) {
  if (name == nullptr) name = "";
  if (state_ == State::kDone) reset();
  close_block();
  if (!builder_.reserve(kHeadBytes + std::strlen(name) + 2 * kTableBytes)) {
    (void)lose(Error::MemoryAllocationFailed, name);
    return;
  }
  block_name_ = text(name);
  block_input_index_ = bundled_input_index();
  state_ = State::kBlockCreated;
  ++n_blocks_;
}

// Needs no reserve(): its room was reserved together with the block's contents.
void ETDumpGen::close_block() {
  if (state_ == State::kInit || state_ == State::kDone) return;
  const Ref events = builder_.pop_vector(n_events_);
  const Field name = Field::object(fb::RunData::VT_NAME, block_name_);
  const Field input = Field::int32(fb::RunData::VT_BUNDLED_INPUT_INDEX, block_input_index_);
  const Field all = Field::object(fb::RunData::VT_EVENTS, events);
  if (n_allocators_ > 0) {
    const Ref allocators = builder_.pop_vector(n_allocators_);
    builder_.push(
        builder_.table(Shape::kRunWithAllocators,
                       {name, input, Field::object(fb::RunData::VT_ALLOCATORS, allocators), all}));
  } else {
    builder_.push(builder_.table(Shape::kRun, {name, input, all}));
  }
  n_allocators_ = n_events_ = 0;
  state_ = State::kInit;
}

Ref ETDumpGen::text(const char* text) {
  return builder_.text(text, std::strlen(text));
}

// Reserves `n_bytes` for an event of the open block, and the table around it.
Error ETDumpGen::begin_event(const char* what, size_t n_bytes) {
  if (state_ == State::kInit || state_ == State::kDone) return lose(Error::InvalidState, what);
  if (!builder_.reserve(n_bytes + kTableBytes)) return lose(Error::MemoryAllocationFailed, what);
  return Error::Ok;
}

EventTracerEntry ETDumpGen::begin_entry(const char* name, DelegateDebugIdType type,
                                        int32_t number) {
  EventTracerEntry entry{kLost, chain_id_, debug_handle_, 0, type};
  const size_t n_bytes = kHeadBytes + (name == nullptr ? 0 : std::strlen(name));
  if (begin_event(name == nullptr ? "an operation of a delegate" : name, n_bytes) == Error::Ok) {
    const uint32_t id = type == DelegateDebugIdType::kInt ? static_cast<uint32_t>(number)
                                                          : text(name == nullptr ? "" : name);
    entry.event_id = static_cast<int64_t>(generation_ & 0x7fffffff) << 32 | id;
  }
  return entry;
}

EventTracerEntry ETDumpGen::start_profiling(const char* name, runtime::ChainID chain_id,
                                            runtime::DebugHandle debug_handle) {
  EventTracerEntry entry = begin_entry(name, DelegateDebugIdType::kNone, 0);
  if (chain_id != runtime::kUnsetChainId) {
    entry.chain_id = chain_id;
    entry.debug_handle = debug_handle;
  }
  entry.start_time = runtime::pal_current_ticks();
  return entry;
}

void ETDumpGen::end_profiling(EventTracerEntry prof_entry) {
  add_profile_event("an event", prof_entry, runtime::pal_current_ticks(), nullptr, 0);
}

EventTracerEntry ETDumpGen::start_profiling_delegate(const char* name,
                                                     DelegateDebugIntId delegate_debug_index) {
  const auto id = make_id(name, delegate_debug_index);
  if (!id.ok()) {
    (void)lose(id.error(), "an operation of a delegate, which has not exactly one of name and id,");
    return {kLost, chain_id_, debug_handle_, 0, DelegateDebugIdType::kNone};
  }
  EventTracerEntry entry = begin_entry(name, id->type, id->number);
  entry.start_time = runtime::pal_current_ticks();
  return entry;
}

void ETDumpGen::end_profiling_delegate(EventTracerEntry prof_entry, const void* metadata,
                                       size_t metadata_len) {
  add_profile_event("an operation of a delegate", prof_entry, runtime::pal_current_ticks(),
                    metadata, metadata_len);
}

void ETDumpGen::log_profiling_delegate(const char* name, DelegateDebugIntId delegate_debug_index,
                                       et_timestamp_t start_time, et_timestamp_t end_time,
                                       const void* metadata, size_t metadata_len) {
  EventTracerEntry entry = start_profiling_delegate(name, delegate_debug_index);
  entry.start_time = start_time;
  add_profile_event("an operation of a delegate", entry, end_time, metadata, metadata_len);
}

Result<ETDumpGen::DelegateId> ETDumpGen::make_id(const char* name, DelegateDebugIntId number) {
  const bool has_number = number != runtime::kUnsetDelegateDebugIntId;
  if ((name != nullptr) == has_number) return Error::InvalidArgument;
  return DelegateId{has_number ? DelegateDebugIdType::kInt : DelegateDebugIdType::kStr, number};
}

void ETDumpGen::add_profile_event(const char* what, const EventTracerEntry& entry,
                                  et_timestamp_t end_time, const void* metadata,
                                  size_t metadata_len) {
  // An entry that could not begin was reported already; an entry from before a reset is ignored.
  if (entry.event_id < 0 || entry.event_id >> 32 != (generation_ & 0x7fffffff)) return;
  const size_t n_bytes = metadata == nullptr ? 0 : metadata_len;
  if (begin_event(what, kHeadBytes + n_bytes + kTableBytes) != Error::Ok) return;
  state_ = State::kAddingEvents;
  const auto id = static_cast<Ref>(entry.event_id & 0xffffffff);
  const Field chain = Field::int32(fb::ProfileEvent::VT_CHAIN_INDEX, entry.chain_id);
  const Field instruction =
      Field::int32(fb::ProfileEvent::VT_INSTRUCTION_ID, static_cast<int32_t>(entry.debug_handle));
  const Field start = Field::number(fb::ProfileEvent::VT_START_TIME, entry.start_time, 8);
  const Field end = Field::number(fb::ProfileEvent::VT_END_TIME, end_time, 8);
  Ref profile;
  if (entry.delegate_event_id_type == DelegateDebugIdType::kNone) {
    profile = builder_.table(Shape::kProfile, {Field::object(fb::ProfileEvent::VT_NAME, id), chain,
                                               instruction, start, end});
  } else {
    const Field delegate =
        entry.delegate_event_id_type == DelegateDebugIdType::kInt
            ? Field::int32(fb::ProfileEvent::VT_DELEGATE_DEBUG_ID_INT, static_cast<int32_t>(id))
            : Field::object(fb::ProfileEvent::VT_DELEGATE_DEBUG_ID_STR, id);
    const Field data = Field::object(fb::ProfileEvent::VT_DELEGATE_DEBUG_METADATA,
                                     builder_.octets(metadata, n_bytes));
    profile = builder_.table(internal::with_delegate(Shape::kProfile, entry.delegate_event_id_type),
                             {delegate, data, chain, instruction, start, end});
  }
  builder_.push(builder_.table(Shape::kEventOfProfile,
                               {Field::object(fb::Event::VT_PROFILE_EVENT, profile)}));
  ++n_events_;
}

runtime::AllocatorID ETDumpGen::track_allocator(const char* name) {
  if (state_ != State::kBlockCreated && state_ != State::kAddingAllocators) {
    (void)lose(Error::InvalidState,
               "an allocator, which is not registered before the first event,");
    return 0;
  }
  if (name == nullptr) {
    (void)lose(Error::InvalidArgument, "an allocator without a name");
    return 0;
  }
  if (begin_event(name, kHeadBytes + std::strlen(name)) != Error::Ok) return 0;
  state_ = State::kAddingAllocators;
  builder_.push(
      builder_.table(Shape::kAllocator, {Field::object(fb::Allocator::VT_NAME, text(name))}));
  return static_cast<runtime::AllocatorID>(++n_allocators_);
}

void ETDumpGen::track_allocation(runtime::AllocatorID id, size_t size) {
  if (begin_event("an allocation", kTableBytes) != Error::Ok) return;
  if (id == 0 || id > n_allocators_) {
    (void)lose(Error::InvalidArgument, "an allocation by an allocator that is not registered");
    return;
  }
  state_ = State::kAddingEvents;
  const Ref allocation =
      builder_.table(Shape::kAllocation,
                     {Field::int32(fb::AllocationEvent::VT_ALLOCATOR_ID, static_cast<int32_t>(id)),
                      Field::number(fb::AllocationEvent::VT_ALLOCATION_SIZE, size, 8)});
  builder_.push(builder_.table(Shape::kEventOfAllocation,
                               {Field::object(fb::Event::VT_ALLOCATION_EVENT, allocation)}));
  ++n_events_;
}

Result<bool> ETDumpGen::set_debug_buffer(runtime::Span<uint8_t> buffer) {
  ET_ASSIGN_OR_RETURN(debug_buffer_, BufferDataSink::create(buffer));
  sink_ = &debug_buffer_;
  return true;
}

ETDumpResult ETDumpGen::get_etdump_data() {
  if (state_ == State::kDone || n_blocks_ == 0) return {nullptr, 0};
  close_block();
  const Ref runs = builder_.pop_vector(builder_.list_size());
  const Ref root =
      builder_.table(Shape::kDump, {Field::int32(fb::ETDump::VT_VERSION, ETDUMP_VERSION),
                                    Field::object(fb::ETDump::VT_RUN_DATA, runs)});
  const runtime::Span<uint8_t> file = builder_.finish(root, fb::ETDumpIdentifier());
  state_ = State::kDone;
  return {builder_.is_static() ? file.data() : builder_.detach(file), file.size()};
}

}  // namespace executorch::etdump
