// Runs custom_linear.pte on an input of ones and prints the result.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <cstdio>

int main(int argc, char** argv) {
  executorch::extension::Module module(argc > 1 ? argv[1] : "custom_linear.pte");
  const auto result = module.forward(executorch::extension::ones({2, 16}));
  if (!result.ok()) {
    std::fprintf(stderr, "forward: %s\n", executorch::runtime::to_string(result.error()));
    return 1;
  }
  const auto tensor = result->at(0).toTensor();
  for (ssize_t i = 0; i < tensor.numel(); ++i) {
    std::printf("%.6f\n", static_cast<double>(tensor.const_data_ptr<float>()[i]));
  }
  return 0;
}
