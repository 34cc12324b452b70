// Loads and runs programs again and again, each time with another allocation failing: the first,
// the second, until a run has none left. Each must end with an error, or succeed without what it
// asked for, and the same objects must then work as if nothing had been. What aborts is named and
// counted.
//
//   allocation_failures [--program NAME] [--way NAME] [--at N] model.pte ...
//
// Data that a program has outside of it is beside it, in model.ptd. Each program is loaded and run
// in every way that is listed in kWays, in processes of their own: cold ones, in which nothing ran
// before, and a warm one. --at: only that allocation, in this process, with all messages.

#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "failing_heap.h"
#include "whole_run.h"

namespace {

// No attempt takes this long on any machine: it does not end.
constexpr unsigned kEndlessSeconds = 20;
// What a failure may leave allocated: parts of caches that are as long as the process.
constexpr long kMostLeft = 64 << 10;

/// What became of an attempt.
enum Outcome { kFailed, kSucceeded, kWrong, kNothingFailed, kOutcomes };

/// What processes tell their parent.
struct Tally {
  size_t number;  ///< of the attempt in progress
  size_t outcomes[kOutcomes];
  size_t aborts;
  size_t first_abort, first_wrong;
  long most_left;
};

void ignore_log(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t, const char*,
                size_t) {}

extern "C" int __lsan_do_recoverable_leak_check() __attribute__((weak));

/// The outputs of a run without failures, and whether a second run of the same objects gives them
/// again.
struct Reference {
  Outputs outputs;
  bool is_stateful = false;
};

Reference run_undisturbed(const Way& way, const ProgramFile& file) {
  const auto run = make_run(way, file);
  Outputs second;
  Reference reference;
  if (run->load_and_execute(reference.outputs) != executorch::runtime::Error::Ok ||
      run->load_and_execute(second) != executorch::runtime::Error::Ok) {
    std::fprintf(stderr, "%s cannot be run at all, %s\n", file.path.c_str(), way.name);
    std::_Exit(3);
  }
  reference.is_stateful = !are_close(second, reference.outputs);
  return reference;
}

/// The same objects, and new ones, must work afterwards.
bool works_now(WholeRun* run, const Way& way, const ProgramFile& file, const Reference& reference) {
  Outputs outputs;
  if (run != nullptr) {
    if (run->load_and_execute(outputs) != executorch::runtime::Error::Ok) return false;
    if (!reference.is_stateful && !are_close(outputs, reference.outputs)) return false;
  }
  outputs.clear();
  return make_run(way, file)->load_and_execute(outputs) == executorch::runtime::Error::Ok &&
         are_close(outputs, reference.outputs);
}

Outcome attempt(size_t number, const Way& way, const ProgramFile& file,
                const Reference& reference) {
  Outputs outputs;
  std::unique_ptr<WholeRun> run;
  auto error = executorch::runtime::Error::MemoryAllocationFailed;
  failing_heap::fail_at(number);
  try {
    run = make_run(way, file);
    error = run->load_and_execute(outputs);
  } catch (const std::bad_alloc&) {
    // Constructors have no other way.
  }
  const bool failed = failing_heap::has_failed();
  failing_heap::count();
  if (!failed) return kNothingFailed;
  const bool is_right =
      error != executorch::runtime::Error::Ok || are_close(outputs, reference.outputs);
  if (!is_right || !works_now(run.get(), way, file, reference)) return kWrong;
  return error == executorch::runtime::Error::Ok ? kSucceeded : kFailed;
}

void add(Tally& tally, Outcome outcome) {
  ++tally.outcomes[outcome];
  if (outcome == kWrong && tally.first_wrong == 0) tally.first_wrong = tally.number;
}

/// In a child: attempts from number `first` on, until nothing is left to fail or `count` are done.
void try_numbers(Tally& tally, size_t first, size_t count, const Way& way, const ProgramFile& file,
                 const Reference& reference) {
  for (tally.number = first; tally.number - first < count; ++tally.number) {
    ::alarm(kEndlessSeconds);
    const size_t before = failing_heap::live_bytes();
    const Outcome outcome = attempt(tally.number, way, file, reference);
    const long left = static_cast<long>(failing_heap::live_bytes() - before);
    if (count > 1) tally.most_left = std::max(tally.most_left, left);
    add(tally, outcome);
    if (outcome == kNothingFailed) break;
  }
  if (__lsan_do_recoverable_leak_check != nullptr && __lsan_do_recoverable_leak_check() != 0) {
    tally.most_left = std::max(tally.most_left, kMostLeft + 1);
  }
}

/// Calls f in a process of its own; whether that ended by itself.
template <class F>
bool in_child(const F& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    // What an abort has to say is said by --at.
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDERR_FILENO);
    f();
    std::fflush(nullptr);
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 3) std::exit(3);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void count_abort(Tally& tally) {
  ++tally.aborts;
  if (tally.first_abort == 0) tally.first_abort = tally.number;
}

