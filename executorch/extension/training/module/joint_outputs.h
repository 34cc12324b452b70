#pragma once

#include <executorch/extension/module/module.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/result.h>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace executorch::extension::training::internal {

/// Names lie in the program; tensors are handles to the method's own.
using NamedTensors = std::map<std::string_view, aten::Tensor>;

/// What a training method returns: the results of forward, then a gradient for each parameter that
/// is trained, then those parameters, in the same order. The exporter says where they begin, and
/// the parameters' names, by three methods beside it:
///   __et_training_gradients_index_NAME, __et_training_parameters_index_NAME   one Int each
///   __et_training_fqn_NAME                                                    Strings
class JointOutputs {
 public:
  /// Runs those methods and checks them against the outputs of `method_name`. Remains valid as long
  /// as the program.
  ///   InvalidArgument  `method_name`, or one of the three, is not there or cannot be run
  ///   InvalidProgram   they say what cannot be
  static runtime::Result<JointOutputs> of(Module& module, const std::string& method_name);

  size_t first_gradient() const { return first_gradient_; }
  size_t first_parameter() const { return first_gradient_ + names_.size(); }
  const std::vector<std::string_view>& names() const { return names_; }

  /// Those among `outputs`, which are all outputs of the method. InvalidProgram where two have one
  /// name, and where one is no tensor, or is a parameter whose memory may not be written;
  /// InvalidState if that has none.
  runtime::Result<NamedTensors> gradients(const std::vector<runtime::EValue>& outputs) const;
  runtime::Result<NamedTensors> parameters(const std::vector<runtime::EValue>& outputs) const;

 private:
  runtime::Result<NamedTensors> named(const std::vector<runtime::EValue>& outputs, size_t first,
                                      const char* what) const;

  size_t first_gradient_ = 0;
  std::vector<std::string_view> names_;
};

}  // namespace executorch::extension::training::internal
