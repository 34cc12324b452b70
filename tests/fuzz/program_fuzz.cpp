// Changes several fields of programs together and runs what results, in processes that may crash.
//
//   program_fuzz [options] FOLDER_OR_PROGRAM ...
//     --seconds N      for how long (60)
//     --mutants N      or how many
//     --operators RE   only seeds whose file name matches
//     --skip RE        none of those
//     --seed N         another session (1)
//     --from N         begins at that mutant
//     --workers N      processes (2)
//     --findings DIR   where the bytes of findings go (findings)
//     --json FILE      the tables, for programs
//     --slow S         CPU seconds of one mutant, beyond those of an honest program that plans as
//                      much memory and multiplies as much, from which on it is a finding (1)
//     --target NAME    the kernels of that instruction set (AVX2), instead of the best
//     --logs           the runtime's messages go to DIR/worker-N.log
//   program_fuzz --run NUMBER FINDING.pte    runs one mutant in this process
//   program_fuzz --write DIR --mutants N ... writes mutants as files, and runs none
//   program_fuzz --print PROGRAM.pte ...     the instructions as text
//
// Seeds whose names begin alike, up to "--", take turns as one operator. Exit status 1: findings.
#include <executorch/cpu/instruction_sets.h>
#include <nlohmann/json.hpp>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "findings.h"
#include "read_file.h"
#include "worker.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=2048:handle_abort=1:"
         "handle_sigill=1:detect_stack_use_after_return=0:quarantine_size_mb=16";
}
extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}
constexpr double kSlower = 6;
#else
constexpr double kSlower = 1;
#endif

namespace {

using namespace executorch::fuzz;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kChunk = 3000;  // mutants of one process
constexpr uint64_t kWallSeconds = 90;
constexpr uint32_t kMaxEndless = 6;  // of one operator, before it is left out

struct Options {
  double seconds = 60;
  uint64_t mutants = ~uint64_t{0}, from = 0, session = 1;
  size_t workers = 2;
  std::string operators = ".", skip, findings = "findings", json, run, write;
  bool prints = false;
  Limits limits{1 * kSlower, 45};
  std::vector<std::string> paths;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--print" || word == "--logs") {
      (word == "--print" ? options.prints : options.limits.logs) = true;
      continue;
    }
    if (word.rfind("--", 0) != 0) {
      options.paths.push_back(word);
      continue;
    }
    if (i + 1 == argc) return false;
    const char* next = argv[++i];
    const auto number = [next] { return std::strtoull(next, nullptr, 10); };
    if (word == "--seconds") {
      options.seconds = std::atof(next);
    } else if (word == "--mutants") {
      options.mutants = number();
      options.seconds = 1e9;
    } else if (word == "--operators") {
      options.operators = next;
    } else if (word == "--skip") {
      options.skip = next;
    } else if (word == "--seed") {
      options.session = number();
    } else if (word == "--from") {
      options.from = number();
    } else if (word == "--workers") {
      options.workers = std::max<size_t>(1, number());
    } else if (word == "--findings") {
      options.findings = next;
    } else if (word == "--json") {
      options.json = next;
    } else if (word == "--run") {
      options.run = next;
    } else if (word == "--write") {
      options.write = next;
    } else if (word == "--target") {
      if (!executorch::cpu::use_instruction_set_argument("program_fuzz", next)) return false;
    } else if (word == "--slow") {
      options.limits.slow_seconds = std::atof(next);
    } else {
      return false;
    }
  }
  return !options.paths.empty();
}

