/// The functions of bundled_program.h with the parameters that release 0.1 had: an allocator, which
/// nothing needs any more, and the method's name, which the method knows.
#pragma once

#include <executorch/devtools/bundled_program/bundled_program.h>

namespace torch::executor::util {

using serialized_bundled_program =
    ::executorch::BUNDLED_PROGRAM_NAMESPACE::SerializedBundledProgram;

ET_NODISCARD inline ::executorch::runtime::Error LoadBundledInput(
    ::executorch::BUNDLED_PROGRAM_NAMESPACE::Method& method,
    serialized_bundled_program* bundled_program_ptr,
    ::executorch::runtime::MemoryAllocator* /*memory_allocator*/, const char* /*method_name*/,
    size_t testset_idx) {
  return ::executorch::BUNDLED_PROGRAM_NAMESPACE::load_bundled_input(method, bundled_program_ptr,
                                                                     testset_idx);
}

ET_NODISCARD inline ::executorch::runtime::Error VerifyResultWithBundledExpectedOutput(
    ::executorch::BUNDLED_PROGRAM_NAMESPACE::Method& method,
    serialized_bundled_program* bundled_program_ptr,
    ::executorch::runtime::MemoryAllocator* /*memory_allocator*/, const char* /*method_name*/,
    size_t testset_idx, double rtol = 1e-5, double atol = 1e-8) {
  return ::executorch::BUNDLED_PROGRAM_NAMESPACE::verify_method_outputs(method, bundled_program_ptr,
                                                                        testset_idx, rtol, atol);
}

using ::torch::executor::bundled_program::GetProgramData;

}  // namespace torch::executor::util
