#pragma once

#include <executorch/extension/module/module.h>
#include <executorch/extension/pybindings/inputs.h>
#include <executorch/extension/pybindings/outputs.h>
#include <executorch/extension/pybindings/recording.h>
#include <executorch/extension/pybindings/shared_state.h>
#include <executorch/extension/training/module/joint_outputs.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace executorch::extension::pybindings {

/// Where a program comes from. A path is memory-mapped; a buffer is used where it lies and kept.
struct Source {
  std::string path;  // not looked at if `buffer` holds the program
  nanobind::object buffer;
  std::string data_path;  // empty: no external weights, or `data_buffer` holds them
  nanobind::object data_buffer;
  /// `buffer` holds a bundled program; the program is within it.
  bool is_bundle = false;
};

/// A verified program; what Python's ExecuTorchProgram, ExecuTorchMethod and ExecuTorchModule
/// share. Throws FileNotFoundError or RuntimeError when it cannot be loaded.
class LoadedProgram {
 public:
  /// `recording` records everything that the program's methods do; may be null.
  LoadedProgram(Source source, runtime::Program::Verification verification,
                std::unique_ptr<Recording> recording = nullptr);

  /// Throws RuntimeError unless the program was loaded with enable_etdump.
  Recording& recording() const;
  bool has_recording() const { return recording_ != nullptr; }
  runtime::EventTracer* tracer() const { return has_recording() ? recording_->tracer() : nullptr; }
  /// The mutex that a method's runs hold: the recording's if there is one, since all methods share
  /// it, the state's if methods share that, else `own`.
  std::mutex& turns(std::mutex& own) const {
    return has_recording() ? recording_->mutex() : state_ != nullptr ? state_->turns() : own;
  }
  const Source& source() const { return source_; }

  const runtime::Program& program() const { return *program_; }
  std::vector<std::string> method_names() const;
  runtime::MethodMeta method_meta(const std::string& name) const;
  /// What the exported model calls the inputs and the outputs of a method, "" where the program
  /// does not say. Throws RuntimeError for an unknown method.
  using ArgumentNames = std::pair<std::vector<std::string>, std::vector<std::string>>;
  ArgumentNames argument_names(const std::string& method) const;

  /// A module over this program, with its own memory and state. It must not outlive the program.
  std::unique_ptr<Module> make_module() const;

  /// What methods loaded one by one share, if the program was planned that way and lies in the
  /// CPU's memory; else null.
  SharedState* state() const { return state_.get(); }

 private:
  /// The size of the mutable buffers that methods share; 0 if they share none.
  int64_t shared_state_bytes() const;
  bool lies_in_cpu_memory() const;

  Source source_;
  std::unique_ptr<Recording> recording_;
  std::unique_ptr<Module> loader_;  // owns the data loader behind program_
  std::shared_ptr<runtime::Program> program_;
  std::unique_ptr<SharedState> state_;
};

/// One loaded method of `module`, and the memory that Python objects lend it between calls. Calls
/// from several threads run one after the other (`mutex`); none holds the GIL while the runtime
/// works.
class Runner {
 public:
  /// `module` is one of `program`. `arenas` may be null: then the module allocates all of the
  /// method's memory.
  Runner(Module& module, std::mutex& mutex, std::string name, const LoadedProgram& program,
         ArenasWithState* arenas = nullptr);

  runtime::MethodMeta meta() const;
  void set_max_work(uint64_t units);
  void set_inputs(nanobind::handle items);
  void execute();
  nanobind::list outputs(bool clone, nanobind::handle owner);
  nanobind::list call(nanobind::handle items, bool clone, nanobind::handle owner);
  /// Runs test case `index` of the bundled program at `bundle`: its outputs, or RuntimeError with
  /// the first difference from what is expected.
  nanobind::list call_bundled(const void* bundle, size_t index, double rtol, double atol,
                              nanobind::handle owner);
  nanobind::object attribute(const std::string& attribute_name, nanobind::handle owner);

