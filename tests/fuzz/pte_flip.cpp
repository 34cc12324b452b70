// Loads and runs every small damage of the given programs, then random larger ones while time is
// left. A crash, a leak or undefined behaviour is the sanitizers' to report, so build with
// EXECUTORCH_USE_SANITIZER; on a crash the bytes are in pte_flip.crash, and also when one variation
// does not end. All small damages take as long as they take: about 5 for each byte of a program.
//
//   pte_flip [--seconds N] model.pte ...

#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "damaged_program.h"
#include "read_file.h"

namespace {

using Clock = std::chrono::steady_clock;

// More than any of the programs needs, and few enough that an endless loop costs little.
constexpr size_t kMaxInstructions = 2000;
constexpr double kHangSeconds = 5;
// No variation takes this long on any machine: it does not end.
constexpr unsigned kEndlessSeconds = 120;
constexpr const char* kCrashFile = "pte_flip.crash";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Tally {
  size_t outcomes[4] = {};
  size_t hangs = 0;
  size_t total() const { return outcomes[0] + outcomes[1] + outcomes[2] + outcomes[3]; }
};

void ignore_log(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t, const char*,
                size_t) {}

void write_file(const char* name, const std::vector<uint8_t>& bytes) {
  if (std::FILE* out = std::fopen(name, "wb")) {
    std::fwrite(bytes.data(), 1, bytes.size(), out);
    std::fclose(out);
  }
}

const std::vector<uint8_t>* current = nullptr;
extern "C" void __asan_set_death_callback(void (*callback)()) __attribute__((weak));
void save_current() {
  if (current != nullptr) {
    write_file(kCrashFile, *current);
    std::fprintf(stderr, "pte_flip: the bytes are in %s\n", kCrashFile);
  }
}

void stop_endless(int) {
  std::fprintf(stderr, "pte_flip: a variation did not end within %u s\n", kEndlessSeconds);
  save_current();
  _exit(1);
}

// The copy has exactly the bytes' size, so that a read past the end is seen.
void try_bytes(const std::vector<uint8_t>& bytes, Tally& tally) {
  current = &bytes;
  void* copy = nullptr;
  if (posix_memalign(&copy, 16, bytes.empty() ? 1 : bytes.size()) != 0) std::abort();
  if (!bytes.empty()) std::memcpy(copy, bytes.data(), bytes.size());
  const auto start = Clock::now();
  alarm(kEndlessSeconds);
  const Outcome outcome =
      use_program(static_cast<const uint8_t*>(copy), bytes.size(), kMaxInstructions);
  alarm(0);
  if (seconds_since(start) > kHangSeconds) {
    write_file("pte_flip.hang", bytes);
    ++tally.hangs;
  }
  // A mapped file could not be written to.
  if (!bytes.empty() && std::memcmp(copy, bytes.data(), bytes.size()) != 0) {
    std::fprintf(stderr, "pte_flip: the program's own bytes were written to\n");
    save_current();
    std::abort();
  }
  std::free(copy);
  ++tally.outcomes[static_cast<size_t>(outcome)];
  current = nullptr;
}

void try_truncations(const std::vector<uint8_t>& seed, Tally& tally) {
  for (size_t size = 0; size < seed.size(); ++size) {
    try_bytes({seed.begin(), seed.begin() + static_cast<std::ptrdiff_t>(size)}, tally);
  }
}

void try_bytes_one_by_one(const std::vector<uint8_t>& seed, Tally& tally) {
  std::vector<uint8_t> bytes = seed;
  for (size_t i = 0; i < seed.size(); ++i) {
    const uint8_t was = seed[i];
    for (const int value : {0x00, 0xff, was ^ 1, was ^ 0x80, was + 1}) {
      bytes[i] = static_cast<uint8_t>(value);
      if (bytes[i] != was) try_bytes(bytes, tally);
    }
    bytes[i] = was;
  }
}

// Some bytes at random, or words that index and size fields might hold.
void try_random(const std::vector<uint8_t>& seed, std::mt19937_64& random, Tally& tally) {
  std::vector<uint8_t> bytes = seed;
  const size_t count = 1 + random() % 8;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = random() % bytes.size();
    if (random() % 2 == 0 && at + 4 <= bytes.size()) {
      const uint32_t words[] = {
          0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, static_cast<uint32_t>(random() % 64)};
      std::memcpy(&bytes[at / 4 * 4 + 4 <= bytes.size() ? at / 4 * 4 : at], &words[random() % 7],
                  4);
    } else {
      bytes[at] = static_cast<uint8_t>(random());
    }
  }
  try_bytes(bytes, tally);
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0;
  std::vector<const char*> names;
  std::vector<std::vector<uint8_t>> seeds;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
      seconds = std::atof(argv[++i]);
      continue;
    }
    names.push_back(argv[i]);
    seeds.push_back(executorch::fuzz::read_file(argv[i]));
    if (seeds.back().empty()) {
      std::fprintf(stderr, "pte_flip: cannot read %s\n", argv[i]);
      return 2;
    }
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "usage: pte_flip [--seconds N] model.pte ...\n");
    return 2;
  }
  executorch::runtime::register_pal(
      executorch::runtime::PalImpl::create(ignore_log, "pte_flip.cpp"));
  executorch::runtime::runtime_init();
  if (__asan_set_death_callback != nullptr) __asan_set_death_callback(save_current);
  signal(SIGALRM, stop_endless);
  const auto start = Clock::now();
  Tally tally;
  for (const auto& seed : seeds) {
    try_bytes(seed, tally);
    if (tally.outcomes[static_cast<size_t>(Outcome::Refused)] > 0) {
      std::fprintf(stderr, "pte_flip: a program is refused undamaged\n");
      return 1;
    }
  }
  for (size_t i = 0; i < seeds.size(); ++i) {
    const auto begin = Clock::now();
    const size_t before = tally.total();
    try_truncations(seeds[i], tally);
    try_bytes_one_by_one(seeds[i], tally);
    std::fprintf(stderr, "pte_flip: %s, %zu bytes: %zu variations in %.1f s\n", names[i],
                 seeds[i].size(), tally.total() - before, seconds_since(begin));
  }
  std::mt19937_64 random(1);
  while (seconds_since(start) < seconds) try_random(seeds[random() % seeds.size()], random, tally);
  std::printf(
      "pte_flip: %zu programs, %zu variations: %zu refused, %zu not loaded, %zu failed, %zu ran; "
      "%zu hangs\n",
      seeds.size(), tally.total(), tally.outcomes[0], tally.outcomes[1], tally.outcomes[2],
      tally.outcomes[3], tally.hangs);
  return tally.hangs == 0 ? 0 : 1;
}
