#include <executorch/extension/llm/runner/stats.h>
#include <executorch/extension/llm/runner/util.h>
#include <executorch/runtime/platform/log.h>

#include <sstream>

namespace executorch::extension::llm {
namespace {

double seconds(const Stats& stats, long from, long to) {
  return static_cast<double>(to - from) /
         static_cast<double>(stats.SCALING_FACTOR_UNITS_PER_SECOND);
}

/// 0 for no time at all.
double rate(int64_t tokens, double in_seconds) {
  return in_seconds > 0 ? static_cast<double>(tokens) / in_seconds : 0;
}

}  // namespace

void Stats::on_sampling_begin() {
  sampling_start_ms_ = time_in_ms();
}

void Stats::on_sampling_end() {
  aggregate_sampling_time_ms += time_in_ms() - sampling_start_ms_;
}

void Stats::on_model_execution_begin() {
  model_execution_start_ms = time_in_ms();
}

void Stats::on_model_execution_end() {
  model_execution_end_ms = time_in_ms();
  aggregate_model_execution_time_ms += model_execution_end_ms - model_execution_start_ms;
}

void Stats::reset(bool all_stats) {
  if (all_stats) model_load_start_ms = model_load_end_ms = 0;
  inference_start_ms = token_encode_end_ms = model_execution_start_ms = model_execution_end_ms = 0;
  prompt_eval_end_ms = first_token_ms = inference_end_ms = 0;
  aggregate_sampling_time_ms = aggregate_model_execution_time_ms = 0;
  num_prompt_tokens = num_generated_tokens = 0;
}

std::string stats_to_json_string(const Stats& stats) {
  std::ostringstream out;
  out << "{\"prompt_tokens\":" << stats.num_prompt_tokens
      << ",\"generated_tokens\":" << stats.num_generated_tokens
      << ",\"model_load_start_ms\":" << stats.model_load_start_ms
      << ",\"model_load_end_ms\":" << stats.model_load_end_ms
      << ",\"inference_start_ms\":" << stats.inference_start_ms
      << ",\"inference_end_ms\":" << stats.inference_end_ms
      << ",\"model_execution_start_ms\":" << stats.model_execution_start_ms
      << ",\"model_execution_end_ms\":" << stats.model_execution_end_ms
      << ",\"prompt_eval_end_ms\":" << stats.prompt_eval_end_ms
      << ",\"first_token_ms\":" << stats.first_token_ms
      << ",\"aggregate_sampling_time_ms\":" << stats.aggregate_sampling_time_ms
      << ",\"aggregate_model_execution_time_ms\":" << stats.aggregate_model_execution_time_ms;
  const auto memory = [&](const char* name, uint64_t bytes) {
    if (bytes != static_cast<uint64_t>(-1)) out << ",\"" << name << "\":" << bytes;
  };
  memory("gpu_total_bytes", stats.gpu_total_bytes);
  memory("gpu_free_before_load_bytes", stats.gpu_free_before_load_bytes);
  memory("gpu_free_after_load_bytes", stats.gpu_free_after_load_bytes);
  memory("gpu_free_after_generate_bytes", stats.gpu_free_after_generate_bytes);
  if (stats.gpu_peak_usage_mb >= 0) out << ",\"gpu_peak_usage_mb\":" << stats.gpu_peak_usage_mb;
  out << ",\"SCALING_FACTOR_UNITS_PER_SECOND\":" << stats.SCALING_FACTOR_UNITS_PER_SECOND << "}";
  return out.str();
}

void print_report(const Stats& stats) {
  std::fprintf(stderr, "PyTorchObserver %s\n", stats_to_json_string(stats).c_str());
  const double prefill = seconds(stats, stats.inference_start_ms, stats.prompt_eval_end_ms);
  const double decode = seconds(stats, stats.prompt_eval_end_ms, stats.inference_end_ms);
  ET_LOG(Info, "prompt tokens: %" PRId64 ", generated tokens: %" PRId64, stats.num_prompt_tokens,
         stats.num_generated_tokens);
  ET_LOG(Info, "model load: %f s",
         seconds(stats, stats.model_load_start_ms, stats.model_load_end_ms));
  ET_LOG(Info, "prompt: %f s, %f tokens/s", prefill, rate(stats.num_prompt_tokens, prefill));
  ET_LOG(Info, "time to first token: %f s",
         seconds(stats, stats.inference_start_ms, stats.first_token_ms));
  ET_LOG(Info, "generation: %f s, %f tokens/s", decode, rate(stats.num_generated_tokens, decode));
  ET_LOG(Info, "sampling: %f s", seconds(stats, 0, stats.aggregate_sampling_time_ms));
}

}  // namespace executorch::extension::llm
