#pragma once

#include <executorch/extension/llm/runner/constants.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/result.h>

#include <string>
#include <vector>

namespace executorch::extension::llm {

/// Makes the inputs of a program over explicit caches from tokens and their position, and takes
/// what comes out. This one hands the two on, for programs that keep their caches; others may add
/// inputs by a class derived from it. `method` names the method that runs.
class IOManager {
 public:
  explicit IOManager(ET_MODULE_NAMESPACE::Module& module) : module_(module) {}
  virtual ~IOManager() = default;

  ET_NODISCARD virtual runtime::Error load(const std::string& prefill_method,
                                           const std::string& decode_method) {
    (void)prefill_method;
    (void)decode_method;
    return runtime::Error::Ok;
  }
  ET_NODISCARD runtime::Error load() { return load(kForwardMethod, kForwardMethod); }

  /// For a text that begins anew.
  ET_NODISCARD virtual runtime::Error reset(const std::string& prefill_method,
                                            const std::string& decode_method) {
    (void)prefill_method;
    (void)decode_method;
    return runtime::Error::Ok;
  }
  ET_NODISCARD runtime::Error reset() { return reset(kForwardMethod, kForwardMethod); }

  /// InvalidArgument if the method does not take two inputs.
  virtual runtime::Result<std::vector<runtime::EValue>> prepare_prefill(
      const TensorPtr& input, const TensorPtr& start_pos, const std::string& prefill_method) {
    return both(input, start_pos, prefill_method);
  }
  runtime::Result<std::vector<runtime::EValue>> prepare_prefill(const TensorPtr& input,
                                                                const TensorPtr& start_pos) {
    return prepare_prefill(input, start_pos, kForwardMethod);
  }
  virtual runtime::Result<std::vector<runtime::EValue>> prepare_decode(
      const TensorPtr& input, const TensorPtr& start_pos, const std::string& decode_method) {
    return both(input, start_pos, decode_method);
  }
  runtime::Result<std::vector<runtime::EValue>> prepare_decode(const TensorPtr& input,
                                                               const TensorPtr& start_pos) {
    return prepare_decode(input, start_pos, kForwardMethod);
  }

  ET_NODISCARD virtual runtime::Error update_prefill(
      const std::vector<runtime::EValue>& model_outputs, const std::string& prefill_method) {
    (void)model_outputs;
    (void)prefill_method;
    return runtime::Error::Ok;
  }
  ET_NODISCARD runtime::Error update_prefill(const std::vector<runtime::EValue>& model_outputs) {
    return update_prefill(model_outputs, kForwardMethod);
  }
  ET_NODISCARD virtual runtime::Error update_decode(
      const std::vector<runtime::EValue>& model_outputs, const std::string& decode_method) {
    (void)model_outputs;
    (void)decode_method;
    return runtime::Error::Ok;
  }
  ET_NODISCARD runtime::Error update_decode(const std::vector<runtime::EValue>& model_outputs) {
    return update_decode(model_outputs, kForwardMethod);
  }

 protected:
  ET_MODULE_NAMESPACE::Module& module_;

 private:
  runtime::Result<std::vector<runtime::EValue>> both(const TensorPtr& input,
                                                     const TensorPtr& start_pos,
                                                     const std::string& method) {
    ET_ASSIGN_OR_RETURN(const auto meta, module_.method_meta(method));
    ET_CHECK_OR_RETURN_ERROR(meta.num_inputs() == 2, InvalidArgument,
                             "method '%s' takes %zu inputs, not tokens and their position",
                             method.c_str(), meta.num_inputs());
    return std::vector<runtime::EValue>{input, start_pos};
  }
};

}  // namespace executorch::extension::llm
