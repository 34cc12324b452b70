/// A method of a program, loaded and ready to run.
#pragma once

#include <executorch/runtime/backend/backend_options_map.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>  // for includers
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/executor/debug_identity.h>
#include <executorch/runtime/executor/memory_manager.h>
#include <executorch/runtime/executor/method_meta.h>
#include <executorch/runtime/executor/method_rewriter.h>
#include <executorch/runtime/executor/tensor_parser.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace executorch_flatbuffer {
struct ExecutionPlan;
}  // namespace executorch_flatbuffer

namespace executorch::runtime {

class Program;

using OpFunction = void (*)(KernelRuntimeContext&, Span<EValue*>);
using InstructionArgs = Span<EValue*>;
using deserialization::NamedData;

/// Made by Program::load_method(), which allocates everything the method will ever need: execution
/// allocates only in the temporary allocator, and in what delegates bring.
///
///   set every input, execute(), read the outputs; again and again
///
/// The program, the memory manager and the external data map must outlive it. Not thread-safe;
/// several methods of one program may run at once in memory of their own.
class Method final {
 public:
  /// `rhs` may then only be destroyed; executing it is InvalidState.
  Method(Method&& rhs) noexcept : state_(std::exchange(rhs.state_, State{})) {}
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  Method& operator=(Method&&) = delete;
  /// Destroys the delegates' state.
  ~Method();

  /// Sets input `input_idx`. A tensor must have the input's element type, rank and order of
  /// dimensions, and at most as many elements as its bound; it is copied if the input is memory
  /// planned, else its bytes are used where they lie until the next call. Numbers were constants
  /// for the exporter: they must equal the recorded value (Double: up to 1e-4 + 1e-5 * |value|).
  /// A string or None must be given where one was exported; which string is not compared.
  ///   InvalidState     an execution is in progress (step())
  ///   InvalidArgument  anything else; the log names the input, what was found and expected. The
  ///                    input then keeps its former value
  ET_NODISCARD Error set_input(const EValue& input_evalue, size_t input_idx);
  /// All inputs; InvalidArgument if their number differs.
  ET_NODISCARD Error set_inputs(const aten::ArrayRef<EValue>& input_evalues);

  /// Gives an output that is not memory planned its memory: `size` bytes at `buffer`, enough for
  /// the upper bound of its shape, valid until it is replaced. InvalidState if the output has
  /// memory of its own, InvalidArgument if it is no tensor or `size` is too small.
  ET_NODISCARD Error set_output_data_ptr(void* buffer, size_t size, size_t output_idx);

  /// Copies the outputs (tensors by handle) and fills up with None. InvalidArgument if `length` is
  /// less than outputs_size().
  ET_NODISCARD Error get_outputs(EValue* output_evalues, size_t length);
  ET_DEPRECATED ET_NODISCARD Error get_inputs(EValue* input_evalues, size_t length);

  /// The tensor that the program calls `name`, such as a mutable buffer; NotFound if there is none.
  ET_NODISCARD Result<aten::Tensor> get_attribute(std::string_view name);

  /// Runs the method from its beginning.
  ///   InvalidArgument  a tensor input was never set
  ///   InvalidState     an output has no memory: it is not planned, and set_output_data_ptr() gave
  ///                    it none
  ///   InvalidProgram   loops do more than set_max_work() says, or a jump's condition is neither a
  ///                    Bool nor a Bool tensor
  ///   others           from a kernel or delegate; instruction, operator and arguments are logged
  ///   InvalidState     step() has begun an execution that reset_execution() has not ended
  /// After an error the outputs are undefined and the method can be executed again.
  ET_NODISCARD Error execute();

