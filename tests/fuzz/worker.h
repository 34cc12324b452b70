#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "guarded_run.h"

/// Mutants run in processes of their own, which may crash.
namespace executorch::fuzz {

/// Mutant number i of a session is made of one seed, and run, by the numbers that follow from i.
struct Mutant {
  size_t group;  // of the seeds of one operator
  size_t seed;
  uint64_t mutation;
  uint64_t run;
};

struct Groups {
  std::vector<std::string> names;
  std::vector<std::vector<Seed>> seeds;
  uint64_t session = 1;
  /// Groups whose turns are left out: they cost too much time.
  std::vector<bool> is_muted;

  /// The groups take turns.
  Mutant mutant(uint64_t index) const;
  Bytes bytes(const Mutant& mutant) const;
};

enum class Kind : uint32_t { Signal, Exit, Endless, Slow, ProgramWritten, MemoryWritten, Leak };

/// What a worker says about one mutant.
struct Note {
  Kind kind;
  uint64_t index;
  Place place;
  double seconds;
};

constexpr size_t kMaxNotes = 32, kMaxFrames = 40, kMaxGroups = 2048;

/// In memory that a worker shares with the process that started it.
struct Shared {
  std::atomic<uint64_t> index;  // of the mutant that runs
  std::atomic<uint64_t> started_ms;
  Progress progress;
  uint32_t n_notes;
  Note notes[kMaxNotes];
  int signal;
  uint32_t n_frames;
  void* frames[kMaxFrames];
  uint32_t counts[kMaxGroups][4];
};

struct Limits {
  double slow_seconds = 1;
  double endless_seconds = 45;
  bool logs = false;
};

/// Starts a process for mutants begin, begin + stride, ... below end; `log` takes what it prints.
pid_t start_worker(const Groups& groups, Shared& shared, uint64_t begin, uint64_t end,
                   uint64_t stride, const Limits& limits, const std::string& log, size_t threads);

/// One run in this process, for debuggers.
Verdict run_here(const Bytes& program, uint64_t run, Progress& progress);

}  // namespace executorch::fuzz
