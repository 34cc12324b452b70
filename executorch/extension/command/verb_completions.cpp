#include <executorch/extension/command/verbs.h>

#include <iostream>

namespace executorch::extension::command {
namespace {

struct Verb {
  std::string name, what;
  std::vector<std::pair<std::string, std::string>> options;
};

std::vector<Verb> list_verbs(CLI::App& app) {
  std::vector<Verb> verbs;
  for (const CLI::App* sub : app.get_subcommands({})) {
    Verb verb{sub->get_name(), sub->get_description(), {}};
    for (const CLI::Option* option : sub->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        verb.options.emplace_back("--" + name, option->get_description());
      }
    }
    verbs.push_back(verb);
  }
  return verbs;
}

std::string bash(const std::vector<Verb>& verbs) {
  std::string names, cases;
  for (const Verb& verb : verbs) {
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

// Single quotes and colons end what they stand in.
std::string quoted(std::string text) {
  std::erase_if(text, [](char c) { return c == '\'' || c == '[' || c == ']'; });
  std::replace(text.begin(), text.end(), ':', ',');
  return text;
}

std::string zsh(const std::vector<Verb>& verbs) {
  std::string names, cases;
  for (const Verb& verb : verbs) {
    names += "    '" + verb.name + ":" + quoted(verb.what) + "'\n";
    cases += "    " + verb.name + ") _arguments";
    for (const auto& [name, what] : verb.options) {
      cases += " '" + name + "[" + quoted(what) + "]'";
    }
    cases += " '*:file:_files' ;;\n";
  }
  return "#compdef executorch\n_executorch() {\n  local -a verbs\n  verbs=(\n" + names +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe verb verbs\n    return\n  fi\n"
         "  local verb=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $verb in\n" +
         cases + "  esac\n}\ncompdef _executorch executorch\n";
}

std::string fish(const std::vector<Verb>& verbs) {
  std::string out;
  for (const Verb& verb : verbs) {
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

void add_completions(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App& verb = add_verb(
      app, "completions", "Print what lets a shell complete this command",
      "source <(executorch completions bash)", [shell, &app] {
        const auto verbs = list_verbs(app);
        std::cout << (*shell == "bash" ? bash(verbs) : *shell == "zsh" ? zsh(verbs) : fish(verbs));
      });
  verb.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

}  // namespace executorch::extension::command