  /// Limits the work of loops in one execute(), so that none runs for ever. Without this call they
  /// may run ET_MAX_INSTRUCTIONS instructions (a macro, 10 million) and do ET_MAX_WORK units of
  /// work (10^10, some half an hour). The first run of an instruction is free. Every further one
  /// costs
  ///   4 units for a kernel, 100 for a delegate, 1 for any other instruction
  ///   and for each tensor 1 for 32 elements up to 2048, and 1 for 1024 elements beyond
  ///   and 1 for each 256 steps that the kernel or delegate reports by add_steps()
  void set_max_work(uint64_t units) {
    state_.max_work = units;
    state_.max_instructions = UINT64_MAX;
  }
  /// The steps that kernels and delegates have reported by add_steps() since the method was loaded.
  uint64_t steps() const { return state_.all_steps; }

  /// Runs one instruction; EndOfMethod if there is none left. After any other error the next call
  /// runs the first instruction.
  ET_EXPERIMENTAL ET_NODISCARD Error step() { return run_step(); }
  ET_DEPRECATED ET_NODISCARD Error experimental_step() { return run_step(); }
  /// Whether step() has run at least one instruction of this execution and some are left.
  ET_EXPERIMENTAL bool in_progress() const {
    return is_in_progress() && state_.chain < state_.chains.size();
  }
  /// Goes back to the beginning; InvalidState unless the end has been reached.
  ET_EXPERIMENTAL ET_NODISCARD Error reset_execution() { return restart(); }
  ET_DEPRECATED ET_NODISCARD Error experimental_reset_execution() { return restart(); }

  MethodMeta method_meta() const { return MethodMeta(state_.plan); }
  size_t inputs_size() const;
  size_t outputs_size() const;
  /// Aborts if out of range.
  const EValue& get_output(size_t i) const;
  EventTracer* get_event_tracer() { return state_.event_tracer; }

  /// Where in the user's model an instruction comes from. False if the program does not say,
  /// because it was stripped or another exporter wrote it, or if there is no such instruction.
  bool instruction_origin(size_t chain, size_t instruction, InstructionOrigin& out) const;
  /// The parameter of the user's model that an input is ("tokens"), and the keys under which the
  /// model returns an output ("logits"). "" if the program does not say, or there is no such one.
  const char* input_name(size_t i) const;
  const char* output_name(size_t i) const;

  // For tools that watch a run step by step.
  struct Place {
    size_t chain;
    size_t instruction;
  };
  /// The place of the instruction that step() runs next. At the end: the number of chains, and 0.
  Place next_place() const { return {state_.chain, state_.instruction}; }
  /// The instructions as they run; a rewriter may have changed them.
  Span<const Span<Instruction>> instructions() const {
    return {state_.chains.data(), state_.chains.size()};
  }
  /// The values, in the order of the program.
  Span<const EValue> values() const { return {state_.values.data(), state_.values.size()}; }
  /// The results that are needed only during an execution. Empty if no rewriter said which they are.
  const Temporaries& temporaries() const { return state_.temporaries; }
  /// The method's plan in the program.
  const executorch_flatbuffer::ExecutionPlan& plan() const { return *state_.plan; }

  // Raw access to values. Aborts if out of range.
  ET_DEPRECATED const EValue& get_input(size_t i) const;
  ET_DEPRECATED EValue& mutable_input(size_t i);
  ET_DEPRECATED EValue& mutable_output(size_t i);

 private:
  friend class Program;

  /// For messages.
  ArgumentText input_text(size_t i) const { return {"input", i, input_name(i)}; }
  ArgumentText output_text(size_t i) const { return {"output", i, output_name(i)}; }

  /// A call site's delegate. The blob lives as long as the handle unless the backend frees it.
  struct Delegate {
    const BackendInterface* backend;
    DelegateHandle* handle;
    FreeableBuffer blob;
  };

  using Chain = Span<Instruction>;
  class InstructionBuilder;

