#include <executorch/extension/threadpool/cpuinfo_utils.h>

#include <algorithm>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>

#include <fstream>
#include <string>
#endif

namespace executorch {
namespace extension {
namespace cpuinfo {
namespace {

#if defined(__linux__)

/// Highest clock of a core in kHz; 0 when the system does not say.
long max_frequency(int cpu) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                     "/cpufreq/cpuinfo_max_freq");
  long frequency = 0;
  return file >> frequency ? frequency : 0;
}

std::vector<long> usable_core_frequencies() {
  std::vector<long> frequencies;
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof(usable), &usable) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &usable)) {
        frequencies.push_back(max_frequency(cpu));
      }
    }
  }
  return frequencies;
}

#else

std::vector<long> usable_core_frequencies() {
  return {};
}

#endif

// Cores of one kind differ a little in their highest clock; little cores by much more.
constexpr double kSlowCore = 0.8;

uint32_t count_performant_cores() {
  const auto frequencies = usable_core_frequencies();
  if (frequencies.empty()) {
    return std::max(1u, std::thread::hardware_concurrency());
  }
  const long fastest = *std::max_element(frequencies.begin(), frequencies.end());
  return static_cast<uint32_t>(std::count_if(frequencies.begin(), frequencies.end(), [&](long f) {
    return static_cast<double>(f) >= kSlowCore * fastest;
  }));
}

}  // namespace

uint32_t get_num_performant_cores() {
  static const uint32_t count = count_performant_cores();
  return count;
}

}  // namespace cpuinfo
}  // namespace extension
}  // namespace executorch
