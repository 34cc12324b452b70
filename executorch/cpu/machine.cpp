#include <executorch/cpu/machine.h>

#include <algorithm>
#include <thread>

#if defined(__linux__)
#include <sched.h>

#include <cstdio>
#include <cstring>
#endif

namespace executorch::cpu {
namespace {

#if defined(__linux__)

// Cores of one kind differ a little in their highest frequency; little cores are far slower. A core
// below this fraction of the fastest core's frequency is not counted.
constexpr double kSlowCore = 0.8;

// Reads a value from one of the system's files about a core, as the scanf format `format` says.
// Returns false if the file is missing or holds something else.
template <class T>
bool read(int core, const char* file, const char* format, T* value) {
  char path[96];
  std::snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", core, file);
  std::FILE* const from = std::fopen(path, "r");
  if (from == nullptr) return false;
  const bool found = std::fscanf(from, format, value) == 1;
  std::fclose(from);
  return found;
}

// Counts the usable cores in a list of cores such as 0-3,8; at least 1.
int count_usable(const char* list, const cpu_set_t& usable) {
  int n = 0, first = 0, length = 0;
  while (std::sscanf(list, "%d%n", &first, &length) == 1) {
    list += length;
    int last = first;
    if (std::sscanf(list, "-%d%n", &last, &length) == 1) list += length;
    for (int core = first; core <= last && core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &usable)) ++n;
    }
    if (*list == ',') ++list;
  }
  return std::max(n, 1);
}

void ask_for_caches(int core, const cpu_set_t& usable, Machine& machine) {
  for (int index = 0; index < 8; ++index) {
    const auto ask = [&](const char* what, const char* format, auto* value) {
      char file[48];
      std::snprintf(file, sizeof(file), "cache/index%d/%s", index, what);
      return read(core, file, format, value);
    };
    int level = 0, ways = 0;
    long kilobytes = 0;
    char type[16] = {}, list[256] = {};
    if (!ask("level", "%d", &level) || !ask("type", "%15s", type)) return;
    if (!ask("size", "%ldK", &kilobytes) || kilobytes <= 0) continue;
    if (std::strcmp(type, "Instruction") == 0) continue;
    const int64_t bytes = int64_t{kilobytes} << 10;
    const int64_t sharers = ask("shared_cpu_list", "%255s", list) ? count_usable(list, usable) : 1;
    if (level == 1) {
      machine.l1 = bytes / sharers;
      if (ask("ways_of_associativity", "%d", &ways) && ways > 0)
        machine.l1_set_stride = bytes / ways;
    }
    if (level == 2) machine.l2 = bytes / sharers;
    if (level == 3) machine.l3 = bytes;
  }
}

Machine ask() {
  Machine machine;
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (::sched_getaffinity(0, sizeof(usable), &usable) != 0) return machine;
  int cores[CPU_SETSIZE], n = 0;
  long frequencies[CPU_SETSIZE] = {};  // the highest, in kHz; 0 when the system does not say
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable)) continue;
    read(core, "cpufreq/cpuinfo_max_freq", "%ld", &frequencies[n]);
    cores[n++] = core;
  }
  const long* const fastest = std::max_element(frequencies, frequencies + n);
  const double slowest = kSlowCore * static_cast<double>(*fastest);
  const auto fast = std::count_if(frequencies, frequencies + n, [&](long frequency) {
    return static_cast<double>(frequency) >= slowest;
  });
  machine.cores = static_cast<uint32_t>(std::max<int64_t>(fast, 1));
  if (n > 0) ask_for_caches(cores[fastest - frequencies], usable, machine);
  return machine;
}

#else

Machine ask() {
  Machine machine;
  machine.cores = std::max(1u, std::thread::hardware_concurrency());
  return machine;
}

#endif

}  // namespace

const Machine& machine() {
  static const Machine asked = ask();
  return asked;
}

}  // namespace executorch::cpu
