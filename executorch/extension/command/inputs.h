#pragma once

#include <executorch/runtime/executor/method.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace executorch::extension::command {

/// All of an input file, which may also come through a pipe. Throws Failure for what is no file,
/// and for files of more than `most` bytes.
std::string read_input_file(const std::string& path, uint64_t most);

struct InputOptions {
  /// One .npy or raw file for each tensor input, or none. In this list and the next one an entry is
  /// for the next input, or for that of a name, as "tokens=ids.npy".
  std::vector<std::string> files = {};
  /// "1x8"; "-" and what is missing: the upper bound.
  std::vector<std::string> shapes = {};
  /// Without files: ones, or random (floats from -1 to 1, integers from 0 to 7).
  std::string fill = "ones";
  uint64_t seed = 0;
};

/// A value for one tensor input of a method.
struct InputTensor {
  size_t index;      ///< among the method's inputs
  std::string text;  ///< "input 0 (tokens)"
  aten::ScalarType dtype;
  std::vector<aten::SizesType> sizes;
  std::vector<aten::DimOrderType> dim_order;
  std::string bytes;  ///< in the order of dim_order
};

/// Values for a method's tensor inputs. Other inputs keep the values that they had at export.
class Inputs {
 public:
  /// Throws Failure, which names the input, what was found and expected.
  Inputs(const runtime::Method& method, const InputOptions& options);

  /// Sets the inputs to copies of the values, which the returned object keeps alive.
  std::shared_ptr<void> set(runtime::Method& method) const;

 private:
  std::vector<InputTensor> inputs_;
};

}  // namespace executorch::extension::command
