#pragma once

#include <executorch/runtime/core/named_data_map.h>

namespace executorch::runtime::internal {

/// Two maps as one; keys are looked up in the first map first. Borrows both.
class MergedDataMap final : public NamedDataMap {
 public:
  /// InvalidArgument if a tensor of `first` has a key that `second` knows as a tensor too. (Opaque
  /// data has no layout to find it by and may be shadowed.)
  static Result<MergedDataMap> load(const NamedDataMap* first, const NamedDataMap* second);

  Result<const TensorLayout> get_tensor_layout(std::string_view key) const override;
  Result<FreeableBuffer> get_data(std::string_view key) const override;
  Error load_data_into(std::string_view key, void* buffer, size_t size) const override;
  /// The keys of `first`, then those of `second`.
  Result<uint32_t> get_num_keys() const override;
  Result<const char*> get_key(uint32_t index) const override;

 private:
  MergedDataMap(const NamedDataMap* first, uint32_t first_keys, const NamedDataMap* second,
                uint32_t second_keys)
      : first_(first), second_(second), first_keys_(first_keys), second_keys_(second_keys) {}

  const NamedDataMap* first_;
  const NamedDataMap* second_;
  uint32_t first_keys_;
  uint32_t second_keys_;
};

}  // namespace executorch::runtime::internal
