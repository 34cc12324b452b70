#pragma once

#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/named_data_map.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/core/tensor_layout.h>

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#define ET_MERGED_DATA_MAP_NAMESPACE merged_data_map

namespace executorch::extension::ET_MERGED_DATA_MAP_NAMESPACE {

/// Several maps seen as one; keys in the order of the maps. The maps must outlive it.
class MergedDataMap final : public executorch::ET_RUNTIME_NAMESPACE::NamedDataMap {
 public:
  /// Null ones are left out. InvalidArgument when there is no map, or a key appears in two of them.
  static runtime::Result<MergedDataMap> load(
      runtime::Span<const executorch::ET_RUNTIME_NAMESPACE::NamedDataMap*> named_data_maps);

  ET_NODISCARD runtime::Result<const executorch::ET_RUNTIME_NAMESPACE::TensorLayout>
  get_tensor_layout(std::string_view key) const override;
  ET_NODISCARD runtime::Result<runtime::FreeableBuffer> get_data(
      std::string_view key) const override;
  ET_NODISCARD runtime::Error load_data_into(std::string_view key, void* buffer,
                                             size_t size) const override;
  ET_NODISCARD runtime::Result<uint32_t> get_num_keys() const override;
  ET_NODISCARD runtime::Result<const char*> get_key(uint32_t index) const override;

  MergedDataMap(MergedDataMap&&) noexcept = default;
  ~MergedDataMap() override = default;

 private:
  using Map = executorch::ET_RUNTIME_NAMESPACE::NamedDataMap;
  using Index = std::unordered_map<std::string_view, const Map*>;

  MergedDataMap(std::vector<const char*>&& keys, Index&& home)
      : keys_(std::move(keys)), home_(std::move(home)) {}

  runtime::Result<const Map*> home_of(std::string_view key) const;

  std::vector<const char*> keys_;
  Index home_;
};

}  // namespace executorch::extension::ET_MERGED_DATA_MAP_NAMESPACE
