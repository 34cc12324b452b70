#pragma once

#include <executorch/devtools/profiler/profile.h>
#include <executorch/extension/command/loaded_program.h>

#include <cstdint>
#include <functional>

namespace executorch::extension::command {

struct ProfileOptions {
  /// 0: as many as fit into about two seconds, 5 to 100.
  uint32_t n_runs = 0;
  uint32_t n_warm_up = 3;
  /// Whether to run the method alternately with and without a tracer, to measure what tracing
  /// costs.
  bool measure_overhead = false;
  bool fusion = true;
};

/// Gives a method its inputs; called before each run, whose inputs may be overwritten. What it
/// returns lives until the run has ended.
using SetInputs = std::function<std::shared_ptr<void>(runtime::Method&)>;

/// Loads a program, runs one of its methods and says where the time went: the machine's limits are
/// measured first, then the work is counted in one run as the file is written, then the method runs
/// as always under a Recorder. Throws Failure.
devtools::Profile profile_program(const ProgramChoice& choice, const ProfileOptions& options,
                                  const SetInputs& set_inputs);

/// Writes JSON and a trace to files, where the paths are not empty. Throws Failure.
void write_profile(const devtools::Profile& profile, const std::string& json_path,
                   const std::string& trace_path);

}  // namespace executorch::extension::command
