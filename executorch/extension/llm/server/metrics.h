#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace executorch::extension::llm::server {

/// What the server has done, in Prometheus' text format.
class Metrics {
 public:
  std::atomic<int64_t> n_prompt_tokens{0}, n_cached_tokens{0}, n_generated_tokens{0};
  std::atomic<int64_t> n_cancelled{0}, n_running{0};

  void count_response(int status);
  void add_first_token(double seconds) { first_token_.add(seconds); }
  void add_generation(double seconds) { generation_.add(seconds); }

  /// Values of the moment, by name and description.
  struct Gauge {
    const char *name, *what;
    double value;
  };
  template <size_t n>
  std::string text(const std::array<Gauge, n>& gauges) const {
    std::string out = counters();
    for (const Gauge& gauge : gauges) out += line(gauge.name, gauge.what, "gauge", gauge.value);
    return out;
  }

 private:
  /// A count and a sum.
  struct Summary {
    void add(double seconds);
    mutable std::mutex mutex;
    int64_t n = 0;
    double sum = 0;
  };
  static std::string line(const char* name, const char* what, const char* type, double value);
  static std::string summary(const char* name, const char* what, const Summary& of);
  std::string counters() const;

  mutable std::mutex mutex_;
  std::map<int, int64_t> responses_;  // by status
  Summary first_token_, generation_;
};

}  // namespace executorch::extension::llm::server
