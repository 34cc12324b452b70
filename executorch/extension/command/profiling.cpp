#include <executorch/cpu/machine_limits.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/devtools/inspect/output_file.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/profiling.h>
#include <executorch/extension/command/progress.h>
#include <executorch/kernels/optimized/fusion.h>
#include <executorch/runtime/platform/clock.h>

#include <algorithm>
#include <chrono>
#include <optional>

namespace executorch::extension::command {
namespace {

using devtools::Recorder;
using devtools::Run;
using runtime::Method;

/// Switches fusion on or off for its own lifetime.
class FusionScope {
 public:
  explicit FusionScope(bool enabled) : before_(optimized::set_fusion_enabled(enabled)) {}
  ~FusionScope() { optimized::set_fusion_enabled(before_); }

 private:
  bool before_;
};

devtools::Roofline measure_machine() {
  const cpu::MachineLimits& limits = cpu::machine_limits();
  return {limits.flops, limits.bytes_per_second, cpu::default_pool().thread_count(), limits.int8};
}

double time_run(Method& method, const SetInputs& set_inputs, const std::string& name) {
  const auto inputs = set_inputs(method);
  const auto start = std::chrono::steady_clock::now();
  check(method.execute(), "execute method '" + name + "'");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

devtools::MethodWork count_work(const ProgramChoice& choice, const SetInputs& set_inputs) {
  const FusionScope as_written(false);
  Recorder recorder;
  recorder.survey();
  recorder.start_run();
  LoadedProgram program(choice);
  Method& method = program.load_chosen_method(&recorder);
  // Only later calls are timed: an incremental program may have less to compute in them than in its
  // first call.
  if (method.method_meta().num_attributes() > 0) {
    time_run(method, set_inputs, program.method_name());
    recorder.start_run();
  }
  const auto inputs = set_inputs(method);
  auto work = devtools::count_work(method, &recorder);
  check(work.error(), "execute method '" + program.method_name() + "'");
  return std::move(*work);
}

uint32_t choose_runs(const ProfileOptions& options, double seconds) {
  return options.n_runs > 0 ? options.n_runs
                            : static_cast<uint32_t>(std::clamp(2.0 / seconds, 5.0, 100.0));
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

devtools::Profile profile_program(const ProgramChoice& choice, const ProfileOptions& options,
                                  const SetInputs& set_inputs) {
  Progress progress("profile");
  // First, since it finds what is wrong with the file or the inputs.
  const devtools::MethodWork work = count_work(choice, set_inputs);
  progress.show(0);
  const devtools::Roofline roofline = measure_machine();
  progress.show(0);

  const FusionScope fusion(options.fusion);
  Recorder recorder;
  LoadedProgram program(choice);
  Method& method = program.load_chosen_method(&recorder);
  std::optional<LoadedProgram> untraced_program;
  Method* untraced = nullptr;
  if (options.measure_overhead) untraced = &untraced_program.emplace(choice).load_chosen_method();

  size_t n_steps = 0;
  for (const auto& chain : method.instructions()) n_steps += chain.size();
  recorder.reserve(2 * n_steps + 64, 1024);
  double traced_seconds = 0;
  const auto run = [&] {
    recorder.start_run();
    traced_seconds = time_run(method, set_inputs, program.method_name());
    return recorder.run();
  };
  // The recorder grows if the first run's events do not fit into it.
  Run last = run();
  for (uint32_t i = 1; i < options.n_warm_up || (last.n_lost > 0 && i < 32); ++i) last = run();
  for (uint32_t i = 0; untraced != nullptr && i < options.n_warm_up; ++i) {
    time_run(*untraced, set_inputs, program.method_name());
  }

  std::vector<Run> runs;
  std::vector<double> with_tracer, without;
  const uint32_t n_runs = choose_runs(
      options, static_cast<double>(runtime::ticks_to_ns(last.end - last.start)) * 1e-9 + 1e-9);
  for (uint32_t i = 0; i < n_runs; ++i) {
    // The two alternate, and so does which of them is first.
    if (untraced != nullptr && i % 2 == 0) {
      without.push_back(time_run(*untraced, set_inputs, program.method_name()));
    }
    runs.push_back(run());
    with_tracer.push_back(traced_seconds);
    if (untraced != nullptr && i % 2 == 1) {
      without.push_back(time_run(*untraced, set_inputs, program.method_name()));
    }
    progress.show(static_cast<double>(i + 1) / n_runs);
  }

  devtools::Profile profile =
      devtools::make_profile({.path = choice.model_path,
                              .program = program.program().get(),
                              .method = &method,
                              .describe_rewritten = optimized::describe_fused,
                              .work = &work,
                              .roofline = roofline},
                             runs);
  profile.n_warm_up = std::max(1u, options.n_warm_up);
  profile.traced = median(std::move(with_tracer));
  profile.untraced = median(std::move(without));
  return profile;
}

void write_profile(const devtools::Profile& profile, const std::string& json_path,
                   const std::string& trace_path) {
  try {
    if (!json_path.empty()) {
      devtools::write_file(json_path, devtools::json_text(devtools::to_json(profile), 1) + "\n");
    }
    if (!trace_path.empty())
      devtools::write_file(trace_path, devtools::json_text(devtools::to_trace(profile)));
  } catch (const devtools::InspectError& error) {
    fail(error.message);
  }
}

}  // namespace executorch::extension::command
