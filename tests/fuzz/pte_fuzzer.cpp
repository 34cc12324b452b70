// libFuzzer's entry: pte_fuzzer CORPUS_FOLDER
#include <cstdlib>
#include <cstring>

#include "damaged_program.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  void* copy = nullptr;
  if (posix_memalign(&copy, 16, size + 1) != 0) {
    return 0;
  }
  if (size > 0) {
    std::memcpy(copy, data, size);
  }
  (void)use_program(static_cast<const uint8_t*>(copy), size, 2000);
  std::free(copy);
  return 0;
}
