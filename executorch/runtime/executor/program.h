/// A program: the content of a .pte file, verified and ready to have its methods loaded.
#pragma once

#include <executorch/runtime/backend/backend_options_map.h>
#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/executor/debug_identity.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method.h>
#include <executorch/runtime/executor/method_meta.h>
#include <executorch/runtime/executor/pte_data_map.h>

#include <atomic>
#include <cstdint>

namespace executorch_flatbuffer {
struct ExecutionPlan;
struct Program;
}  // namespace executorch_flatbuffer

namespace executorch::runtime {

namespace internal {

/// A segment that is loaded when it is first asked for. Threads may ask at once.
class LazySegment final {
 public:
  LazySegment() = default;
  LazySegment(LazySegment&& other) noexcept
      : buffer_(std::move(other.buffer_)), state_(other.state_.exchange(State::Empty)) {}

  /// The segment's first byte. A failed load is tried again by the next call; what `check` refuses
  /// is InvalidProgram from then on.
  Result<const void*> get(const DataLoader& loader, uint64_t offset, uint64_t size,
                          const DataLoader::SegmentInfo& info,
                          Error (*check)(const void* data, size_t size) = nullptr);

 private:
  enum class State : uint8_t { Empty, Loading, Ready, Refused };
  FreeableBuffer buffer_;
  std::atomic<State> state_{State::Empty};
};

}  // namespace internal

/// Owns the program's structure; weights stay with the loader until they are needed. The program
/// must outlive its methods and metas and may only be moved while there are none.
/// Const members may be called from several threads at once.
class Program final {
 public:
  /// The highest version of the schema that is read; Program::load refuses later ones.
  static constexpr uint32_t kMaxSupportedSchemaVersion = 0;

  /// Kept for its spelling: every program is verified completely, whichever is asked for.
  enum class Verification : uint8_t {
    Minimal,
    InternalConsistency,
  };

  /// Reads the structure through `loader`, which must outlive the program, and verifies it: the
  /// flatbuffer, and what it means. No segment is read. What is wrong is logged.
  ///   InvalidArgument  fewer bytes than any program has
  ///   InvalidProgram   not a program, another version of the format, damaged or truncated
  ///   others           from the loader
  ET_NODISCARD static Result<Program> load(DataLoader* loader,
                                           Verification verification = Verification::Minimal);
  ET_DEPRECATED ET_NODISCARD static Result<Program> Load(
      DataLoader* loader, Verification verification = Verification::Minimal) {
    return load(loader, verification);
  }

  Program(Program&&) noexcept = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Program& operator=(Program&&) = delete;
  ~Program() = default;

  /// Constant number `buffer_idx`, read-only, valid as long as the program. InvalidArgument if
  /// there is no such constant or it ends before `nbytes`; errors of the loader on first use.
  Result<const void*> get_constant_buffer_data(size_t buffer_idx, size_t nbytes) const;

  /// The data that the program carries for its delegates; NotFound if it carries none.
  Result<const NamedDataMap*> get_named_data_map() const;

  /// Where in the user's model the instructions come from, and what it calls its inputs and outputs.
  /// Read and verified by the first call, not by load(). NotFound if the program does not say, because it was stripped or another exporter
  /// wrote it; InvalidProgram if it is malformed.
  Result<DebugIdentity> debug_identity() const;

  size_t num_methods() const;
  /// InvalidArgument if out of range.
  Result<const char*> get_method_name(size_t method_index) const;

  /// Makes a method ready to execute in the given memory.
  ///   event_tracer     told about loading and every execution; may be null
  ///   named_data_map   external weights; may be null. Must outlive the method
  ///   backend_options  load-time options of delegates; may be null
  ///   kernel_registry  used instead of the process-wide registry unless empty
  /// InvalidArgument: no such method. OperatorMissing: kernels that are not registered, all named
  /// in the log. NotFound: unknown backend or external data. MemoryAllocationFailed. NotSupported.
  Result<Method> load_method(const char* method_name, MemoryManager* memory_manager,
                             EventTracer* event_tracer = nullptr,
                             const NamedDataMap* named_data_map = nullptr,
                             const LoadBackendOptionsMap* backend_options = nullptr,
                             Span<const Kernel> kernel_registry = {}) const;

  /// InvalidArgument if there is no such method.
  Result<MethodMeta> method_meta(const char* method_name) const;

  /// How the method's outputs are arranged in Python, as pytree text. InvalidArgument if there is
  /// no such method, InvalidProgram if it does not say.
  ET_DEPRECATED Result<const char*> get_output_flattening_encoding(
      const char* method_name = "forward") const;

  enum HeaderStatus {
    CompatibleVersion,
    IncompatibleVersion,
    NotPresent,
    ShortData,
  };
  /// Bytes that check_header() needs.
  static constexpr size_t kMinHeadBytes = 64;
  /// Tells from a file's first `size` bytes whether it is a program that this runtime reads.
  static HeaderStatus check_header(const void* data, size_t size);

 private:
  friend class Method;
  friend class deserialization::TensorParser;

  Program(DataLoader* loader, uint64_t segment_base_offset, FreeableBuffer&& program_data);

  Result<const executorch_flatbuffer::ExecutionPlan*> find_plan(const char* method_name) const;
  Result<FreeableBuffer> load_segment(const DataLoader::SegmentInfo& info) const;
  /// Copies the first `nbytes` of a mutable buffer's initial state.
  Error load_initial_state(size_t state_index, size_t nbytes, void* buffer) const;

  DataLoader* loader_;
  uint64_t segment_base_offset_;
  FreeableBuffer program_data_;
  const executorch_flatbuffer::Program* flatbuffer_;
  internal::PteDataMap named_data_;
  mutable internal::LazySegment constants_;
  mutable internal::LazySegment identity_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Program;
}  // namespace torch::executor
