#include <executorch/runtime/executor/pte_data_map.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/schema/program_generated.h>

namespace executorch {
namespace runtime {
namespace internal {

uint32_t PteDataMap::num_keys() const {
  const auto* entries = program_->named_data();
  return entries == nullptr ? 0 : entries->size();
}

Result<const TensorLayout> PteDataMap::get_tensor_layout(std::string_view) const {
  return Error::NotImplemented;
}

Error PteDataMap::load_data_into(std::string_view, void*, size_t) const {
  return Error::NotImplemented;
}

const executorch_flatbuffer::NamedData* PteDataMap::find(std::string_view key) const {
  for (uint32_t i = 0; i < num_keys(); ++i) {
    const auto* entry = program_->named_data()->Get(i);
    if (entry->key()->string_view() == key) {
      return entry;
    }
  }
  return nullptr;
}

Result<FreeableBuffer> PteDataMap::get_data(std::string_view key) const {
  const auto* const entry = find(key);
  if (entry == nullptr) {
    return Error::NotFound;
  }
  const uint32_t index = entry->segment_index();
  const auto* segment = program_->segments()->Get(index);
  return loader_->load(segment_base_offset_ + segment->offset(), segment->size(),
                       DataLoader::SegmentInfo(DataLoader::SegmentInfo::Type::Backend, index,
                                               entry->key()->c_str()));
}

Result<uint32_t> PteDataMap::get_num_keys() const {
  return num_keys();
}

Result<const char*> PteDataMap::get_key(uint32_t index) const {
  ET_CHECK_OR_RETURN_ERROR(index < num_keys(), InvalidArgument,
                           "key %" PRIu32 " asked for, the program has %" PRIu32, index,
                           num_keys());
  return program_->named_data()->Get(index)->key()->c_str();
}

}  // namespace internal
}  // namespace runtime
}  // namespace executorch
