#pragma once

#include <cstddef>
#include <cstdint>

#include "program_mutation.h"

namespace executorch::fuzz {

/// What became of a program.
enum class Outcome { Refused, NotLoaded, Failed, Ran };
constexpr const char* kOutcomes[] = {"refused", "not loaded", "failed", "ran"};

/// Where in a program a run is: written as it goes, and read by another process after a crash.
struct Place {
  static constexpr uint32_t kUnknown = 0xFFFFFFFF;
  uint32_t method = 0, chain = kUnknown, instruction = 0;
};

struct Progress {
  Place at;
  /// Of the whole run, and where most of it was spent.
  double cpu_seconds = 0, slowest_seconds = 0;
  Place slowest;
  /// Of the arenas of the methods that were executed, once for each execution.
  uint64_t planned_bytes = 0;
  /// That kernels told of: multiply-adds of matrix products and convolutions above all.
  uint64_t steps = 0;

  /// Seconds beyond what an honest program that plans as much memory and does as many steps may
  /// take: sorting, the longest work of an element, costs about 50 ns for each element of one byte;
  /// a step is about 1 ns of multiply-adds, and up to 2 ns where a convolution has few channels.
  double seconds_beyond_honest() const {
    return cpu_seconds - 50e-9 * static_cast<double>(planned_bytes) -
           2e-9 * static_cast<double>(steps);
  }
};

/// What a run may not do without a signal; `None` is well.
enum class Misdeed { None, ProgramWritten, MemoryWritten, Leak };

struct Verdict {
  Outcome outcome = Outcome::Refused;
  Misdeed misdeed = Misdeed::None;
};

/// Once per process: memory of the platform is guarded, loops run on `threads`, logs are dropped
/// unless they are wanted.
void prepare_runs(size_t threads, bool logs);

/// Does what a caller can do with a program: loads it and its methods, sets inputs, runs, reads
/// outputs, and again with other inputs. `seed` decides what the file leaves to the caller: whether
/// the program can be written to, fusion, temporary memory, shapes and bytes of inputs. Memory for
/// inputs, outputs and arenas is guarded.
Verdict run_guarded(const Bytes& program, uint64_t seed, Progress& progress);

}  // namespace executorch::fuzz
