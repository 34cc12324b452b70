#include <executorch/extension/command/verbs.h>

#include <algorithm>
#include <iostream>

namespace executorch::extension::command {
namespace {

std::string bash(const std::vector<VerbSummary>& verbs) {
  std::string names, cases;
  for (const VerbSummary& verb : verbs) {
    names += (names.empty() ? "" : " ") + verb.name;
    std::string options;
    for (const auto& [name, what] : verb.options) options += (options.empty() ? "" : " ") + name;
    cases += "    " + verb.name + ") options='" + options + "' ;;\n";
  }
  return "_executorch() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} options=\n"
         "  if [ $COMP_CWORD -eq 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         names +
         "' -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n" +
         cases +
         "  esac\n"
         "  case $word in\n"
         "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _executorch executorch\n";
}

// Removes quotes and brackets and replaces colons, since these have a meaning in completion
// scripts.
std::string quoted(std::string text) {
  std::erase_if(text, [](char c) { return c == '\'' || c == '[' || c == ']'; });
  std::replace(text.begin(), text.end(), ':', ',');
  return text;
}

std::string zsh(const std::vector<VerbSummary>& verbs) {
  std::string names, cases;
  for (const VerbSummary& verb : verbs) {
    names += "    '" + verb.name + ":" + quoted(verb.what) + "'\n";
    cases += "    " + verb.name + ") _arguments";
    for (const auto& [name, what] : verb.options) cases += " '" + name + "[" + quoted(what) + "]'";
    cases += " '*:file:_files' ;;\n";
  }
  return "#compdef executorch\n_executorch() {\n  local -a verbs\n  verbs=(\n" + names +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n"
         "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $verb in\n" +
         cases + "  esac\n}\ncompdef _executorch executorch\n";
}

std::string fish(const std::vector<VerbSummary>& verbs) {
  std::string out;
  for (const VerbSummary& verb : verbs) {
    out += "complete -c executorch -n __fish_use_subcommand -a " + verb.name + " -d '" +
           quoted(verb.what) + "'\n";
    for (const auto& [name, what] : verb.options) {
      out += "complete -c executorch -n '__fish_seen_subcommand_from " + verb.name + "' -l " +
             name.substr(2) + " -d '" + quoted(what) + "'\n";
    }
  }
  return out;
}

}  // namespace

void print_completions(const std::string& shell, const std::vector<VerbSummary>& verbs) {
  std::cout << (shell == "bash" ? bash(verbs) : shell == "zsh" ? zsh(verbs) : fish(verbs));
}

}  // namespace executorch::extension::command
