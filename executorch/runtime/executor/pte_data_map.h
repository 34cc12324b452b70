#pragma once

#include <executorch/runtime/core/data_loader.h>
#include <executorch/runtime/core/named_data_map.h>

namespace executorch_flatbuffer {
struct NamedData;
struct Program;
}  // namespace executorch_flatbuffer

namespace executorch::runtime::internal {

/// The named data inside a program: opaque bytes without a tensor layout, one segment per key.
/// Needs a validated program; borrows it and the loader.
class PteDataMap final : public NamedDataMap {
 public:
  PteDataMap(const DataLoader* loader, uint64_t segment_base_offset,
             const executorch_flatbuffer::Program* program)
      : loader_(loader), segment_base_offset_(segment_base_offset), program_(program) {}

  /// Sorts the keys' indices into `order`, which must have room for all keys and outlive the map,
  /// and uses it for look-ups from then on. Many look-ups, such as a delegate's, are then fast even
  /// if there are many keys.
  void sort(uint32_t* order);

  /// NotImplemented for every key: the data are bytes, only ever used where they lie.
  Result<const TensorLayout> get_tensor_layout(std::string_view key) const override;
  Error load_data_into(std::string_view key, void* buffer, size_t size) const override;
  /// Loads the key's segment; NotFound if there is no such key.
  Result<FreeableBuffer> get_data(std::string_view key) const override;
  Result<uint32_t> get_num_keys() const override;
  /// InvalidArgument if the index is out of range.
  Result<const char*> get_key(uint32_t index) const override;

  /// Null if there is no such key.
  const executorch_flatbuffer::NamedData* find(std::string_view key) const;

 private:
  uint32_t num_keys() const;

  const DataLoader* loader_;
  uint64_t segment_base_offset_;
  const executorch_flatbuffer::Program* program_;
  const uint32_t* order_ = nullptr;
};

}  // namespace executorch::runtime::internal
