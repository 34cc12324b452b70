#pragma once

#include <executorch/extension/module/module.h>

#include <string>
#include <vector>

namespace executorch::extension::command {

/// A program from the command line, and one of its methods.
struct ProgramChoice {
  std::string model_path;
  /// External data (.ptd), may be empty.
  std::string data_path;
  /// Empty: the first.
  std::string method;
};

/// The program of `choice`, mapped. Throws Failure, as all of this.
class LoadedProgram final : public Module {
 public:
  explicit LoadedProgram(const ProgramChoice& choice);

  /// The chosen method's name; one that does not exist is answered with the closest that does.
  const std::string& method_name() const { return method_name_; }
  /// Loads it, unless that was done. The tracer must outlive this.
  runtime::Method& load_chosen_method(runtime::EventTracer* tracer = nullptr);

 private:
  std::string method_name_;
};

/// As many threads for operators; 0: one per performant core.
void use_threads(uint32_t count);

}  // namespace executorch::extension::command