/// Every allocation once, each in a process in which nothing ran before.
void try_cold(Tally& tally, const Way& way, const ProgramFile& file, const Reference& reference) {
  while (tally.outcomes[kNothingFailed] == 0) {
    const size_t next = tally.number + 1;
    if (!in_child([&] { try_numbers(tally, next, 1, way, file, reference); })) count_abort(tally);
    tally.number = next;
  }
}

/// Every allocation once, one after the other.
void try_warm(Tally& tally, const Way& way, const ProgramFile& file, const Reference& reference) {
  while (tally.outcomes[kNothingFailed] == 0) {
    const size_t next = tally.number + 1;
    const bool ended = in_child([&] {
      (void)run_undisturbed(way, file);
      try_numbers(tally, next, SIZE_MAX, way, file, reference);
    });
    if (!ended) count_abort(tally);
  }
}

template <class T>
T& shared() {
  void* const memory =
      ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *new (memory) T{};
}

/// What a process found out about a program.
struct Found {
  size_t count;
  bool is_stateful;
  double outputs[1 << 16];
};

Reference find_reference(const Way& way, const ProgramFile& file) {
  Found& found = shared<Found>();
  const bool ended = in_child([&] {
    const Reference reference = run_undisturbed(way, file);
    found.count = std::min(reference.outputs.size(), std::size(found.outputs));
    found.is_stateful = reference.is_stateful;
    std::copy_n(reference.outputs.begin(), found.count, found.outputs);
  });
  if (!ended) {
    std::fprintf(stderr, "%s aborts without any failure\n", file.path.c_str());
    std::exit(3);
  }
  Reference reference{{found.outputs, found.outputs + found.count}, found.is_stateful};
  ::munmap(&found, sizeof(found));
  return reference;
}

bool report(const ProgramFile& file, const Way& way, const char* heap, const Tally& tally) {
  const size_t done =
      tally.outcomes[kFailed] + tally.outcomes[kSucceeded] + tally.outcomes[kWrong] + tally.aborts;
  std::printf("%-20s %-8s %-5s %11zu %8zu %10zu %6zu %8zu %9ld", file.name().c_str(), way.name,
              heap, done, tally.outcomes[kFailed], tally.outcomes[kSucceeded],
              tally.outcomes[kWrong], tally.aborts, tally.most_left);
  if (tally.first_abort != 0) std::printf("  aborted at %zu", tally.first_abort);
  if (tally.first_wrong != 0) std::printf("  wrong after %zu", tally.first_wrong);
  std::printf("\n");
  std::fflush(stdout);
  return tally.aborts == 0 && tally.outcomes[kWrong] == 0 && tally.most_left <= kMostLeft;
}

bool try_program(const ProgramFile& file, const Way& way) {
  const Reference reference = find_reference(way, file);
  bool is_good = true;
  for (const bool is_cold : {true, false}) {
    Tally& tally = shared<Tally>();
    (is_cold ? try_cold : try_warm)(tally, way, file, reference);
    is_good = report(file, way, is_cold ? "cold" : "warm", tally) && is_good;
    ::munmap(&tally, sizeof(tally));
  }
  return is_good;
}

/// --at N.
int try_one(const ProgramFile& file, const Way& way, size_t number) {
  static constexpr const char* kNames[] = {"failed cleanly", "succeeded anyway",
                                           "does not work afterwards", "nothing failed"};
  const Reference reference = find_reference(way, file);
  const Outcome outcome = attempt(number, way, file, reference);
  std::printf("%s, %s, allocation %zu: %s\n", file.name().c_str(), way.name, number,
              kNames[outcome]);
  return outcome == kWrong;
}

}  // namespace

int main(int argc, char** argv) {
  executorch::runtime::runtime_init();
  std::vector<ProgramFile> files;
  std::string program, way_name;
  size_t at = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool is_option = argument.starts_with("--") && i + 1 < argc;
    if (!is_option) {
      files.push_back({argument});
    } else if (argument == "--program") {
      program = argv[++i];
    } else if (argument == "--way") {
      way_name = argv[++i];
    } else if (argument == "--at") {
      at = std::strtoull(argv[++i], nullptr, 10);
    }
  }
  if (at == 0) {
    executorch::runtime::register_pal(executorch::runtime::PalImpl::create(ignore_log, __FILE__));
    std::printf("%-20s %-8s %-5s %11s %8s %10s %6s %8s %9s\n", "program", "way", "heap",
                "allocations", "failed", "succeeded", "wrong", "aborted", "left");
    std::fflush(stdout);
  }
  bool is_good = !files.empty();
  for (const ProgramFile& file : files) {
    if (!program.empty() && file.name() != program) continue;
    for (const Way& way : kWays) {
      if (!way_name.empty() && way.name != way_name) continue;
      is_good = (at != 0 ? try_one(file, way, at) == 0 : try_program(file, way)) && is_good;
    }
  }
  return is_good ? 0 : 1;
}
