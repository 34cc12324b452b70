#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/devtools/etdump/data_sinks/buffer_data_sink.h>
#include <executorch/devtools/etdump/dump_builder.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/span.h>

#define ETDUMP_VERSION 0

namespace executorch {
namespace etdump {

using runtime::DelegateDebugIntId;
using runtime::EventTracerFilterBase;
using runtime::Result;

/// A finished ETDump: a file of `size` bytes.
struct ETDumpResult {
  void* buf;
  size_t size;
};

/// Records what the runtime does as an ETDump: times, values and allocations, for Inspector.
///
///   auto tracer = std::make_unique<ETDumpGen>();
///   Module module("model.pte", Module::LoadMode::File, std::move(tracer));
///   module.forward(...);
///   auto* recorded = static_cast<ETDumpGen*>(module.event_tracer());
///   ETDumpResult result = recorded->get_etdump_data();   // write it to a file, then
///   free(result.buf)
///
/// Values are recorded from set_event_tracer_debug_level(kProgramOutputs) on, with a debug buffer
/// or a data sink for their bytes.
///
/// States: at first there is no block; the runtime opens one with each load and each execution;
/// directly behind, allocators may be registered, then events recorded; get_etdump_data() ends it,
/// and the next block begins another dump. What comes in another state, or does not fit into
/// memory, is left out: the rest stays a valid dump, error() says what was lost first, and
/// the log says it once. Nothing aborts. Not thread-safe.
class ETDumpGen : public runtime::EventTracer {
 public:
  /// Without `buffer` memory comes from malloc and grows. With it, the dump must fit there; the
  /// bytes outlive this.
  ETDumpGen(runtime::Span<uint8_t> buffer = {nullptr, static_cast<size_t>(0)});
  ~ETDumpGen() override = default;
  ETDumpGen(const ETDumpGen&) = delete;
  ETDumpGen& operator=(const ETDumpGen&) = delete;

  void create_event_block(const char* name) override;

  runtime::EventTracerEntry start_profiling(
      const char* name, runtime::ChainID chain_id = runtime::kUnsetChainId,
      runtime::DebugHandle debug_handle = runtime::kUnsetDebugHandle) override;
  void end_profiling(runtime::EventTracerEntry prof_entry) override;

  /// An operation of a delegate has either a name or a number.
  runtime::EventTracerEntry start_profiling_delegate(
      const char* name, DelegateDebugIntId delegate_debug_index) override;
  void end_profiling_delegate(runtime::EventTracerEntry prof_entry, const void* metadata,
                              size_t metadata_len) override;
  void log_profiling_delegate(const char* name, DelegateDebugIntId delegate_debug_index,
                              et_timestamp_t start_time, et_timestamp_t end_time,
                              const void* metadata, size_t metadata_len) override;

  /// Numbers from 1 within a block; 0 where it was not registered.
  runtime::AllocatorID track_allocator(const char* name) override;
  void track_allocation(runtime::AllocatorID id, size_t size) override;

  /// Tensors, bfloat16 ones as floats, lists of tensors, ints, doubles and bools. True, or false
  /// where the filter declines.
  ///   InvalidArgument   another kind of value, or a type of tensor that readers do not know, or
  ///                     no place for its bytes was set
  ///   InvalidState      no block is open
  ///   OutOfResources, AccessFailed   the sink is full or fails
  ///   MemoryAllocationFailed   the dump is full
  Result<bool> log_evalue(const runtime::EValue& evalue,
                          runtime::LoggedEValueType evalue_type =
                              runtime::LoggedEValueType::kIntermediateOutput) override;
  Result<bool> log_intermediate_output_delegate(const char* name,
                                                DelegateDebugIntId delegate_debug_index,
                                                const aten::Tensor& output) override;
  Result<bool> log_intermediate_output_delegate(
      const char* name, DelegateDebugIntId delegate_debug_index,
      const runtime::ArrayRef<aten::Tensor> output) override;
  Result<bool> log_intermediate_output_delegate(const char* name,
                                                DelegateDebugIntId delegate_debug_index,
                                                const int& output) override;
  Result<bool> log_intermediate_output_delegate(const char* name,
                                                DelegateDebugIntId delegate_debug_index,
                                                const bool& output) override;
  Result<bool> log_intermediate_output_delegate(const char* name,
                                                DelegateDebugIntId delegate_debug_index,
                                                const double& output) override;
  void set_delegation_intermediate_output_filter(
      EventTracerFilterBase* event_tracer_filter) override {
    filter_ = event_tracer_filter;
  }

