#include <executorch/cpu/cores.h>

#include <algorithm>
#include <thread>

#if defined(__linux__)
#include <sched.h>

#include <cstdio>
#endif

namespace executorch::cpu {
namespace {

#if defined(__linux__)

// Cores of one kind differ a little in their highest clock; little cores by much more.
constexpr double kSlowCore = 0.8;

// Highest clock of a core in kHz; 0 when the system does not say.
long max_frequency(int core) {
  char path[80];
  std::snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", core);
  long frequency = 0;
  if (std::FILE* file = std::fopen(path, "r")) {
    if (std::fscanf(file, "%ld", &frequency) != 1) frequency = 0;
    std::fclose(file);
  }
  return frequency;
}

uint32_t count_performant_cores() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof(usable), &usable) != 0) return 0;
  long frequencies[CPU_SETSIZE];
  int n = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &usable)) frequencies[n++] = max_frequency(core);
  }
  const double slowest =
      kSlowCore * static_cast<double>(*std::max_element(frequencies, frequencies + n));
  return static_cast<uint32_t>(std::count_if(frequencies, frequencies + n, [&](long frequency) {
    return static_cast<double>(frequency) >= slowest;
  }));
}

#else

uint32_t count_performant_cores() {
  return std::thread::hardware_concurrency();
}

#endif

}  // namespace

uint32_t performant_cores() {
  static const uint32_t count = std::max(1u, count_performant_cores());
  return count;
}

}  // namespace executorch::cpu
