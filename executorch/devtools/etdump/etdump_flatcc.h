#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/devtools/etdump/data_sinks/buffer_data_sink.h>
#include <executorch/devtools/etdump/dump_builder.h>
#include <executorch/runtime/core/evalue.h>  // for programs that include only this
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/span.h>

#define ETDUMP_VERSION 0

namespace executorch::etdump {

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

  /// Returns the allocator's number in the block, from 1; 0 if it could not be registered.
  runtime::AllocatorID track_allocator(const char* name) override;
  void track_allocation(runtime::AllocatorID id, size_t size) override;

  /// Records a tensor (of bfloat16 as floats), list of tensors, int, double or bool. True, or false
  /// if the filter leaves the value out.
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

  /// Writes the bytes of recorded tensors to `buffer`, which the caller owns and which must outlive
  /// this.
  Result<bool> set_debug_buffer(runtime::Span<uint8_t> buffer);
  /// Writes the bytes of recorded tensors to `data_sink`, which is borrowed; null for none.
  void set_data_sink(DataSinkBase* data_sink) { sink_ = data_sink; }
  DataSinkBase* get_data_sink() { return sink_; }

  /// Ends the dump and returns it; {nullptr, 0} if it has no block. If the constructor got a
  /// buffer, the dump is in it until the next block begins; else the caller releases it with
  /// free().
  ETDumpResult get_etdump_data();

  /// Blocks recorded since the last dump began.
  size_t get_num_blocks() const { return n_blocks_; }
  bool is_static_etdump() const { return builder_.is_static(); }

  /// The first error that kept something from being recorded since the dump began; Ok if there was
  /// none.
  runtime::Error error() const { return error_; }

  /// Forgets what was recorded.
  void reset();
  /// Forgets what was recorded, and frees its memory.
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
  /// Writes elements as `type` to the sink. Gives their offset, -1 for a tensor without elements.
  Result<size_t> write_elements(const aten::Tensor& tensor, aten::ScalarType type);
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
  /// The name of the open block.
  Builder::Ref block_name_ = 0;
  int block_input_index_ = runtime::kUnsetBundledInputIndex;
  /// Counts dumps, so that entries of an earlier dump are recognized.
  uint32_t generation_ = 0;
};

}  // namespace executorch::etdump

namespace torch::executor {
using ::executorch::etdump::ETDumpGen;
using etdump_result = ::executorch::etdump::ETDumpResult;
}  // namespace torch::executor
