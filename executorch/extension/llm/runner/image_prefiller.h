#pragma once

#include <executorch/extension/llm/runner/image.h>
#include <executorch/extension/module/module.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/result.h>

#include <cstdint>

namespace executorch::extension::llm {

/// What an application writes for a model that reads images in its own way. Others are read by
/// MultimodalPrefiller.
class ImagePrefiller {
 public:
  /// `module` must outlive it.
  explicit ImagePrefiller(extension::Module* module) : module_(module) {}
  virtual ~ImagePrefiller() = default;

  /// Reads an image at position `start_pos`, which moves behind it. Returns the logits after it.
  virtual runtime::Result<aten::Tensor> prefill(Image& image, int64_t& start_pos) = 0;
  ET_NODISCARD virtual runtime::Error load() = 0;
  virtual bool is_method_loaded() = 0;

 protected:
  extension::Module* module_;
};

}  // namespace executorch::extension::llm

namespace torch::executor {
using ::executorch::extension::llm::ImagePrefiller;
}  // namespace torch::executor
