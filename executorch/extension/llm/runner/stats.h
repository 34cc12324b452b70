#pragma once

#include <executorch/extension/llm/runner/util.h>  // for programs that include only this

#include <cinttypes>
#include <cstdint>
#include <string>

namespace executorch::extension::llm {

/// When the steps of loading a model and generating text ended, in milliseconds of time_in_ms(),
/// and what was done. 0: that did not happen.
struct Stats {
  const long SCALING_FACTOR_UNITS_PER_SECOND = 1000;
  long model_load_start_ms = 0;
  long model_load_end_ms = 0;
  long inference_start_ms = 0;
  long token_encode_end_ms = 0;
  long model_execution_start_ms = 0;
  long model_execution_end_ms = 0;
  long prompt_eval_end_ms = 0;
  long first_token_ms = 0;
  long inference_end_ms = 0;
  long aggregate_sampling_time_ms = 0;
  long aggregate_model_execution_time_ms = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_generated_tokens = 0;
  /// -1: there is no other device, or nothing is known of it.
  uint64_t gpu_total_bytes = static_cast<uint64_t>(-1);
  uint64_t gpu_free_before_load_bytes = static_cast<uint64_t>(-1);
  uint64_t gpu_free_after_load_bytes = static_cast<uint64_t>(-1);
  uint64_t gpu_free_after_generate_bytes = static_cast<uint64_t>(-1);
  double gpu_peak_usage_mb = -1.0;

  void on_sampling_begin();
  void on_sampling_end();
  void on_model_execution_begin();
  void on_model_execution_end();
  /// Resets the numbers of a generation; with `all_stats`, also the times of loading the model.
  void reset(bool all_stats = false);

 private:
  long sampling_start_ms_ = 0;
};

std::string stats_to_json_string(const Stats& stats);
/// Logs rates and times.
void print_report(const Stats& stats);

}  // namespace executorch::extension::llm

namespace executorch::llm {
using ::executorch::extension::llm::print_report;
using ::executorch::extension::llm::Stats;
}  // namespace executorch::llm
