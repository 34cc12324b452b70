#pragma once

#include <cstddef>

#include <executorch/runtime/executor/method.h>

#ifdef USE_ATEN_LIB
#define BUNDLED_PROGRAM_NAMESPACE bundled_program::aten
#else
#define BUNDLED_PROGRAM_NAMESPACE bundled_program
#endif

/// Programs bundled with test cases: a .bpte file holds a .pte file, inputs for its methods and the
/// outputs that are expected.
///
///   get_program_data(file, file_size, &program, &program_size);   // verifies the whole file
///   ... load `program` and one of its methods ...
///   load_bundled_input(method, file, 0);
///   method.execute();
///   verify_method_outputs(method, file, 0);
///
/// A file given without its length must have passed get_program_data().
namespace executorch::BUNDLED_PROGRAM_NAMESPACE {

using SerializedBundledProgram = const void;
using ::executorch::ET_RUNTIME_NAMESPACE::Method;

/// Sets the method's inputs to those of test case `testset_idx` of the suite that has its name.
/// Tensors that the method does not copy are read from the file, which must stay. Later events of
/// the method's tracer belong to that input.
///   InvalidArgument   no suite of that name, or no such test case
///   NotSupported      not a bundled program, or the inputs do not fit the method
ET_NODISCARD runtime::Error load_bundled_input(Method& method,
                                               SerializedBundledProgram* bundled_program_ptr,
                                               size_t testset_idx);

/// Differences of outputs of type Float from what is expected; 0 where there are none.
struct ErrorStats {
  runtime::Error status;
  double mean_abs_error;
  double max_abs_error;
  /// |a - b| / max(|a|, |b|, 1e-8)
  double mean_relative_error;
  double max_relative_error;
};

/// Compares the outputs of the last run. The status is as for verify_method_outputs(), but Ok
/// however large differences are, and InvalidArgument for what is no bundled program.
ErrorStats compute_method_output_error_stats(Method& method,
                                             SerializedBundledProgram* bundled_program_ptr,
                                             size_t testset_idx);

/// Whether the outputs of the last run are those expected: of the same type, shape and dim order;
/// elements of Float, Double, Half and BFloat16 with |a - b| <= atol + rtol * |a|, a the method's,
/// equal infinities or both NaN; others of the same bytes. The log says what differs first.
///   NotFound          an output differs
///   InvalidArgument   no suite of that name, or no such test case
///   NotSupported      not a bundled program, or no outputs are expected
ET_NODISCARD runtime::Error verify_method_outputs(Method& method,
                                                  SerializedBundledProgram* bundled_program_ptr,
                                                  size_t testset_idx, double rtol = 1e-5,
                                                  double atol = 1e-8);

/// The program within `file_data`. Verifies everything else in the file.
///   NotSupported      not a bundled program
///   InvalidArgument   a damaged one, or without a program
ET_NODISCARD runtime::Error get_program_data(void* file_data, size_t file_data_len,
                                             const void** out_program_data,
                                             size_t* out_program_data_len);

/// Whether the file is, by its identifier, a bundled program.
bool is_bundled_program(void* file_data, size_t file_data_len);
/// The same; reads the first 8 bytes.
ET_DEPRECATED bool is_bundled_program(void* file_data);

}  // namespace executorch::BUNDLED_PROGRAM_NAMESPACE

// Spellings of earlier releases.
namespace torch::executor::bundled_program {

using serialized_bundled_program =
    ::executorch::BUNDLED_PROGRAM_NAMESPACE::SerializedBundledProgram;

ET_NODISCARD inline ::executorch::runtime::Error LoadBundledInput(
    ::executorch::BUNDLED_PROGRAM_NAMESPACE::Method& method,
    serialized_bundled_program* bundled_program_ptr, size_t testset_idx) {
  return ::executorch::BUNDLED_PROGRAM_NAMESPACE::load_bundled_input(method, bundled_program_ptr,
                                                                     testset_idx);
}

ET_NODISCARD inline ::executorch::runtime::Error VerifyResultWithBundledExpectedOutput(
    ::executorch::BUNDLED_PROGRAM_NAMESPACE::Method& method,
    serialized_bundled_program* bundled_program_ptr, size_t testset_idx, double rtol = 1e-5,
    double atol = 1e-8) {
  return ::executorch::BUNDLED_PROGRAM_NAMESPACE::verify_method_outputs(method, bundled_program_ptr,
                                                                        testset_idx, rtol, atol);
}

ET_NODISCARD inline ::executorch::runtime::Error GetProgramData(void* file_data,
                                                                size_t file_data_len,
                                                                const void** out_program_data,
                                                                size_t* out_program_data_len) {
  return ::executorch::BUNDLED_PROGRAM_NAMESPACE::get_program_data(
      file_data, file_data_len, out_program_data, out_program_data_len);
}

inline bool IsBundledProgram(void* file_data) {
  // Callers of this form have whole files.
  return ::executorch::BUNDLED_PROGRAM_NAMESPACE::is_bundled_program(file_data, 8);
}

}  // namespace torch::executor::bundled_program
