#include <executorch/devtools/inspect/other_kind.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/loaded_program.h>
#include <executorch/extension/command/suggest.h>
#include <executorch/extension/threadpool/threadpool.h>

#include <algorithm>

namespace executorch::extension::command {

LoadedProgram::LoadedProgram(const ProgramChoice& choice)
    : Module(choice.model_path, choice.data_path, LoadMode::Mmap) {
  const runtime::Error error = Module::load();
  if (error != runtime::Error::Ok) {
    fail("cannot load " + choice.model_path +
         (choice.data_path.empty() ? "" : " with " + choice.data_path) + ": " +
         runtime::to_string(error) + devtools::other_kind(choice.model_path));
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < program()->num_methods(); ++i) {
    names.push_back(program()->get_method_name(i).get());
  }
  if (names.empty()) fail(choice.model_path + " has no method");
  method_name_ = choice.method.empty() ? names[0] : choice.method;
  if (std::find(names.begin(), names.end(), method_name_) == names.end()) {
    fail("no method '" + method_name_ + "' in " + choice.model_path +
         suggestion(method_name_, names));
  }
}

runtime::Method& LoadedProgram::load_chosen_method(runtime::EventTracer* tracer) {
  check(load_method(method_name_, nullptr, tracer), "load method '" + method_name_ + "'");
  return *methods_.at(method_name_).method;
}

void use_threads(uint32_t count) {
  if (count == 0) return;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  threadpool::get_threadpool()->_unsafe_reset_threadpool(count);
#pragma GCC diagnostic pop
}

}  // namespace executorch::extension::command
