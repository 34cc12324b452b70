#pragma once

#include <executorch/extension/tensor/tensor_ptr.h>
#include <executorch/extension/training/optimizer/param_group.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/platform/compiler.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

// What is experimental warns its users, not itself.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace executorch::extension::training::optimizer {

/// What AdamW keeps of a parameter: the moving averages of its gradients and of their squares, and
/// how many steps they are of.
class ET_EXPERIMENTAL AdamWParamState {
 public:
  AdamWParamState(TensorPtr exp_avg, TensorPtr exp_avg_sq)
      : exp_avg_(std::move(exp_avg)), exp_avg_sq_(std::move(exp_avg_sq)) {}

  aten::Tensor& exp_avg() { return *exp_avg_; }
  aten::Tensor& exp_avg_sq() { return *exp_avg_sq_; }
  int64_t step_count() const { return step_count_; }
  void increment_step_count() { ++step_count_; }

 private:
  TensorPtr exp_avg_;
  TensorPtr exp_avg_sq_;
  int64_t step_count_ = 0;
};

class ET_EXPERIMENTAL AdamWOptions {
 public:
  explicit AdamWOptions(double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999,
                        double eps = 1e-8, double weight_decay = 1e-2)
      : lr_(lr), beta1_(beta1), beta2_(beta2), eps_(eps), weight_decay_(weight_decay) {}

  std::unique_ptr<AdamWOptions> clone() const { return std::make_unique<AdamWOptions>(*this); }

  double lr() const { return lr_; }
  double beta1() const { return beta1_; }
  double beta2() const { return beta2_; }
  double eps() const { return eps_; }
  double weight_decay() const { return weight_decay_; }

 private:
  double lr_;
  double beta1_;
  double beta2_;
  double eps_;
  double weight_decay_;
};

using AdamWParamGroup = ParamGroup<AdamWOptions>;

/// AdamW, as torch.optim.AdamW does it without amsgrad. Step t, from 1, for a parameter p with the
/// gradient g and averages m and v, which begin at 0:
///
///   p -= lr * weight_decay * p
///   m = beta1 * m + (1 - beta1) * g
///   v = beta2 * v + (1 - beta2) * g * g
///   p -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
///
/// Elements are float32 or half precision (float16, bfloat16); averages, and the steps, are float32
/// for all of them. Gradients are only read. Parameters and their names are borrowed: they must live
/// as long as the optimizer.
class ET_EXPERIMENTAL AdamW
    : public internal::Optimizer<AdamWOptions, std::unique_ptr<AdamWParamState>> {
 public:
  using Optimizer::Optimizer;

  /// Updates the parameters that `named_gradients` has gradients for. Errors are those of SGD::step,
  /// averages standing for momentum, and InvalidArgument for float64. An error changes none.
  runtime::Error step(const std::map<std::string_view, aten::Tensor>& named_gradients);

 private:
  static runtime::Error prepare(std::string_view name, const aten::Tensor& parameter,
                                const aten::Tensor& gradient, Update& update);
  static void run(const Update& update);
};

}  // namespace executorch::extension::training::optimizer

#pragma GCC diagnostic pop
