// Runs a program on inputs of ones; prints the first element of each output, or the error.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  executorch::extension::Module module(argc > 1 ? argv[1] : "");
  const auto meta = module.method_meta("forward");
  if (!meta.ok()) {
    std::printf("%s\n", executorch::runtime::to_string(meta.error()));
    return 1;
  }
  std::vector<executorch::extension::TensorPtr> tensors;
  std::vector<executorch::runtime::EValue> inputs;
  for (size_t i = 0; i < meta->num_inputs(); ++i) {
    const auto info = meta->input_tensor_meta(i);
    tensors.push_back(executorch::extension::ones({info->sizes().begin(), info->sizes().end()},
                                                  info->scalar_type()));
    inputs.emplace_back(*tensors.back());
  }
  const auto outputs = module.forward(inputs);
  if (!outputs.ok()) {
    std::printf("%s\n", executorch::runtime::to_string(outputs.error()));
    return 1;
  }
  for (const auto& output : *outputs) {
    const auto tensor = output.toTensor();
    switch (tensor.scalar_type()) {
      case executorch::aten::ScalarType::Double:
        std::printf("%g\n", tensor.const_data_ptr<double>()[0]);
        break;
      case executorch::aten::ScalarType::Half:
        std::printf("%g\n",
                    static_cast<double>(tensor.const_data_ptr<executorch::aten::Half>()[0]));
        break;
      default:
        std::printf("%g\n", static_cast<double>(tensor.const_data_ptr<float>()[0]));
    }
  }
  return 0;
}
