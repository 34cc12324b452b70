// Loads and runs XNNPACK payloads whose bytes and fields were damaged, as pte_flip does with whole
// programs. The payloads are found in programs, with their named data. What a sanitizer reports is
// reproduced by the seed that is printed before it: `--seed N --rounds 1`.
//
//   delegate_fuzz [--seconds N] [--seed N] [--rounds N] model.pte ...

#include <executorch/backends/xnnpack/runtime/payload_mutation.h>
#include <executorch/backends/xnnpack/runtime/run_on_anything.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

namespace {

using namespace executorch::backends::xnnpack::testing;
using executorch::extension::BufferDataLoader;
using executorch::runtime::Error;
using executorch::runtime::NamedDataMap;
using executorch::runtime::Program;

constexpr int64_t kMaxBytes = 4 << 20;
// No variation takes this long on any machine: it does not end.
constexpr unsigned kEndlessSeconds = 60;

uint64_t current_seed = 0;

void report_seed() {
  std::fprintf(stderr, "delegate_fuzz: it was --seed %llu --rounds 1\n",
               static_cast<unsigned long long>(current_seed));
}
extern "C" void __asan_set_death_callback(void (*callback)()) __attribute__((weak));

void stop(int signal) {
  std::fprintf(stderr, "delegate_fuzz: %s\n", signal == SIGALRM ? "does not end" : "aborted");
  report_seed();
  _exit(1);
}

Bytes read_file(const char* name) {
  Bytes bytes;
  if (std::FILE* in = std::fopen(name, "rb")) {
    uint8_t block[4096];
    for (size_t n; (n = std::fread(block, 1, sizeof(block), in)) > 0;) {
      bytes.insert(bytes.end(), block, block + n);
    }
    std::fclose(in);
  }
  return bytes;
}

/// A program that stays loaded, for its named data.
struct Source {
  Bytes bytes;
  std::unique_ptr<uint8_t, void (*)(void*)> aligned{nullptr, std::free};
  std::unique_ptr<BufferDataLoader> loader;
  std::optional<Program> program;
  const NamedDataMap* data = nullptr;

  explicit Source(const char* name) : bytes(read_file(name)) {
    void* copy = nullptr;
    if (bytes.empty() || posix_memalign(&copy, 64, bytes.size()) != 0) return;
    std::memcpy(copy, bytes.data(), bytes.size());
    aligned.reset(static_cast<uint8_t*>(copy));
    loader = std::make_unique<BufferDataLoader>(copy, bytes.size());
    auto loaded = Program::load(loader.get());
    if (!loaded.ok()) return;
    program.emplace(std::move(*loaded));
    if (auto map = program->get_named_data_map(); map.ok()) data = *map;
  }
};

struct Payload {
  Bytes bytes;
  const NamedDataMap* data;
};

/// Payloads say themselves where they begin and end.
void find_payloads(const Source& source, std::vector<Payload>& found) {
  const Bytes& all = source.bytes;
  constexpr char kMagic[] = {0, 0, 0, 0, 'X', 'H', '0', '0'};
  for (size_t at = 0; at + 32 <= all.size(); at += 16) {
    if (std::memcmp(&all[at], kMagic, sizeof(kMagic)) != 0) continue;
    uint32_t constants = 0;
    uint64_t constant_bytes = 0;
    std::memcpy(&constants, &all[at + 18], sizeof(constants));
    std::memcpy(&constant_bytes, &all[at + 22], sizeof(constant_bytes));
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at);
    found.push_back(
        {{begin, begin + static_cast<std::ptrdiff_t>(constants + constant_bytes)}, source.data});
  }
}

bool try_bytes(const Bytes& bytes, const NamedDataMap* data) {
  // A copy of exactly that size, so that a read past the end is seen.
  const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  alarm(kEndlessSeconds);
  const Error error = use_payload(copy.get(), bytes.size(), data, kMaxBytes);
  alarm(0);
  return error == Error::Ok;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void ignore_log(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t, const char*,
                size_t) {}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0;
  uint64_t seed = 1, rounds = ~uint64_t{0};
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<Payload> payloads;
  executorch::runtime::runtime_init();
  executorch::runtime::register_pal(
      executorch::runtime::PalImpl::create(ignore_log, "delegate_fuzz.cpp"));
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) == 0 && i + 1 < argc) {
      const char* number = argv[++i];
      if (word == "--seconds") seconds = std::atof(number);
      if (word == "--seed") seed = std::strtoull(number, nullptr, 10);
      if (word == "--rounds") rounds = std::strtoull(number, nullptr, 10);
      continue;
    }
    sources.push_back(std::make_unique<Source>(argv[i]));
    find_payloads(*sources.back(), payloads);
  }
  for (const Payload& payload : payloads) {
    if (!try_bytes(payload.bytes, payload.data)) {
      std::fprintf(stderr, "delegate_fuzz: a payload is refused undamaged\n");
      return 1;
    }
  }
  if (payloads.empty() || (seconds == 0 && rounds == ~uint64_t{0})) {
    std::fprintf(stderr,
                 "usage: delegate_fuzz [--seconds N] [--seed N] [--rounds N] model.pte ...\n");
    return 2;
  }
  if (__asan_set_death_callback != nullptr) __asan_set_death_callback(report_seed);
  signal(SIGALRM, stop);
  signal(SIGABRT, stop);
  size_t tried = 0, taken = 0;
  const auto start = std::chrono::steady_clock::now();
  for (; tried < rounds && (seconds == 0 || seconds_since(start) < seconds); ++tried) {
    current_seed = seed + tried;
    Random random(current_seed);
    const Payload& payload = payloads[random() % payloads.size()];
    const Bytes bytes = random() % 4 == 0 ? mutate_bytes(payload.bytes, random)
                                          : mutate_fields(payload.bytes, random);
    taken += try_bytes(bytes, payload.data) ? 1 : 0;
  }
  std::printf("delegate_fuzz: %zu payloads, %zu variations: %zu refused, %zu taken, in %.0f s\n",
              payloads.size(), tried, tried - taken, taken, seconds_since(start));
  return 0;
}
