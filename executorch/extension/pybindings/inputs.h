#pragma once

#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/executor/method.h>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace executorch::extension::pybindings {

/// Python's arguments as EValues of the shapes and memory layouts a method takes.
///   None, bool, int, float, str      the like-named EValue (an int where a float is due: a float)
///   anything with __dlpack__ or the  a tensor, used where it lies when its layout is the one the
///   buffer protocol, on the CPU      method expects and it is aligned; else a copy in that layout
/// Owns references and copies; must live for as long as the method may read its inputs. Created,
/// moved and destroyed under the GIL.
class Inputs {
 public:
  Inputs() = default;

  /// `items`: one sequence, or a single value that stands for a sequence of one. Throws
  /// RuntimeError for another number of items than the method takes; TypeError or ValueError, with
  /// the input, for an object that is no value. The runtime checks dtypes and sizes itself, without
  /// reading elements of tensors that do not fit.
  Inputs(const runtime::Method& method, nanobind::handle items);

  const std::vector<runtime::EValue>& values() const { return values_; }

 private:
  runtime::EValue convert(const runtime::Method& method, size_t i, nanobind::handle item);
  runtime::EValue convert_string(nanobind::handle item);
  runtime::EValue convert_tensor(const runtime::Method& method, size_t i, nanobind::handle item);

  std::vector<runtime::EValue> values_;
  std::vector<nanobind::ndarray<nanobind::ro>> borrowed_;  // hold the memory the tensors point to
  std::vector<std::unique_ptr<std::byte[]>> copies_;
  std::vector<TensorPtr> tensors_;
  std::list<std::pair<std::string, aten::ArrayRef<char>>> strings_;  // EValues point into it
};

/// A dict of arrays as tensors over the same memory, which is neither copied nor converted. Owns
/// references; created and destroyed under the GIL.
class NamedArrays {
 public:
  /// Throws TypeError or ValueError, with `what` and the key, for values that are no arrays in CPU
  /// memory or that have gaps; with `written`, also for read-only arrays.
  NamedArrays(const char* what, nanobind::dict arrays, bool written);

  const std::map<std::string_view, aten::Tensor>& tensors() const { return tensors_; }

 private:
  std::list<std::string> names_;
  std::vector<nanobind::ndarray<nanobind::ro>> borrowed_;
  std::vector<TensorPtr> owned_;
  std::map<std::string_view, aten::Tensor> tensors_;
};

}  // namespace executorch::extension::pybindings
