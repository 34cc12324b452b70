#include <executorch/devtools/bundled_program/bundled_program.h>
#include <executorch/devtools/bundled_program/stored_tensor.h>
#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_shape_to_c_string.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <cstring>

namespace executorch::BUNDLED_PROGRAM_NAMESPACE {
namespace {

namespace fb = bundled_program_flatbuffer;
using internal::StoredTensor;
using runtime::Error;
using runtime::EValue;
using runtime::Result;

constexpr double kLeastMagnitude = 1e-8;

auto shape_of(const aten::SizesType* sizes, ssize_t rank) {
  return runtime::tensor_shape_to_c_string({sizes, static_cast<size_t>(rank)});
}

bool has_identifier(const void* file) {
  return file != nullptr && fb::BundledProgramBufferHasIdentifier(file);
}

// What every value of every test case must be, and each tensor's parts must fit together.
Error check_values(const flatbuffers::Vector<flatbuffers::Offset<fb::Value>>* values) {
  for (uint32_t i = 0; values != nullptr && i < values->size(); ++i) {
    const fb::Value& value = *values->Get(i);
    ET_CHECK_OR_RETURN_ERROR(value.val_type() != fb::ValueUnion::NONE &&
                                 value.val_type() <= fb::ValueUnion::MAX && value.val() != nullptr,
                             InvalidArgument,
                             "bundled program: value %" PRIu32 " of a test case is empty", i);
    if (const fb::Tensor* tensor = value.val_as_Tensor()) {
      ET_CHECK_OK_OR_RETURN_ERROR(StoredTensor::read(*tensor).error());
    }
  }
  return Error::Ok;
}

Error check_suites(const fb::BundledProgram& bundle) {
  for (uint32_t s = 0;
       bundle.method_test_suites() != nullptr && s < bundle.method_test_suites()->size(); ++s) {
    const fb::BundledMethodTestSuite& suite = *bundle.method_test_suites()->Get(s);
    ET_CHECK_OR_RETURN_ERROR(suite.method_name() != nullptr, InvalidArgument,
                             "bundled program: suite %" PRIu32 " has no name", s);
    for (uint32_t c = 0; suite.test_cases() != nullptr && c < suite.test_cases()->size(); ++c) {
      const fb::BundledMethodTestCase& test = *suite.test_cases()->Get(c);
      ET_CHECK_OK_OR_RETURN_ERROR(check_values(test.inputs()));
      ET_CHECK_OK_OR_RETURN_ERROR(check_values(test.expected_outputs()));
    }
  }
  return Error::Ok;
}

Result<const fb::BundledMethodTestCase*> find_case(const Method& method, const void* file,
                                                   size_t index) {
  const char* const name = method.method_meta().name();
  const auto* suites = fb::GetBundledProgram(file)->method_test_suites();
  for (uint32_t s = 0; suites != nullptr && s < suites->size(); ++s) {
    const fb::BundledMethodTestSuite& suite = *suites->Get(s);
    if (std::strcmp(suite.method_name()->c_str(), name) == 0) {
      const size_t count = suite.test_cases() == nullptr ? 0 : suite.test_cases()->size();
      ET_CHECK_OR_RETURN_ERROR(index < count, InvalidArgument,
                               "bundled program: no test case %zu of method %s, it has %zu", index,
                               name, count);
      return suite.test_cases()->Get(static_cast<uint32_t>(index));
    }
  }
  ET_LOG(Error, "bundled program: no test cases for method %s", name);
  return Error::InvalidArgument;
}

Error set_input(Method& method, const fb::Value& value, size_t index) {
  switch (value.val_type()) {
    case fb::ValueUnion::Tensor: {
      ET_ASSIGN_OR_RETURN(StoredTensor stored, StoredTensor::read(*value.val_as_Tensor()));
      aten::TensorImpl impl(stored.type, stored.rank, stored.sizes, const_cast<void*>(stored.data),
                            stored.dim_order, stored.strides);
      impl.borrow_data(impl.mutable_data(), static_cast<size_t>(impl.numel()), /*read_only=*/true);
      return method.set_input(EValue(aten::Tensor(&impl)), index);
    }
    case fb::ValueUnion::Int:
      return method.set_input(EValue(value.val_as_Int()->int_val()), index);
    case fb::ValueUnion::Bool:
      return method.set_input(EValue(value.val_as_Bool()->bool_val()), index);
    case fb::ValueUnion::Double:
      return method.set_input(EValue(value.val_as_Double()->double_val()), index);
    default:
      return Error::InvalidArgument;
  }
}

}  // namespace

Error load_bundled_input(Method& method, SerializedBundledProgram* bundled_program_ptr,
                         size_t testset_idx) {
  ET_CHECK_OR_RETURN_ERROR(has_identifier(bundled_program_ptr), NotSupported,
                           "not a bundled program: no BP08 at byte 4");
  ET_ASSIGN_OR_RETURN(const auto* test, find_case(method, bundled_program_ptr, testset_idx));
  const size_t count = test->inputs() == nullptr ? 0 : test->inputs()->size();
  ET_CHECK_OR_RETURN_ERROR(count == method.inputs_size(), NotSupported,
                           "bundled program: test case %zu has %zu inputs, method %s takes %zu",
                           testset_idx, count, method.method_meta().name(), method.inputs_size());
  for (size_t i = 0; i < count; ++i) {
    const Error error = set_input(method, *test->inputs()->Get(static_cast<uint32_t>(i)), i);
    ET_CHECK_OR_RETURN_ERROR(error == Error::Ok, NotSupported,
                             "bundled program: input %zu of test case %zu does not fit", i,
                             testset_idx);
  }
  runtime::internal::event_tracer_set_bundled_input_index(method.get_event_tracer(),
                                                          static_cast<int>(testset_idx));
  return Error::Ok;
}

Error get_program_data(void* file_data, size_t file_data_len, const void** out_program_data,
                       size_t* out_program_data_len) {
  ET_CHECK_OR_RETURN_ERROR(is_bundled_program(file_data, file_data_len), NotSupported,
                           "not a bundled program: no BP08 at byte 4 of %zu", file_data_len);
  ET_CHECK_OR_RETURN_ERROR(
      reinterpret_cast<uintptr_t>(file_data) % alignof(std::max_align_t) == 0, InvalidArgument,
      "the bundled program lies at %p; it needs an address that is a multiple of %zu", file_data,
      alignof(std::max_align_t));
  const auto* const bytes = static_cast<const uint8_t*>(file_data);
  // Each table has an offset to it, unless several share one.
  const auto max_tables = static_cast<flatbuffers::uoffset_t>(file_data_len / 4 + 1);
  flatbuffers::Verifier verifier(bytes, file_data_len, 64, max_tables);
  ET_CHECK_OR_RETURN_ERROR(fb::VerifyBundledProgramBuffer(verifier), InvalidArgument,
                           "bundled program: its flatbuffer of %zu bytes is damaged",
                           file_data_len);
  const fb::BundledProgram& bundle = *fb::GetBundledProgram(file_data);
  ET_CHECK_OK_OR_RETURN_ERROR(check_suites(bundle));
  ET_CHECK_OR_RETURN_ERROR(bundle.program() != nullptr && bundle.program()->size() > 0,
                           InvalidArgument, "bundled program: it holds no program");
  *out_program_data = bundle.program()->data();
  *out_program_data_len = bundle.program()->size();
  return Error::Ok;
}

bool is_bundled_program(void* file_data, size_t file_data_len) {
  return file_data != nullptr && file_data_len >= 8 && has_identifier(file_data);
}

bool is_bundled_program(void* file_data) {
  return file_data != nullptr && has_identifier(file_data);
}

namespace {

// Strides of dimensions of one element say nothing.
bool same_layout(const aten::Tensor& actual, const StoredTensor& expected) {
  for (ssize_t d = 0; d < expected.rank; ++d) {
    if (actual.size(d) != 1 && actual.strides()[d] != expected.strides[d]) return false;
  }
  return true;
}

bool same_shape(const aten::Tensor& actual, const StoredTensor& expected) {
  if (actual.scalar_type() != expected.type || actual.dim() != expected.rank) return false;
  for (ssize_t d = 0; d < expected.rank; ++d) {
    if (actual.size(d) != expected.sizes[d]) return false;
  }
  return true;
}

// Calls `compare(actual, expected, index)` for each output, until it does not return Ok.
template <typename Compare>
Error for_each_output(Method& method, const void* file, size_t testset_idx, Compare compare) {
  ET_ASSIGN_OR_RETURN(const auto* test, find_case(method, file, testset_idx));
  const auto* outputs = test->expected_outputs();
  ET_CHECK_OR_RETURN_ERROR(outputs != nullptr && outputs->size() > 0, NotSupported,
                           "bundled program: test case %zu expects no outputs", testset_idx);
  ET_CHECK_OR_RETURN_ERROR(outputs->size() == method.outputs_size(), NotFound,
                           "bundled program: test case %zu expects %" PRIu32
                           " outputs, the method has %zu",
                           testset_idx, outputs->size(), method.outputs_size());
  for (uint32_t i = 0; i < outputs->size(); ++i) {
    const EValue& output = method.get_output(i);
    const fb::Tensor* const tensor = outputs->Get(i)->val_as_Tensor();
    ET_CHECK_OR_RETURN_ERROR(tensor != nullptr && output.isTensor(), NotSupported,
                             "bundled program: output %" PRIu32 " is no tensor", i);
    ET_ASSIGN_OR_RETURN(const StoredTensor expected, StoredTensor::read(*tensor));
    const aten::Tensor& actual = output.toTensor();
    ET_CHECK_OR_RETURN_ERROR(actual.const_data_ptr() != nullptr || actual.numel() == 0, NotFound,
                             "output %" PRIu32 " has no memory: the program freed it", i);
    ET_CHECK_OR_RETURN_ERROR(
        same_shape(actual, expected) && same_layout(actual, expected), NotFound,
        "output %" PRIu32 " is %s %s, expected %s %s%s", i, runtime::toString(actual.scalar_type()),
        shape_of(actual.sizes().data(), actual.dim()).data(), runtime::toString(expected.type),
        shape_of(expected.sizes, expected.rank).data(),
        same_shape(actual, expected) ? " in another dim order" : "");
    ET_CHECK_OK_OR_RETURN_ERROR(compare(actual, expected, i));
  }
  return Error::Ok;
}

bool is_close(double actual, double expected, double rtol, double atol) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return true;
  return std::isfinite(actual) && std::isfinite(expected) &&
         std::abs(actual - expected) <= atol + rtol * std::abs(actual);
}

template <typename T>
Error compare_floats(const aten::Tensor& actual, const StoredTensor& expected, uint32_t output,
                     double rtol, double atol) {
  const T* const a = actual.const_data_ptr<T>();
  for (ssize_t i = 0; i < actual.numel(); ++i) {
    // Files of other writers align less.
    T b;
    std::memcpy(&b, static_cast<const char*>(expected.data) + i * sizeof(T), sizeof(T));
    const auto found = static_cast<double>(a[i]);
    const auto wanted = static_cast<double>(b);
    ET_CHECK_OR_RETURN_ERROR(is_close(found, wanted, rtol, atol), NotFound,
                             "output %" PRIu32 ", element %zd: %g, expected %g (rtol %g, atol %g)",
                             output, i, found, wanted, rtol, atol);
  }
  return Error::Ok;
}

// Whatever bytes stand for true.
Error compare_booleans(const aten::Tensor& actual, const StoredTensor& expected, uint32_t output) {
  const auto* const a = static_cast<const uint8_t*>(actual.const_data_ptr());
  const auto* const b = static_cast<const uint8_t*>(expected.data);
  for (size_t i = 0; i < expected.nbytes; ++i) {
    ET_CHECK_OR_RETURN_ERROR((a[i] != 0) == (b[i] != 0), NotFound,
                             "output %" PRIu32 ", element %zu: %d, expected %d", output, i,
                             a[i] != 0, b[i] != 0);
  }
  return Error::Ok;
}

Error compare_bytes(const aten::Tensor& actual, const StoredTensor& expected, uint32_t output) {
  ET_CHECK_OR_RETURN_ERROR(
      expected.nbytes == 0 ||
          std::memcmp(actual.const_data_ptr(), expected.data, expected.nbytes) == 0,
      NotFound, "output %" PRIu32 " of type %s differs", output, runtime::toString(expected.type));
  return Error::Ok;
}

}  // namespace