  /// Bytes of recorded tensors go to `buffer`, of the caller's; it outlives this.
  Result<bool> set_debug_buffer(runtime::Span<uint8_t> buffer);
  /// They go to `data_sink`; borrowed, null for none.
  void set_data_sink(DataSinkBase* data_sink) { sink_ = data_sink; }
  DataSinkBase* get_data_sink() { return sink_; }

  /// Ends the dump. Without a block {nullptr, 0}. The bytes lie in the buffer given to the
  /// constructor, until the next block, or the caller releases them with free().
  ETDumpResult get_etdump_data();

  /// Blocks recorded since the last dump began.
  size_t get_num_blocks() const { return n_blocks_; }
  bool is_static_etdump() const { return builder_.is_static(); }

  /// What kept something from being recorded first since the dump began; Ok if nothing did.
  runtime::Error error() const { return error_; }

  /// Forgets what was recorded.
  void reset();
  /// The same, and gives memory back.
  void clear_builder();

 private:
  using Builder = internal::DumpBuilder;
  enum class State : uint8_t { kInit, kBlockCreated, kAddingAllocators, kAddingEvents, kDone };
  /// What an event belongs to: an operation of a delegate, or none.
  struct DelegateId {
    runtime::DelegateDebugIdType type;
    int32_t number;
  };

  runtime::Error begin_event(const char* what, size_t n_bytes);
  runtime::Error lose(runtime::Error error, const char* what);
  void close_block();
  Builder::Ref text(const char* text);
  runtime::EventTracerEntry begin_entry(const char* text, runtime::DelegateDebugIdType type,
                                        int32_t number);
  static Result<DelegateId> make_id(const char* name, DelegateDebugIntId number);
  void add_profile_event(const char* what, const runtime::EventTracerEntry& entry,
                         et_timestamp_t end_time, const void* metadata, size_t metadata_len);
  Result<Builder::Ref> add_tensor(const aten::Tensor& tensor);
  Result<Builder::Ref> add_value(const aten::Tensor& tensor, bool is_output);
  Result<Builder::Ref> add_value(runtime::ArrayRef<aten::Tensor> tensors, bool is_output);
  Result<Builder::Ref> add_value(int64_t value, bool is_output);
  Result<Builder::Ref> add_value(bool value, bool is_output);
  Result<Builder::Ref> add_value(double value, bool is_output);
  template <typename T>
  Result<bool> add_debug_event(const T& value, bool is_output, const char* name,
                               const DelegateId& id);
  template <typename T>
  Result<bool> add_delegate_output(const char* name, DelegateDebugIntId number, const T& value);

  Builder builder_;
  BufferDataSink debug_buffer_;
  DataSinkBase* sink_ = nullptr;
  EventTracerFilterBase* filter_ = nullptr;
  State state_ = State::kInit;
  runtime::Error error_ = runtime::Error::Ok;
  size_t n_blocks_ = 0;
  size_t n_allocators_ = 0;
  size_t n_events_ = 0;
  /// Of the open block.
  Builder::Ref block_name_ = 0;
  int block_input_index_ = runtime::kUnsetBundledInputIndex;
  /// Entries of an earlier dump refer to nothing in this one.
  uint32_t generation_ = 0;
};

}  // namespace etdump
}  // namespace executorch

namespace torch {
namespace executor {
using ::executorch::etdump::ETDumpGen;
using etdump_result = ::executorch::etdump::ETDumpResult;
}  // namespace executor
}  // namespace torch
