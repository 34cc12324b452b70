#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/verbs.h>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace executorch::extension::command {

void run_python(const PythonVerb& verb) {
  const char* const chosen = std::getenv("EXECUTORCH_PYTHON");
  const std::string interpreter = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  std::vector<std::string> words = {interpreter, "-m", "executorch.extension.command.python_verb",
                                    verb.module};
  words.insert(words.end(), verb.arguments.begin(), verb.arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(interpreter.c_str(), pointers.data());
  fail("cannot start " + interpreter + ", which runs " + verb.module + ": " + std::strerror(errno) +
       "; EXECUTORCH_PYTHON says which Python to take");
}

}  // namespace executorch::extension::command
