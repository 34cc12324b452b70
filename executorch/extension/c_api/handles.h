/// What the handles of the C interface are.
#pragma once

#include <executorch/extension/c_api/executorch.h>
#include <executorch/extension/module/module.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace executorch::extension::c_api {

struct FreeAligned {
  void operator()(void* bytes) const;
};
/// Heap memory at a multiple of kAlignment.
using AlignedBytes = std::unique_ptr<uint8_t[], FreeAligned>;
constexpr size_t kAlignment = 64;
/// Neither returns null, not even for 0 bytes; both throw std::bad_alloc.
AlignedBytes aligned_bytes(size_t n_bytes);
AlignedBytes aligned_copy(const void* bytes, size_t n_bytes);

/// A program and the bytes it lies in; shared by its handle and its methods.
struct LoadedProgram {
  AlignedBytes bytes;
  std::unique_ptr<Module> module;
};

/// A copy of an input tensor, which the runtime may read until another one is set.
struct InputTensor {
  aten::ScalarType type = aten::ScalarType::Undefined;
  std::vector<aten::SizesType> sizes;
  std::vector<aten::DimOrderType> dim_order;
  std::vector<aten::StridesType> strides;
  AlignedBytes bytes;
  /// The exporter planned memory for this input, into which every run copies it first.
  bool is_planned = false;
};

}  // namespace executorch::extension::c_api

struct executorch_program {
  std::shared_ptr<executorch::extension::c_api::LoadedProgram> loaded;
  std::vector<std::string> method_names;
};

struct executorch_method {
  std::shared_ptr<executorch::extension::c_api::LoadedProgram> loaded;
  std::string name;
  std::vector<executorch::extension::c_api::InputTensor> inputs;
  /// Inputs of the last run that were replaced since: outputs of that run may be views of them.
  std::vector<executorch::extension::c_api::InputTensor> inputs_of_run;
  std::vector<bool> is_set;
  /// Memory for each output; null for an output in planned memory, and for one without elements.
  std::vector<executorch::extension::c_api::AlignedBytes> memory_of_outputs;
  std::vector<executorch_value> outputs;
  bool has_run = false;
  /// Declared after the memory that its method uses, so that it is destroyed first.
  std::unique_ptr<executorch::extension::Module> module;
  /// The method of `module`.
  executorch::runtime::Method* loaded_method = nullptr;
};