Error verify_method_outputs(Method& method, SerializedBundledProgram* bundled_program_ptr,
                            size_t testset_idx, double rtol, double atol) {
  ET_CHECK_OR_RETURN_ERROR(has_identifier(bundled_program_ptr), NotSupported,
                           "not a bundled program: no BP08 at byte 4");
  return for_each_output(
      method, bundled_program_ptr, testset_idx,
      [&](const aten::Tensor& actual, const StoredTensor& expected, uint32_t output) {
        switch (expected.type) {
          case aten::ScalarType::Float:
            return compare_floats<float>(actual, expected, output, rtol, atol);
          case aten::ScalarType::Double:
            return compare_floats<double>(actual, expected, output, rtol, atol);
          case aten::ScalarType::Half:
            return compare_floats<aten::Half>(actual, expected, output, rtol, atol);
          case aten::ScalarType::BFloat16:
            return compare_floats<aten::BFloat16>(actual, expected, output, rtol, atol);
          case aten::ScalarType::Bool:
            return compare_booleans(actual, expected, output);
          default:
            return compare_bytes(actual, expected, output);
        }
      });
}

ErrorStats compute_method_output_error_stats(Method& method,
                                             SerializedBundledProgram* bundled_program_ptr,
                                             size_t testset_idx) {
  if (!has_identifier(bundled_program_ptr)) {
    ET_LOG(Error, "not a bundled program: no BP08 at byte 4");
    return {Error::InvalidArgument, 0, 0, 0, 0};
  }
  ErrorStats stats{};
  int64_t count = 0;
  stats.status = for_each_output(
      method, bundled_program_ptr, testset_idx,
      [&](const aten::Tensor& actual, const StoredTensor& expected, uint32_t) {
        for (ssize_t i = 0; expected.type == aten::ScalarType::Float && i < actual.numel(); ++i) {
          float b;
          std::memcpy(&b, static_cast<const char*>(expected.data) + i * sizeof(b), sizeof(b));
          const double found = actual.const_data_ptr<float>()[i];
          const double wanted = b;
          const double error = std::abs(found - wanted);
          const double relative =
              error / std::max({std::abs(found), std::abs(wanted), kLeastMagnitude});
          stats.mean_abs_error += error;
          stats.max_abs_error = std::max(stats.max_abs_error, error);
          stats.mean_relative_error += relative;
          stats.max_relative_error = std::max(stats.max_relative_error, relative);
          ++count;
        }
        return Error::Ok;
      });
  if (stats.status != Error::Ok) return {stats.status, 0, 0, 0, 0};
  if (count > 0) {
    stats.mean_abs_error /= static_cast<double>(count);
    stats.mean_relative_error /= static_cast<double>(count);
  }
  return stats;
}

}  // namespace executorch::BUNDLED_PROGRAM_NAMESPACE
