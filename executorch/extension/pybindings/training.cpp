#include <executorch/extension/pybindings/training.h>

#include <executorch/extension/flat_tensor/serialize/serialize.h>
#include <executorch/extension/pybindings/inputs.h>
#include <executorch/extension/pybindings/log_capture.h>
#include <executorch/extension/pybindings/text.h>
#include <executorch/extension/training/optimizer/sgd.h>

#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

// What is experimental says so by a warning.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace nb = nanobind;

namespace executorch::extension::pybindings {
namespace {

using training::optimizer::SGD;
using training::optimizer::SGDOptions;

/// ExecuTorchSGD: an optimizer, and the arrays that it updates.
class SGDHandle {
 public:
  SGDHandle(nb::dict parameters, const SGDOptions& options)
      : parameters_("parameter", std::move(parameters), /*written=*/true),
        sgd_(parameters_.tensors(), options) {}

  void step(nb::dict gradients) {
    const NamedArrays arrays("gradient of", std::move(gradients), /*written=*/false);
    nb::gil_scoped_release unlocked;
    std::lock_guard<std::mutex> turn(mutex_);
    LogCapture log;
    log.check(sgd_.step(arrays.tensors()), "SGD");
  }

 private:
  NamedArrays parameters_;
  std::mutex mutex_;
  SGD sgd_;
};

/// ValueError for options that torch.optim.SGD refuses, and for NaN.
SGDOptions checked_options(double lr, double momentum, double dampening, double weight_decay,
                           bool nesterov) {
  for (const auto& [name, value] :
       {std::pair{"lr", lr}, {"momentum", momentum}, {"weight_decay", weight_decay}}) {
    if (!(value >= 0)) {
      throw nb::value_error(
          (std::string(name) + ": expected at least 0, found " + std::to_string(value)).c_str());
    }
  }
  if (nesterov && (momentum == 0 || dampening != 0)) {
    throw nb::value_error("nesterov: expected momentum, and no dampening");
  }
  return SGDOptions(lr, momentum, dampening, weight_decay, nesterov);
}

void save_ptd(const std::string& path, nb::dict tensors, size_t alignment) {
  const NamedArrays arrays("tensor", std::move(tensors), /*written=*/false);
  nb::gil_scoped_release unlocked;
  std::map<std::string, aten::Tensor> named(arrays.tensors().begin(), arrays.tensors().end());
  LogCapture log;
  log.check(flat_tensor::save_ptd(path, named, alignment), "saving " + path);
}

}  // namespace

void bind_training(nb::module_& m) {
  nb::class_<SGDHandle>(m, "ExecuTorchSGD", "Stochastic gradient descent.")
      .def("step", &SGDHandle::step, nb::arg("named_gradients"),
           "Updates the parameters that have a gradient here.");
  m.def(
      "get_sgd_optimizer",
      [](nb::dict parameters, double lr, double momentum, double dampening, double weight_decay,
         bool nesterov) {
        return std::make_unique<SGDHandle>(
            std::move(parameters),
            checked_options(lr, momentum, dampening, weight_decay, nesterov));
      },
      nb::arg("named_params"), nb::arg("lr") = 0.1, nb::arg("momentum") = 0.0,
      nb::arg("dampening") = 0.0, nb::arg("weight_decay") = 0.0, nb::arg("nesterov") = false,
      "Of arrays by name, which steps write to: with `momentum`, `dampening`, `weight_decay` and "
      "`nesterov` as in torch.optim.SGD, whose limits they have (ValueError).");
  m.def("save_ptd", &save_ptd, nb::arg("path"), nb::arg("named_tensors"),
        nb::arg("tensor_alignment") = 128,
        "Writes arrays by name as a file of external data. A failure leaves `path` as it was.");
}

}  // namespace executorch::extension::pybindings
