#include <executorch/extension/named_data_map/merged_data_map.h>
#include <executorch/runtime/core/allocation_failure.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cinttypes>

namespace executorch::extension::ET_MERGED_DATA_MAP_NAMESPACE {

using ET_RUNTIME_NAMESPACE::NamedDataMap;
using ET_RUNTIME_NAMESPACE::TensorLayout;
using runtime::Error;
using runtime::FreeableBuffer;
using runtime::Result;
using runtime::Span;

Result<MergedDataMap> MergedDataMap::load(Span<const NamedDataMap*> named_data_maps) {
  const bool has_map = std::any_of(named_data_maps.begin(), named_data_maps.end(),
                                   [](const NamedDataMap* map) { return map != nullptr; });
  ET_CHECK_OR_RETURN_ERROR(has_map, InvalidArgument, "merged data map: there is no map to merge");
  return runtime::catch_allocation_failure("merged data map", [&]() -> Result<MergedDataMap> {
    std::vector<const char*> keys;
    Index home;
    for (const NamedDataMap* map : named_data_maps) {
      if (map == nullptr) continue;
      ET_ASSIGN_OR_RETURN(const uint32_t n_keys, map->get_num_keys());
      for (uint32_t i = 0; i < n_keys; ++i) {
        ET_ASSIGN_OR_RETURN(const char* key, map->get_key(i));
        ET_CHECK_OR_RETURN_ERROR(home.emplace(key, map).second, InvalidArgument,
                                 "merged data map: key '%s' is in more than one map", key);
        keys.push_back(key);
      }
    }
    return MergedDataMap(std::move(keys), std::move(home));
  });
}

Result<const NamedDataMap*> MergedDataMap::home_of(std::string_view key) const {
  const auto found = home_.find(key);
  if (found == home_.end()) return Error::NotFound;
  return found->second;
}

Result<const TensorLayout> MergedDataMap::get_tensor_layout(std::string_view key) const {
  ET_ASSIGN_OR_RETURN(const Map* map, home_of(key));
  return map->get_tensor_layout(key);
}

Result<FreeableBuffer> MergedDataMap::get_data(std::string_view key) const {
  ET_ASSIGN_OR_RETURN(const Map* map, home_of(key));
  return map->get_data(key);
}

Error MergedDataMap::load_data_into(std::string_view key, void* buffer, size_t size) const {
  ET_ASSIGN_OR_RETURN(const Map* map, home_of(key));
  return map->load_data_into(key, buffer, size);
}

Result<uint32_t> MergedDataMap::get_num_keys() const {
  return static_cast<uint32_t>(keys_.size());
}

Result<const char*> MergedDataMap::get_key(uint32_t index) const {
  ET_CHECK_OR_RETURN_ERROR(index < keys_.size(), InvalidArgument,
                           "merged data map: key %" PRIu32 " of %zu", index, keys_.size());
  return keys_[index];
}

}  // namespace executorch::extension::ET_MERGED_DATA_MAP_NAMESPACE
