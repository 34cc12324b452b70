// Load a program by memory map, up to the first inference; print one line of JSON.

#include <executorch/extension/module/module.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

using executorch::extension::Module;
using executorch::runtime::Error;

namespace {

// Bytes of this process that are in memory now.
long resident_bytes() {
  long total = 0;
  long resident = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: load_time model.pte\n");
    return 2;
  }
  const long before = resident_bytes();
  const auto start = std::chrono::steady_clock::now();
  Module module(argv[1], Module::LoadMode::Mmap);
  if (module.load_forward() != Error::Ok) return 1;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("{\"seconds\": %.6f, \"resident_bytes\": %ld}\n", seconds.count(),
              resident_bytes() - before);
}
