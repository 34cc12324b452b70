// Trains a task from NAME.pte and NAME.ptd, and writes what it learnt to NAME-trained.ptd.
//
//   train NAME [STEPS]

#include <executorch/extension/data_loader/file_data_loader.h>
#include <executorch/extension/flat_tensor/serialize/serialize.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/extension/training/module/training_module.h>
#include <executorch/extension/training/optimizer/sgd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

// What is experimental warns its users.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using executorch::aten::Tensor;
using executorch::extension::FileDataLoader;
using executorch::extension::make_tensor_ptr;
using executorch::extension::TensorPtr;
using executorch::extension::training::TrainingModule;
using executorch::extension::training::optimizer::SGD;
using executorch::extension::training::optimizer::SGDOptions;
using executorch::runtime::Error;

namespace {

/// As in tasks.py.
struct Batch {
  TensorPtr x;
  TensorPtr y;
};

Batch xor_batch() {
  return {make_tensor_ptr({4, 2}, std::vector<float>{0, 0, 0, 1, 1, 0, 1, 1}),
          make_tensor_ptr({4}, std::vector<int64_t>{0, 1, 1, 0})};
}

Batch bars_batch() {
  std::vector<float> images(16 * 64);
  std::vector<int64_t> classes(16);
  for (size_t image = 0; image < 16; ++image) {
    const size_t place = image / 2;
    classes[image] = static_cast<int64_t>(image % 2);
    for (size_t i = 0; i < 8; ++i) {
      images[image * 64 + (image % 2 == 0 ? place * 8 + i : i * 8 + place)] = 1;
    }
  }
  return {make_tensor_ptr({16, 1, 8, 8}, std::move(images)),
          make_tensor_ptr({16}, std::move(classes))};
}

/// Null where there is no such file; the log says why.
std::unique_ptr<FileDataLoader> open(const std::string& path) {
  auto loader = FileDataLoader::from(path.c_str());
  return loader.ok() ? std::make_unique<FileDataLoader>(std::move(*loader)) : nullptr;
}

void print(int step, const Tensor& loss, const Tensor& guesses, const Tensor& y) {
  int right = 0;
  for (ssize_t i = 0; i < y.numel(); ++i) {
    right += guesses.const_data_ptr<int64_t>()[i] == y.const_data_ptr<int64_t>()[i];
  }
  std::printf("%d loss %f right %d of %d\n", step, loss.const_data_ptr<float>()[0], right,
              static_cast<int>(y.numel()));
}

/// What fails says so in the log.
Error train(TrainingModule& module, const Batch& batch, int steps, const std::string& trained) {
  auto parameters = module.named_parameters("forward");
  if (!parameters.ok()) return parameters.error();
  SGD optimizer(*parameters, SGDOptions(/*lr=*/0.2, /*momentum=*/0.9));
  for (int step = 0; step < steps; ++step) {
    auto outputs = module.execute_forward_backward("forward", {batch.x, batch.y});
    if (!outputs.ok()) return outputs.error();
    if (outputs->size() != 2) return Error::InvalidProgram;
    print(step, outputs->at(0).toTensor(), outputs->at(1).toTensor(), *batch.y);
    auto gradients = module.named_gradients("forward");
    if (!gradients.ok()) return gradients.error();
    const Error error = optimizer.step(*gradients);
    if (error != Error::Ok) return error;
  }
  const std::map<std::string, Tensor> saved(parameters->begin(), parameters->end());
  return executorch::extension::flat_tensor::save_ptd(trained, saved, /*tensor_alignment=*/16);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name != "xor" && name != "bars") {
    std::fprintf(stderr, "usage: %s xor|bars [STEPS]\n", argv[0]);
    return 2;
  }
  auto program = open(name + ".pte"), weights = open(name + ".ptd");
  if (program == nullptr || weights == nullptr) return 1;
  TrainingModule module(std::move(program), nullptr, nullptr, nullptr, std::move(weights));
  const int steps = argc > 2 ? std::atoi(argv[2]) : 60;
  const Batch batch = name == "xor" ? xor_batch() : bars_batch();
  return train(module, batch, steps, name + "-trained.ptd") == Error::Ok ? 0 : 1;
}
