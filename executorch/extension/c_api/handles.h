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
/// At an address that is a multiple of kAlignment.
using AlignedBytes = std::unique_ptr<uint8_t[], FreeAligned>;
constexpr size_t kAlignment = 64;
/// Neither is null, also without bytes; both throw std::bad_alloc.
AlignedBytes aligned_bytes(size_t n_bytes);
AlignedBytes aligned_copy(const void* bytes, size_t n_bytes);

/// A program and the bytes it lies in; shared by its handle and its methods.
struct LoadedProgram {
  AlignedBytes bytes;
  std::unique_ptr<Module> module;
};

/// An input tensor that the runtime may read until the next is set.
struct InputTensor {
  aten::ScalarType type = aten::ScalarType::Undefined;
  std::vector<aten::SizesType> sizes;
  std::vector<aten::DimOrderType> dim_order;
  std::vector<aten::StridesType> strides;
  AlignedBytes bytes;
  /// The method has memory of its own for it, to which every run copies it first.
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
  /// Of the last run, where others have been set since: outputs may be inputs.
  std::vector<executorch::extension::c_api::InputTensor> inputs_of_run;
  std::vector<bool> is_set;
  /// One for each output; null where the program has memory for it, or it needs none.
  std::vector<executorch::extension::c_api::AlignedBytes> memory_of_outputs;
  std::vector<executorch_value> outputs;
  bool has_run = false;
  /// After what its method reads and writes.
  std::unique_ptr<executorch::extension::Module> module;
  /// Of `module`.
  executorch::runtime::Method* loaded_method = nullptr;
};
