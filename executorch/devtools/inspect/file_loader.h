#pragma once

#include <executorch/runtime/core/data_loader.h>

#include <fstream>
#include <string>

namespace executorch::devtools {

/// Reads spans of a file as they are asked for.
class FileLoader final : public runtime::DataLoader {
 public:
  explicit FileLoader(const std::string& path) : file_(path, std::ios::binary | std::ios::ate) {}

  bool is_open() const { return file_.good(); }
  /// AccessFailed if the file ends before.
  runtime::Result<runtime::FreeableBuffer> load(size_t offset, size_t size,
                                                const SegmentInfo& info) const override;
  runtime::Result<size_t> size() const override;

 private:
  mutable std::ifstream file_;
};

}  // namespace executorch::devtools
