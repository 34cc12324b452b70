// Searches for bytes that crash what reads them, guided by the branches that bytes reach
// (libFuzzer, of Clang):
//
//   guided_fuzz --reader=NAME [libFuzzer's options] CORPUS_FOLDER ...
//
// NAME is one of text_targets.h; or "program", which is loaded and run; or "file", a program or
// external data that the tools describe. What reaches a new branch is added to the first folder;
// what crashes is written to crash-HASH, which as an argument repeats it.
#include <executorch/devtools/inspect/diff.h>
#include <executorch/devtools/inspect/strip.h>
#include <executorch/devtools/memory/memory_plan.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "damaged_program.h"
#include "text_mutation.h"
#include "text_targets.h"
#include "tries.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace executorch::fuzz {

void fail(const char* what) {
  std::fprintf(stderr, "finding: %s\n", what);
  std::abort();
}

namespace {

// More than any of the seeds needs, and few enough that an endless loop costs little.
constexpr size_t kMaxInstructions = 2000;

void ignore_log(et_timestamp_t, et_pal_log_level_t, const char*, const char*, size_t, const char*,
                size_t) {}

bool use_loaded(const std::string& bytes, Random&) {
  void* copy = nullptr;
  if (posix_memalign(&copy, 16, bytes.size() + 1) != 0) return false;
  std::memcpy(copy, bytes.data(), bytes.size());
  const ::Outcome outcome =
      use_program(static_cast<const uint8_t*>(copy), bytes.size(), kMaxInstructions);
  std::free(copy);
  return outcome == ::Outcome::Ran;
}

/// What `executorch inspect`, `diff`, `strip` and `memory` do.
bool use_file(const std::string& bytes, Random& random) {
  using namespace executorch::devtools;
  const std::string path = "/dev/shm/guided_fuzz-" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << bytes;
  bool taken = false;
  try {
    const Json file = describe_file(path);
    (void)to_text(file);
    (void)json_text(file);
    taken = true;
    for (const Json& method : file.value("methods", Json::array())) {
      const MemoryPlan plan = read_memory_plan(method);
      (void)to_text(plan);
      (void)json_text(to_json(plan));
      for (const MemoryArena& arena : plan.arenas) (void)to_svg(plan, arena, random() % 2 == 0);
    }
    if (!diff_programs(path, path)["equal"]) fail("a program differs from itself");
    (void)strip_program(path, path);
    (void)describe_file(path);
  } catch (const InspectError& error) {
    if (error.message.empty()) fail("a file is refused without a reason");
  }
  std::remove(path.c_str());
  return taken;
}

constexpr TextTarget kBinaries[] = {{"program", use_loaded}, {"file", use_file}};
const TextTarget* reader = nullptr;
bool is_text = false;

}  // namespace
}  // namespace executorch::fuzz

extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=1024:handle_abort=1:"
         "detect_stack_use_after_return=0:quarantine_size_mb=16";
}
extern "C" const char* __ubsan_default_options() {
  return "print_stacktrace=1:halt_on_error=1";
}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace executorch::fuzz;
  executorch::runtime::runtime_init();
  executorch::runtime::register_pal(
      executorch::runtime::PalImpl::create(ignore_log, "guided_fuzz.cpp"));
  constexpr std::string_view kOption = "--reader=";
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (word.substr(0, kOption.size()) != kOption) continue;
    const std::string name(word.substr(kOption.size()));
    reader = find_text_target(name);
    is_text = reader != nullptr;
    for (const TextTarget& binary : kBinaries) {
      if (name == binary.name) reader = &binary;
    }
    if (reader != nullptr) return 0;
  }
  std::fprintf(stderr, "usage: guided_fuzz --reader=NAME [-max_total_time=SECONDS] FOLDER ...\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace executorch::fuzz;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Random random(std::hash<std::string>()(bytes));
  (void)reader->use(bytes, random);
  return 0;
}

/// Of text, every other time the structure is changed, such as a value of JSON.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  using namespace executorch::fuzz;
  if (!is_text || seed % 2 == 0) return LLVMFuzzerMutate(data, size, max_size);
  Random random(seed);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  bytes = mutate_text(bytes, {bytes}, random);
  const size_t count = std::min(bytes.size(), max_size);
  std::copy_n(bytes.begin(), count, data);
  return count;
}
