// Loads and runs XNNPACK payloads that were damaged, or made to be extreme, as program_fuzz does
// with whole programs. The payloads are found in programs, with their named data.
//
//   delegate_fuzz [options] model.pte ...
//     --seconds N     for how long
//     --rounds N      or how many
//     --seed N        of the first; what is found is reproduced by its own and --rounds 1
//     --target NAME   the kernels of that instruction set (AVX2), instead of the best
//     --keep-going    goes on behind findings and lists those that differ
//     --together      only such as change several fields together
//
// Arguments and scratch memory end before pages that cannot be touched, payloads and named data
// cannot be written. What takes more than a second of processor time is a finding, too.
#include <executorch/backends/xnnpack/runtime/payload_mutation.h>
#include <executorch/backends/xnnpack/runtime/run_on_anything.h>
#include <executorch/cpu/instruction_sets.h>
#include <executorch/cpu/threadpool.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/runtime/executor/program.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "read_file.h"
#include "tries.h"

#ifdef __SANITIZE_ADDRESS__
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=2048:handle_abort=1:"
         "detect_stack_use_after_return=0:quarantine_size_mb=16";
}
extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}
#endif

namespace {

using namespace executorch::backends::xnnpack::testing;
using executorch::extension::BufferDataLoader;
using executorch::runtime::Error;
using executorch::runtime::NamedDataMap;
using executorch::runtime::Program;

// Larger values and longer work are tried now and then.
constexpr int64_t kMaxBytes = 1 << 18, kMostBytes = 64 << 20;
constexpr double kSlowSeconds = kAddressesAreWatched ? 20 : 1;

uint64_t checksum(const uint8_t* data, size_t n) {
  uint64_t sum = n;
  for (size_t i = 0; i < n; ++i) sum = sum * 0x100000001B3 + data[i];
  return sum;
}

/// A program that stays loaded, for its named data, which nobody may write.
struct Source {
  Bytes bytes;
  GuardedBytes copy;
  std::unique_ptr<BufferDataLoader> loader;
  std::optional<Program> program;
  const NamedDataMap* data = nullptr;

  explicit Source(const char* name) : bytes(executorch::fuzz::read_file(name)) {
    // It begins as aligned as a file that is mapped.
    bytes.resize((bytes.size() + 63) / 64 * 64);
    if (bytes.empty()) return;
    copy = GuardedBytes(bytes.size());
    std::memcpy(copy.get(), bytes.data(), bytes.size());
    copy.forbid_writing();
    loader = std::make_unique<BufferDataLoader>(copy.get(), bytes.size());
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

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Reads and runs it in memory of exactly its size.
Error use_bytes(const Bytes& bytes, const NamedDataMap* data, Random& random) {
  GuardedBytes copy(bytes.size());
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  copy.forbid_writing();
  const uint64_t before = kAddressesAreWatched ? checksum(copy.get(), bytes.size()) : 0;
  const int64_t most = random() % 1024 == 0 ? kMostBytes : kMaxBytes;
  std::optional<executorch::cpu::UsePool> serial;
  if (random() % 16 != 0) serial.emplace(nullptr);
  const Error error = use_payload(copy.get(), bytes.size(), data, most, random);
  if (kAddressesAreWatched && checksum(copy.get(), bytes.size()) != before) {
    executorch::fuzz::fail("the payload was written");
  }
  return error;
}

Bytes vary(const std::vector<Payload>& payloads, const NamedDataMap*& data, bool only_together,
           Random& random) {
  const Payload& payload = payloads[random() % payloads.size()];
  data = payload.data;
  switch (only_together ? 4 + random() % 4 : random() % 8) {
    case 0:
      return mutate_bytes(payload.bytes, random);
    case 1:
    case 2:
      return mutate_fields(payload.bytes, random);
    case 3:
      return mutate_fields(generate_payload(random), random);
    case 4:
    case 5:
      return mutate_together(payload.bytes, random);
    case 6:
      return mutate_together(generate_payload(random), random);
    default:
      return generate_payload(random);
  }
}

void ignore_log(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t, const char*,
                size_t) {}

}  // namespace

int main(int argc, char** argv) {
  executorch::fuzz::Plan plan;
  bool only_together = false;
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<Payload> payloads;
  executorch::runtime::runtime_init();
  executorch::runtime::register_pal(
      executorch::runtime::PalImpl::create(ignore_log, "delegate_fuzz.cpp"));
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--keep-going" || word == "--together") {
      (word == "--together" ? only_together : plan.keep_going) = true;
    } else if (word.rfind("--", 0) == 0 && i + 1 < argc) {
      const char* number = argv[++i];
      if (word == "--target" &&
          !executorch::cpu::use_instruction_set_argument("delegate_fuzz", number)) {
        return 2;
      }
      if (word == "--seconds") plan.seconds = std::atof(number);
      if (word == "--seed") plan.seed = std::strtoull(number, nullptr, 10);
      if (word == "--rounds") plan.rounds = std::strtoull(number, nullptr, 10);
    } else {
      sources.push_back(std::make_unique<Source>(argv[i]));
      find_payloads(*sources.back(), payloads);
    }
  }
  for (const Payload& payload : payloads) {
    Random random(0);
    if (use_bytes(payload.bytes, payload.data, random) != Error::Ok) {
      std::fprintf(stderr, "delegate_fuzz: a payload is refused undamaged\n");
      return 1;
    }
  }
  if (payloads.empty() || (plan.seconds == 0 && plan.rounds == ~uint64_t{0})) {
    std::fprintf(stderr,
                 "usage: delegate_fuzz [--seconds N] [--seed N] [--rounds N] "
                 "[--keep-going] [--together] model.pte ...\n");
    return 2;
  }
  const auto outcome = executorch::fuzz::run(plan, [&](uint64_t seed) {
    using executorch::fuzz::Verdict;
    Random random(seed);
    const NamedDataMap* data = nullptr;
    Bytes bytes = vary(payloads, data, only_together, random);
    // A payload that begins as aligned as in a file, or anywhere.
    if (random() % 2 == 0) bytes.resize((bytes.size() + 63) / 64 * 64);
    const double before = processor_seconds();
    const Error error = use_bytes(bytes, data, random);
    if (processor_seconds() - before > kSlowSeconds) return Verdict::TooSlow;
    return error == Error::Ok ? Verdict::Taken : Verdict::Refused;
  });
  std::printf(
      "delegate_fuzz: %zu payloads, %llu variations: %llu refused, %llu taken; %llu findings\n",
      payloads.size(), static_cast<unsigned long long>(outcome.tried),
      static_cast<unsigned long long>(outcome.refused),
      static_cast<unsigned long long>(outcome.taken),
      static_cast<unsigned long long>(outcome.findings));
  return outcome.findings == 0 ? 0 : 1;
}