  /// Everything is in the method allocator, so that moving a method copies this.
  struct State {
    const executorch_flatbuffer::ExecutionPlan* plan = nullptr;
    const Program* program = nullptr;
    MemoryManager* memory_manager = nullptr;
    /// The caller's temporary allocator, or `heap` if there is none.
    MemoryAllocator* temp_allocator = nullptr;
    /// The method's own allocator, used when the caller's has no room.
    MemoryAllocator* heap = nullptr;
    /// Whether arguments are checked for memory before each instruction: some tensors get theirs
    /// late.
    bool checks_data = false;
    uint64_t max_work = 0, max_instructions = 0;  // of loops
    uint64_t steps = 0, all_steps = 0;            // of the last kernel or delegate, and of all
    EventTracer* event_tracer = nullptr;
    /// External data over the program's own, where a program has both.
    NamedDataMap* merged_data = nullptr;
    Span<EValue> values;
    /// One for each input.
    Span<bool> input_set;
    Span<Delegate> delegates;
    Span<NamedData> external_constants;
    Span<Chain> chains;
    Temporaries temporaries;
    /// The next instruction.
    size_t chain = 0;
    size_t instruction = 0;
  };

  Method(const executorch_flatbuffer::ExecutionPlan& plan, const Program& program,
         MemoryManager* memory_manager, EventTracer* event_tracer);
  ET_NODISCARD static Result<Method> load(const executorch_flatbuffer::ExecutionPlan& plan,
                                          const Program& program, MemoryManager* memory_manager,
                                          EventTracer* event_tracer,
                                          const NamedDataMap* external_data,
                                          const LoadBackendOptionsMap* backend_options,
                                          Span<const Kernel> kernels);

  /// The last argument's tensor; null if it is no tensor.
  static aten::TensorImpl* last_tensor(InstructionArgs args) {
    const EValue* const last = args.empty() ? nullptr : args[args.size() - 1];
    return last != nullptr && last->isTensor() ? last->toTensor().unsafeGetTensorImpl() : nullptr;
  }

  // Loading, in this order (method_init.cpp, method_delegates.cpp, method_instructions.cpp).
  Error init(const NamedDataMap* external_data, const LoadBackendOptionsMap* backend_options,
             Span<const Kernel> kernels);
  Error init_temp_allocator();
  Error init_values(const NamedDataMap* external_data);
  Error init_external_constants();
  Error init_input_flags();
  Error init_delegates(const NamedDataMap* external_data,
                       const LoadBackendOptionsMap* backend_options);
  Error init_delegate(Delegate& delegate, uint32_t index, const NamedDataMap* data,
                      const LoadBackendOptionsMap* backend_options);
  Result<const NamedDataMap*> sort_data();
  Result<const NamedDataMap*> merge_data(const NamedDataMap* external_data);
  Error init_instructions(Span<const Kernel> kernels);
  Error check_delegate_calls();
  uint32_t find_first_written(const Instruction& instruction) const;
  Error check_written(const Instruction& instruction, uint32_t* calls = nullptr,
                      uint32_t call = 0) const;
  void rewrite();

  // Inputs and outputs (method_io.cpp).
  Error set_tensor_input(const aten::Tensor& source, size_t index);
  EValue& input_value(size_t index) const;
  EValue& output_value(size_t index) const;

  // Execution (method.cpp).
  Error run_chains();
  Error begin();
  Error check_ready() const;
  Error check_outputs() const;
  Error finish();
  Error run_step();
  Error run_instruction();
  struct Failure {
    size_t instruction;
    InstructionArgs args;
  };
  Error run_kernel(const Instruction& instruction, Failure& failure);
  Error run_delegate(const Instruction& instruction);
  void set_steps(uint64_t steps);
  void free_temp_memory();
  Result<bool> read_condition(const EValue& condition) const;
  Error check_data(const Instruction& instruction) const;
  /// Prefetches the arguments of the next two instructions.
  void prefetch_arguments() const;
  /// Whether an execution by steps has begun and has not been reset.
  bool is_in_progress() const { return state_.chain != 0 || state_.instruction != 0; }
  Error restart();
  void log_origin(size_t instruction) const;
  const char* name() const;

  State state_;
};

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Method;
}  // namespace torch::executor