std::vector<std::string> programs_in(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".pte") files.push_back(entry.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Whether it has constants in a file beside it, which a mutant is run without.
bool is_incomplete(std::filesystem::path program) {
  return std::filesystem::exists(program.replace_extension(".ptd"));
}

// Seeds by what their names begin with. False if one is no program.
bool read_seeds(const Options& options, Groups& groups) {
  const std::regex wanted(options.operators), unwanted(options.skip);
  for (const std::string& file : programs_in(options.paths)) {
    const std::string name = std::filesystem::path(file).stem().string();
    const std::string group = name.substr(0, name.find("--"));
    if (!std::regex_search(group, wanted) ||
        (!options.skip.empty() && std::regex_search(group, unwanted)) ||
        (options.write.empty() && is_incomplete(file))) {
      continue;
    }
    if (groups.names.empty() || groups.names.back() != group) {
      groups.names.push_back(group);
      groups.seeds.emplace_back();
    }
    groups.seeds.back().emplace_back(name, read_file(file));
    if (!groups.seeds.back().back().ok()) {
      std::fprintf(stderr, "program_fuzz: %s is no program\n", file.c_str());
      return false;
    }
  }
  groups.is_muted.resize(groups.seeds.size());
  return !groups.seeds.empty() && groups.names.size() <= kMaxGroups;
}

/// A process and the mutants that it has still to run: index, index + stride, ... below end.
struct Slot {
  Shared* shared = nullptr;
  pid_t pid = 0;
  uint64_t end = 0;
  std::string log;
};

class Session {
 public:
  Session(const Options& options, Groups& groups)
      : options_(options), groups_(groups), findings_(options.findings), next_(options.from) {
    for (size_t i = 0; i < options.workers; ++i) {
      void* room =
          mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (room == MAP_FAILED) std::abort();
      slots_.push_back(
          {new (room) Shared(), 0, 0, options.findings + "/worker-" + std::to_string(i) + ".log"});
    }
  }

  int run() {
    while (true) {
      const bool is_over =
          seconds() > options_.seconds || next_ - options_.from >= options_.mutants;
      bool is_idle = true;
      for (Slot& slot : slots_) {
        if (slot.pid == 0 && !is_over) start(slot);
        watch(slot);
        is_idle &= slot.pid == 0;
      }
      draw(false);
      if (is_over && is_idle) break;
      usleep(10000);
    }
    draw(true);
    print_tables();
    if (!options_.json.empty()) write_json();
    return findings_.all().empty() && !tells_of_unloaded() ? 0 : 1;
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  void start(Slot& slot) {
    const uint64_t begin = next_;
    const uint64_t left = options_.mutants - (next_ - options_.from);
    next_ += std::min(kChunk, left);
    slot.end = next_;
    fork_at(slot, begin);
  }

  void fork_at(Slot& slot, uint64_t begin) {
    // Some run with threads: the pieces of loops differ.
    const size_t threads = begin / kChunk % 4 == 3 ? 3 : 1;
    slot.pid =
        start_worker(groups_, *slot.shared, begin, slot.end, 1, options_.limits, slot.log, threads);
  }

  void watch(Slot& slot) {
    if (slot.pid == 0) return;
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t ms = static_cast<uint64_t>(now.tv_sec) * 1000;
    if (ms > slot.shared->started_ms + kWallSeconds * 1000) {
      kill(slot.pid, SIGALRM);
      slot.shared->started_ms = ms;
    }
    int status = 0;
    if (waitpid(slot.pid, &status, WNOHANG) != slot.pid) return;
    slot.pid = 0;
    for (uint32_t i = 0; i < slot.shared->n_notes; ++i) {
      findings_.add_note(groups_, slot.shared->notes[i]);
    }
    uint64_t index = slot.shared->index;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      if (index == slot.end) --slot.shared->index;  // when the process ended: a leak
      findings_.add_crash(groups_, *slot.shared, status, slot.log);
      ++crashed_;
      if (slot.shared->signal == SIGVTALRM) mute_if_endless(groups_.mutant(index).group);
      ++index;
    }
    if (index < slot.end) fork_at(slot, index);
  }

  void mute_if_endless(size_t group) {
    if (++endless_[group] == kMaxEndless) {
      groups_.is_muted[group] = true;
      std::fprintf(stderr,
                   "program_fuzz: %s is left out from here on: %u of its mutants are endless\n",
                   groups_.names[group].c_str(), kMaxEndless);
    }
  }

  uint64_t count(size_t group, size_t outcome) const {
    uint64_t all = 0;
    for (const Slot& slot : slots_) all += slot.shared->counts[group][outcome];
    return all;
  }
  uint64_t count(size_t outcome) const {
    uint64_t all = 0;
    for (size_t g = 0; g < groups_.names.size(); ++g) all += count(g, outcome);
    return all;
  }
  uint64_t count() const { return count(0) + count(1) + count(2) + count(3) + crashed_; }

  void draw(bool last) {
    static Clock::time_point drawn;
    static const bool is_terminal = isatty(2) != 0;
    if (!is_terminal || (!last && Clock::now() - drawn < std::chrono::milliseconds(200))) return;
    drawn = Clock::now();
    const double all = static_cast<double>(std::max<uint64_t>(count(), 1));
    std::fprintf(stderr,
                 "\r\x1b[K%.0f s  %.0f mutants, %.0f a second  ran %.0f %%, failed %.0f %%, "
                 "refused %.0f %%  findings %zu%s",
                 seconds(), all, all / seconds(), 100.0 * static_cast<double>(count(3)) / all,
                 100.0 * static_cast<double>(count(2)) / all,
                 100.0 * static_cast<double>(count(0) + count(1)) / all, findings_.all().size(),
                 last ? "\n" : "");
  }

  void print_tables() const {
    const auto share = [&](size_t outcome) {
      return 100.0 * static_cast<double>(count(outcome)) /
             static_cast<double>(std::max<uint64_t>(count(), 1));
    };
    if (!findings_.all().empty()) {
      std::printf("%7s  %-40s %-24s %s\n", "count", "operator", "kind", "where");
    }
    for (const auto& [key, finding] : findings_.all()) {
      std::printf("%7llu  %-40s %-24s %s\n", static_cast<unsigned long long>(finding.count),
                  finding.op.c_str(), finding.kind.substr(0, 60).c_str(),
                  finding.seconds > 0 ? (std::to_string(finding.seconds) + " s").c_str()
                                      : finding.where.c_str());
    }
    std::printf(
        "program_fuzz: %llu mutants of %zu operators and models in %.1f s, %.0f a second: "
        "%.1f %% refused, %.1f %% not loaded, %.1f %% failed, %.1f %% ran; %zu classes of "
        "findings%s%s\n",
        static_cast<unsigned long long>(count()), groups_.names.size(), seconds(),
        static_cast<double>(count()) / seconds(), share(0), share(1), share(2), share(3),
        findings_.all().size(), findings_.all().empty() ? "" : ", in ",
        findings_.all().empty() ? "" : options_.findings.c_str());
  }

  // Of what is never loaded, such as an operator that is not linked, nothing was tried.
  bool tells_of_unloaded() const {
    constexpr uint64_t kEnough = 300;
    bool found = false;
    for (size_t g = 0; g < groups_.names.size(); ++g) {
      const uint64_t unloaded = count(g, 0) + count(g, 1);
      if (unloaded < kEnough || count(g, 2) + count(g, 3) > 0) continue;
      found = true;
      std::printf("program_fuzz: none of %llu mutants of %s could be loaded\n",
                  static_cast<unsigned long long>(unloaded), groups_.names[g].c_str());
    }
    return found;
  }

  void write_json() const {
    nlohmann::json out;
    out["mutants"] = count();
    out["seconds"] = seconds();
    out["next"] = next_;
    for (size_t k = 0; k < 4; ++k) out["outcomes"][kOutcomes[k]] = count(k);
    for (size_t g = 0; g < groups_.names.size(); ++g) {
      for (size_t k = 0; k < 4; ++k) out["operators"][groups_.names[g]][kOutcomes[k]] = count(g, k);
    }
    out["findings"] = nlohmann::json::array();
    for (const auto& [key, f] : findings_.all()) {
      out["findings"].push_back({{"kind", f.kind},
                                 {"operator", f.op},
                                 {"where", f.where},
                                 {"count", f.count},
                                 {"seconds", f.seconds},
                                 {"file", f.file},
                                 {"command", f.command}});
    }
    std::ofstream(options_.json) << out.dump(1) << "\n";
  }

  const Options& options_;
  Groups& groups_;
  std::vector<uint32_t> endless_ = std::vector<uint32_t>(groups_.names.size());
  Findings findings_;
  std::vector<Slot> slots_;
  Clock::time_point begin_ = Clock::now();
  uint64_t next_, crashed_ = 0;
};

int run_one(const Options& options) {
  Progress progress;
  const Bytes program = read_file(options.paths[0]);
  const Verdict verdict =
      run_here(program, std::strtoull(options.run.c_str(), nullptr, 10), progress);
  static const char* const kMisdeeds[] = {"", ", the program was written to",
                                          ", memory beside a block was written to", ", a leak"};
  std::printf("%s in %.3f CPU seconds%s\n", kOutcomes[static_cast<size_t>(verdict.outcome)],
              progress.cpu_seconds, kMisdeeds[static_cast<size_t>(verdict.misdeed)]);
  return verdict.misdeed != Misdeed::None ||
         progress.seconds_beyond_honest() > options.limits.slow_seconds;
}

int write_mutants(const Options& options, const Groups& groups) {
  for (uint64_t i = 0; i < options.mutants; ++i) {
    const Bytes bytes = groups.bytes(groups.mutant(options.from + i));
    const std::string name = options.write + "/" + std::to_string(options.from + i) + ".pte";
    std::ofstream out(name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    if (!out.good()) {
      std::fprintf(stderr, "program_fuzz: cannot write %s\n", name.c_str());
      return 2;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: program_fuzz [--seconds N] [--operators RE] FOLDER ...\n");
    return 2;
  }
  if (options.prints) {
    for (const std::string& path : options.paths) {
      std::printf("%s", describe(read_file(path)).c_str());
    }
    return 0;
  }
  if (!options.run.empty()) return run_one(options);
  Groups groups;
  groups.session = options.session;
  if (!read_seeds(options, groups)) {
    std::fprintf(stderr, "program_fuzz: no seeds\n");
    return 2;
  }
  if (!options.write.empty()) {
    return options.mutants == ~uint64_t{0} ? 2 : write_mutants(options, groups);
  }
  return Session(options, groups).run();
}