  /// Runs one instruction. `ran` is false for an instruction that fusion replaced. Returns nothing
  /// at the end; the next call then starts from the beginning.
  struct Step {
    size_t chain;
    size_t instruction;
    bool ran;
  };
  std::optional<Step> step();
  bool origin(size_t chain, size_t instruction, runtime::InstructionOrigin& out) const {
    return method_.instruction_origin(chain, instruction, out);
  }
  /// A copy of the value with that index as it is now.
  nanobind::object value(size_t index, nanobind::handle owner);

 private:
  /// Memory outside of the method that its values may point to: an input that is used without a
  /// copy, or an output that is not planned.
  struct Lent {
    const std::byte* begin;
    size_t n_bytes;
    std::shared_ptr<void> owner;
    bool is_used;  // while take_back() looks
  };

  /// Calls f() with the mutex held and the GIL released, then returns lent memory to its owners, also
  /// where f() throws: calls that fail again and again keep nothing. Copies to `lent`, unless it is
  /// null, what is still lent.
  template <class F>
  void in_turn(const F& f, std::vector<Lent>* lent = nullptr);

  // To be called with the mutex held and the GIL released.
  void give(const std::shared_ptr<Inputs>& inputs);
  void lend(const void* begin, size_t n_bytes, std::shared_ptr<void> owner);
  /// Returns the lent memory that no value points to any more. To be destroyed with the GIL held,
  /// and without the mutex.
  std::vector<Lent> take_back();
  void provide_outputs();
  void run();
  std::vector<Output> results(bool clone);

  Module& module_;
  runtime::Method& method_;
  std::mutex& mutex_;
  std::string name_;
  std::shared_ptr<Inputs> inputs_ = std::make_shared<Inputs>();  // never null
  bool inputs_used_ = false;        // a run may have overwritten the method's copies of inputs_
  bool inputs_incomplete_ = false;  // the last attempt to set them failed midway
  std::vector<Lent> lent_;
};

/// ExecuTorchMethod: one method with memory of its own, apart from state that methods share.
class MethodHandle {
 public:
  MethodHandle(std::shared_ptr<LoadedProgram> program, const std::string& name)
      : program_(std::move(program)),
        arenas_(program_->state() == nullptr
                    ? nullptr
                    : std::make_unique<ArenasWithState>(*program_->state(),
                                                        program_->method_meta(name))),
        module_(program_->make_module()),
        runner_(*module_, program_->turns(mutex_), name, *program_, arenas_.get()) {}

  Runner& runner() { return runner_; }
  /// The origin of an instruction, or, with `operation`, of the operation that the delegate called
  /// there reports by that name.
  bool origin(size_t chain, size_t instruction, const std::string& operation,
              runtime::InstructionOrigin& out) const {
    if (operation.empty()) return runner_.origin(chain, instruction, out);
    const auto identity = program_->program().debug_identity();
    return identity.ok() &&
           identity->delegated(runner_.meta().name(), chain, instruction, operation.c_str(), out);
  }

 private:
  std::shared_ptr<LoadedProgram> program_;
  std::unique_ptr<ArenasWithState> arenas_;
  std::unique_ptr<Module> module_;
  std::mutex mutex_;
  Runner runner_;
};

/// ExecuTorchModule: all methods of a program, loaded as far as backends and data are there. They
/// share state if the program was planned that way.
class ModuleHandle {
 public:
  explicit ModuleHandle(std::shared_ptr<LoadedProgram> program);

  const LoadedProgram& program() const { return *program_; }

  /// Throws RuntimeError for an unknown name, and where the method cannot be loaded.
  Runner& runner(const std::string& name);

  /// Where gradients and parameters are among a training method's outputs. Throws RuntimeError for
  /// another method, and where its parameters cannot be trained.
  training::internal::JointOutputs joint_outputs(const std::string& name);

 private:
  Runner& load_runner(const std::string& name);

  std::shared_ptr<LoadedProgram> program_;
  std::unique_ptr<Module> module_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Runner>> runners_;
};

}  // namespace executorch::extension::pybindings
