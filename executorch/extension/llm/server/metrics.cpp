#include <executorch/extension/llm/server/metrics.h>

#include <cstdio>

namespace executorch::extension::llm::server {
namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.10g", value);
  return text;
}

std::string header(const char* name, const char* what, const char* type) {
  return std::string("# HELP executorch_") + name + " " + what + "\n# TYPE executorch_" + name +
         " " + type + "\n";
}

}  // namespace

void Metrics::Summary::add(double seconds) {
  const std::lock_guard<std::mutex> lock(mutex);
  ++n;
  sum += seconds;
}

void Metrics::count_response(int status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++responses_[status];
}

std::string Metrics::line(const char* name, const char* what, const char* type, double value) {
  return header(name, what, type) + "executorch_" + name + " " + number(value) + "\n";
}

std::string Metrics::summary(const char* name, const char* what, const Summary& of) {
  const std::lock_guard<std::mutex> lock(of.mutex);
  const std::string full = std::string("executorch_") + name;
  return header(name, what, "summary") + full + "_sum " + number(of.sum) + "\n" + full + "_count " +
         number(static_cast<double>(of.n)) + "\n";
}

std::string Metrics::counters() const {
  std::string out = header("responses_total", "Responses by status.", "counter");
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [status, n] : responses_) {
      out += "executorch_responses_total{status=\"" + std::to_string(status) + "\"} " +
             std::to_string(n) + "\n";
    }
  }
  struct Row {
    const char *name, *what;
    int64_t value;
  };
  for (const Row& row :
       {Row{"prompt_tokens_total", "Tokens of prompts.", n_prompt_tokens},
        Row{"cached_tokens_total", "Tokens of prompts that were not computed again.",
            n_cached_tokens},
        Row{"generated_tokens_total", "Tokens that were generated.", n_generated_tokens},
        Row{"cancelled_total", "Generations whose client went away.", n_cancelled}}) {
    out += line(row.name, row.what, "counter", static_cast<double>(row.value));
  }
  out += summary("first_token_seconds", "From a request to its first token.", first_token_);
  out += summary("generation_seconds", "From a request to its last token.", generation_);
  return out;
}

}  // namespace executorch::extension::llm::server
