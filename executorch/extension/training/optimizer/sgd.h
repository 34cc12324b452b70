#pragma once

#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/extension/training/optimizer/param_group.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/platform/compiler.h>

#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

// What is experimental warns its users, not itself.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace executorch::extension::training::optimizer {

/// A momentum buffer, for code that has its own optimizer.
class ET_EXPERIMENTAL SGDParamState {
 public:
  /// A handle: the tensor must live as long as the state.
  explicit SGDParamState(aten::Tensor& momentum_buffer) : momentum_buffer_(momentum_buffer) {}

  aten::Tensor& momentum_buffer() { return momentum_buffer_; }

 private:
  aten::Tensor momentum_buffer_;
};

class ET_EXPERIMENTAL SGDOptions {
 public:
  explicit SGDOptions(double lr, double momentum = 0, double dampening = 0, double weight_decay = 0,
                      bool nesterov = false)
      : lr_(lr),
        momentum_(momentum),
        dampening_(dampening),
        weight_decay_(weight_decay),
        nesterov_(nesterov) {}

  std::unique_ptr<SGDOptions> clone() const { return std::make_unique<SGDOptions>(*this); }

  double lr() const { return lr_; }
  double momentum() const { return momentum_; }
  double dampening() const { return dampening_; }
  double weight_decay() const { return weight_decay_; }
  bool nesterov() const { return nesterov_; }

 private:
  double lr_;
  double momentum_;
  double dampening_;
  double weight_decay_;
  bool nesterov_;
};

using SGDParamGroup = ParamGroup<SGDOptions>;

namespace internal {
struct Momentum {
  TensorPtr buffer;  // null until it is needed
  bool begun = false;
};
}  // namespace internal

/// Stochastic gradient descent, as torch.optim.SGD does it. A step, for a parameter p with the
/// gradient g and the momentum buffer b, which is g after the first step:
///
///   g += weight_decay * p
///   b = momentum * b + (1 - dampening) * g                if momentum is not 0
///   g = nesterov ? g + momentum * b : b                   likewise
///   p -= lr * g
///
/// Elements are float32, float64, or half precision (float16, bfloat16), of which the steps are
/// computed in float32. Gradients are only read. Parameters and their names are borrowed: they must
/// live as long as the optimizer.
class ET_EXPERIMENTAL SGD : public internal::Optimizer<SGDOptions, internal::Momentum> {
 public:
  using Optimizer::Optimizer;

  /// Updates the parameters that `named_gradients` has gradients for. An error changes none.
  ///   InvalidArgument        a gradient has another shape, element type or layout than its
  ///                          parameter
  ///   NotSupported           they are of another element type than those above
  ///   InvalidProgram         a parameter is a constant of a program, which nobody may write
  ///   InvalidState           there is no memory behind one, or the parameter's size has changed
  ///   MemoryAllocationFailed there is none for a momentum buffer
  runtime::Error step(const std::map<std::string_view, aten::Tensor>& named_gradients);

 private:
  static runtime::Error prepare(std::string_view name, const aten::Tensor& parameter,
                                const aten::Tensor& gradient, Update& update);
  static void run(const Update& update);
};

}  // namespace executorch::extension::training::optimizer

#pragma GCC diagnostic pop
