#pragma once

#include <executorch/extension/data_loader/buffer_data_loader.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace executorch::extension {

/// Serves ranges of `size` bytes at `data`, of which it is one of the owners. Loads point into the
/// data and need the loader, or another owner, to stay alive.
class SharedPtrDataLoader final : public runtime::DataLoader {
 public:
  SharedPtrDataLoader(std::shared_ptr<void> data, size_t size)
      : data_(std::move(data)), view_(data_.get(), size) {}

  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> load(
      size_t offset, size_t size, const DataLoader::SegmentInfo& segment_info) const override {
    return view_.load(offset, size, segment_info);
  }

  ET_NODISCARD runtime::Result<size_t> size() const override { return view_.size(); }

  ET_NODISCARD runtime::Error load_into(size_t offset, size_t size, const SegmentInfo& segment_info,
                                        void* buffer) const override {
    return view_.load_into(offset, size, segment_info, buffer);
  }

 private:
  std::shared_ptr<void> data_;
  BufferDataLoader view_;
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::SharedPtrDataLoader;
}  // namespace torch::executor::util
