#include "findings.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

extern "C" char __executable_start;

namespace executorch::fuzz {
namespace {

std::string read_text(const std::string& name) {
  std::ifstream in(name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The functions that a worker was in, innermost first, without those of the system.
std::vector<std::string> name_frames(const Shared& shared) {
  std::string command = "addr2line -f -C -e /proc/" + std::to_string(getpid()) + "/exe";
  for (uint32_t i = 0; i < shared.n_frames; ++i) {
    const auto address = reinterpret_cast<uintptr_t>(shared.frames[i]);
    const auto start = reinterpret_cast<uintptr_t>(&__executable_start);
    char text[32];
    // The address after a call may be in the next function.
    std::snprintf(text, sizeof(text), " %#zx",
                  static_cast<size_t>(address - start - (i > 0 ? 1 : 0)));
    if (address > start && address - start < size_t{1} << 30) command += text;
  }
  std::vector<std::string> names;
  if (std::FILE* out = popen((command + " 2>/dev/null").c_str(), "r")) {
    char line[2048];
    for (bool is_name = true; std::fgets(line, sizeof(line), out) != nullptr; is_name = !is_name) {
      if (is_name) {
        names.emplace_back(line, std::strcspn(line, "\n"));
      }
    }
    pclose(out);
  }
  return names;
}

// Functions of the system, and those that abort for others.
bool is_plumbing(const std::string& name) {
  static const char* const kWords[] = {
      "record_signal", "??",        "abort",       "raise",        "asan",
      "ubsan",         "sanitizer", "interceptor", "std::__",      "memcpy",
      "memset",        "memmove",   "_start",      "libasan",      "libubsan",
      "etensor::",     "EValue::",  "elementSize", "operator new", "Batch::"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

// Without arguments, which tell nothing more.
std::string short_name(std::string name) {
  for (const char* prefix : {"executorch::", "torch::executor::", "(anonymous namespace)::"}) {
    for (size_t at; (at = name.find(prefix)) != std::string::npos;) {
      name.erase(at, std::strlen(prefix));
    }
  }
  return name.substr(0, 100);
}

// "#3 0x... in function file:line" of a sanitizer's report.
std::vector<std::string> reported_frames(const std::string& log) {
  std::vector<std::string> names;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line) && names.size() < kMaxFrames;) {
    const size_t at = line.find(" in ");
    if (line.find("    #") == 0 && at != std::string::npos) {
      std::string name = line.substr(at + 4);
      const size_t file = name.find(" /");
      names.push_back(file == std::string::npos ? name : name.substr(0, file) + name.substr(file));
    }
  }
  return names;
}

std::string summary_of(const std::string& log) {
  for (const char* word : {"runtime error: ", "ERROR: "}) {
    if (const size_t at = log.find(word); at != std::string::npos) {
      const size_t begin = at + std::strlen(word);
      std::string line = log.substr(begin, log.find('\n', begin) - begin);
      return line.substr(0, line.find(" on address")).substr(0, 90);
    }
  }
  return "";
}

const char* signal_name(int number) {
  switch (number) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGABRT:
      return "SIGABRT";
    case SIGFPE:
      return "SIGFPE";
    case SIGBUS:
      return "SIGBUS";
    case SIGILL:
      return "SIGILL";
    case SIGTRAP:
      return "SIGTRAP";
    case SIGKILL:
      return "SIGKILL";
    case SIGVTALRM:
    case SIGALRM:
      return "endless";
    default:
      return "signal";
  }
}

std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

}  // namespace

Findings::Findings(std::string folder) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
}

uint64_t Findings::total() const {
  uint64_t all = 0;
  for (const auto& [key, finding] : all_) all += finding.count;
  return all;
}

void Findings::add_crash(const Groups& groups, const Shared& shared, int status,
                         const std::string& log_name) {
  const std::string log = read_text(log_name);
  Finding finding;
  if (shared.signal != 0) {
    finding.kind = signal_name(shared.signal);
    finding.frames = name_frames(shared);
  } else {
    finding.kind = summary_of(log);
    finding.frames = reported_frames(log);
  }
  if (finding.kind.empty()) {
    finding.kind = WIFSIGNALED(status) ? signal_name(WTERMSIG(status))
                                       : "exit " + std::to_string(WEXITSTATUS(status));
  }
  add(groups, shared.index, std::move(finding), shared.progress.at, log);
}

void Findings::add_note(const Groups& groups, const Note& note) {
  Finding finding;
  finding.kind = note.kind == Kind::Slow             ? "slow"
                 : note.kind == Kind::ProgramWritten ? "program written"
                 : note.kind == Kind::Leak           ? "leak"
                                                     : "memory written";
  finding.seconds = note.seconds;
  add(groups, note.index, std::move(finding), note.place, "");
}

void Findings::add(const Groups& groups, uint64_t index, Finding finding, const Place& place,
                   const std::string& log) {
  const Mutant mutant = groups.mutant(index);
  const Bytes program = groups.bytes(mutant);
  finding.op = operator_at(program, place.method, place.chain, place.instruction);
  if (finding.op.empty()) finding.op = groups.names[mutant.group];
  for (const std::string& frame : finding.frames) {
    if (!is_plumbing(frame)) {
      finding.where = short_name(frame);
      break;
    }
  }
  const bool is_timed = finding.kind == "endless" || finding.kind == "slow";
  Finding& kept = all_[finding.op + "|" + finding.kind.substr(0, 24) +
                       (is_timed ? std::string() : "|" + finding.where)];
  const uint64_t count = kept.count + 1;
  const double seconds = std::max(kept.seconds, finding.seconds);
  if (count == 1) {
    std::string name = finding.op + "-" + finding.kind.substr(0, 16) + "-" + std::to_string(index);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ' ' || c == '/' || c == ':'; }, '_');
    finding.file = folder_ + "/" + name + ".pte";
    finding.command = own_path() + " --run " + std::to_string(mutant.run) + " " + finding.file;
    std::ofstream(finding.file, std::ios::binary)
        .write(reinterpret_cast<const char*>(program.data()),
               static_cast<std::streamsize>(program.size()));
    std::ofstream text(folder_ + "/" + name + ".txt");
    text << finding.kind << " in " << finding.op << "\n" << finding.command << "\n";
    text << "seed " << groups.seeds[mutant.group][mutant.seed].name() << ", mutant " << index
         << "\n\n"
         << describe(program) << "\n";
    for (const std::string& frame : finding.frames) {
      text << "  " << frame << "\n";
    }
    text << "\n" << log;
    kept = std::move(finding);
  }
  kept.count = count;
  kept.seconds = seconds;
}

}  // namespace executorch::fuzz
