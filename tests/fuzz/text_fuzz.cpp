// Damages tokenizer files, patterns, constraints, requests and what HTTP clients send, and gives
// them to what reads them.
//
//   text_fuzz [options] FOLDER
//     --seconds N     for how long
//     --rounds N      or how many
//     --seed N        of the first; what is found is reproduced by its own and --rounds 1
//     --only NAME     that folder alone
//     --keep-going    goes on behind findings and lists those that differ
//     --print         writes the bytes of each to stdout
//
// FOLDER has a folder of seeds for each reader (text_targets.h). What takes more than a second of
// processor time, or more memory than a process may have, is a finding, too.
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "text_targets.h"
#include "tries.h"

#ifdef __SANITIZE_ADDRESS__
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=0:max_allocation_size_mb=2048:handle_abort=1:"
         "detect_stack_use_after_return=0:quarantine_size_mb=16";
}
extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}
constexpr double kSlowSeconds = 20;
#else
constexpr double kSlowSeconds = 1;
#endif

namespace {

using namespace executorch::fuzz;

constexpr rlim_t kMostMemory = rlim_t{2} << 30;

struct Seeds {
  const TextTarget* target;
  std::vector<std::string> files;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Seeds> read_seeds(const std::string& folder, const std::string& only) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Seeds> seeds;
  for (const auto& file : files) {
    const std::string name = file.parent_path().filename().string();
    const TextTarget* const target = find_text_target(name);
    if (target == nullptr || (!only.empty() && only != name)) continue;
    if (seeds.empty() || seeds.back().target != target) seeds.push_back({target, {}});
    seeds.back().files.push_back(read_file(file));
  }
  return seeds;
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void ignore_log(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t, const char*,
                size_t) {}

bool all_are_taken(const std::vector<Seeds>& seeds) {
  for (const Seeds& each : seeds) {
    for (size_t i = 0; i < each.files.size(); ++i) {
      // Some uses ask for more than others, such as small limits.
      Random random(1);
      bool taken = false;
      for (int k = 0; k < 8; ++k) taken = each.target->use(each.files[i], random) || taken;
      if (taken) continue;
      std::fprintf(stderr, "text_fuzz: %s number %zu is refused undamaged\n", each.target->name, i);
      return false;
    }
  }
  return !seeds.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  std::string folder, only;
  bool prints = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--keep-going" || word == "--print") {
      (word == "--print" ? prints : plan.keep_going) = true;
    } else if (word.rfind("--", 0) == 0 && i + 1 < argc) {
      const char* const next = argv[++i];
      if (word == "--seconds") plan.seconds = std::atof(next);
      if (word == "--seed") plan.seed = std::strtoull(next, nullptr, 10);
      if (word == "--rounds") plan.rounds = std::strtoull(next, nullptr, 10);
      if (word == "--only") only = next;
    } else {
      folder = word;
    }
  }
  if (folder.empty() || (plan.seconds == 0 && plan.rounds == ~uint64_t{0})) {
    std::fprintf(stderr,
                 "usage: text_fuzz [--seconds N] [--seed N] [--rounds N] [--only NAME] "
                 "[--keep-going] [--print] FOLDER\n");
    return 2;
  }
  executorch::runtime::runtime_init();
  executorch::runtime::register_pal(
      executorch::runtime::PalImpl::create(ignore_log, "text_fuzz.cpp"));
#ifndef __SANITIZE_ADDRESS__
  const rlimit limit{kMostMemory, kMostMemory};
  (void)setrlimit(RLIMIT_AS, &limit);
#endif
  const std::vector<Seeds> seeds = read_seeds(folder, only);
  if (!all_are_taken(seeds)) return 1;
  const Outcome outcome = run(plan, [&](uint64_t seed) {
    Random random(seed);
    const Seeds& group = seeds[random() % seeds.size()];
    const std::string bytes =
        mutate_text(group.files[random() % group.files.size()], group.files, random);
    if (prints) std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    const double before = processor_seconds();
    const bool taken = group.target->use(bytes, random);
    if (processor_seconds() - before > kSlowSeconds) return Verdict::TooSlow;
    return taken ? Verdict::Taken : Verdict::Refused;
  });
  std::printf("text_fuzz: %zu readers, %llu variations: %llu refused, %llu taken; %llu findings\n",
              seeds.size(), static_cast<unsigned long long>(outcome.tried),
              static_cast<unsigned long long>(outcome.refused),
              static_cast<unsigned long long>(outcome.taken),
              static_cast<unsigned long long>(outcome.findings));
  return outcome.findings == 0 ? 0 : 1;
}
