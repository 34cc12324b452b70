#pragma once

#include <executorch/extension/module/module.h>

#include <string>

namespace executorch::extension::command {

/// A program from the command line, and one of its methods.
struct ProgramChoice {
  std::string model_path;
  /// External data (.ptd), may be empty.
  std::string data_path;
  /// Empty: the first.
  std::string method;
};

/// The program of `choice`, memory-mapped. All functions throw Failure.
class LoadedProgram final : public Module {
 public:
  explicit LoadedProgram(const ProgramChoice& choice);

  /// The name of the chosen method. The constructor throws Failure, with the closest existing name,
  /// if there is no such method.
  const std::string& method_name() const { return method_name_; }
  /// Loads the chosen method, unless it is loaded. The tracer must outlive this.
  runtime::Method& load_chosen_method(runtime::EventTracer* tracer = nullptr);

 private:
  std::string method_name_;
};

/// Sets the number of threads for operators; 0: one per performant core.
void use_threads(uint32_t count);

}  // namespace executorch::extension::command
