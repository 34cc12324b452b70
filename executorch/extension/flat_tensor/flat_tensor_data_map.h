#pragma once

#include <executorch/extension/flat_tensor/serialize/flat_tensor_header.h>
#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/tensor_layout.h>

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace flat_tensor_flatbuffer {
struct DataSegment;
struct FlatTensor;
struct NamedData;
}  // namespace flat_tensor_flatbuffer

namespace executorch::extension {

/// The named blobs of a .ptd file. load() verifies the whole structure: the flatbuffer, every
/// segment's place in the file, every key and every layout. Segment data is read when asked for.
class FlatTensorDataMap final : public executorch::ET_RUNTIME_NAMESPACE::NamedDataMap {
 public:
  /// The highest version of the schema that is read; load() refuses later ones.
  static constexpr uint32_t kMaxSupportedSchemaVersion = 0;

  /// `loader` must outlive the map. InvalidExternalData when the bytes are not a sound .ptd file,
  /// else the loader's error.
  static runtime::Result<FlatTensorDataMap> load(runtime::DataLoader* loader);

  /// NotFound without such a key, InvalidArgument when the blob is opaque.
  ET_NODISCARD runtime::Result<const executorch::ET_RUNTIME_NAMESPACE::TensorLayout>
  get_tensor_layout(std::string_view key) const override;

  /// NotFound without such a key.
  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> get_data(
      std::string_view key) const override;

  /// Copies the first `size` bytes. NotFound without such a key, InvalidArgument when the blob has
  /// fewer bytes.
  ET_NODISCARD runtime::Error load_data_into(std::string_view key, void* buffer,
                                             size_t size) const override;

  ET_NODISCARD runtime::Result<uint32_t> get_num_keys() const override;

  /// In the order of the file. InvalidArgument past the end.
  ET_NODISCARD runtime::Result<const char*> get_key(uint32_t index) const override;

  FlatTensorDataMap(FlatTensorDataMap&&) noexcept = default;
  ~FlatTensorDataMap() override = default;

 private:
  using Index = std::unordered_map<std::string_view, const flat_tensor_flatbuffer::NamedData*>;

  FlatTensorDataMap(const FlatTensorHeader& header, runtime::FreeableBuffer&& flatbuffer,
                    const flat_tensor_flatbuffer::FlatTensor* root, runtime::DataLoader* loader,
                    Index&& index)
      : header_(header),
        flatbuffer_(std::move(flatbuffer)),
        root_(root),
        loader_(loader),
        index_(std::move(index)) {}

  runtime::Result<const flat_tensor_flatbuffer::NamedData*> find(std::string_view key) const;
  const flat_tensor_flatbuffer::DataSegment* segment_of(
      const flat_tensor_flatbuffer::NamedData* data) const;

  FlatTensorHeader header_;
  runtime::FreeableBuffer flatbuffer_;
  const flat_tensor_flatbuffer::FlatTensor* root_;
  runtime::DataLoader* loader_;
  Index index_;
};

}  // namespace executorch::extension
