#include <executorch/runtime/executor/pte_data_map.h>
#include <executorch/runtime/platform/log.h>
#include <executorch/schema/program_generated.h>

#include <algorithm>

namespace executorch::runtime::internal {

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

void PteDataMap::sort(uint32_t* order) {
  const auto& entries = *program_->named_data();
  const auto key = [&](uint32_t i) { return entries.Get(i)->key()->string_view(); };
  for (uint32_t i = 0; i < num_keys(); ++i) order[i] = i;
  const auto is_less = [&](uint32_t a, uint32_t b) {
    const int difference = key(a).compare(key(b));
    return difference != 0 ? difference < 0 : a < b;
  };
  // As std::sort, by less code.
  std::make_heap(order, order + num_keys(), is_less);
  std::sort_heap(order, order + num_keys(), is_less);
  order_ = order;
}

const executorch_flatbuffer::NamedData* PteDataMap::find(std::string_view key) const {
  if (order_ != nullptr) {
    const auto& entries = *program_->named_data();
    const uint32_t* const end = order_ + num_keys();
    const uint32_t* const found =
        std::lower_bound(order_, end, key, [&](uint32_t i, std::string_view wanted) {
          return entries.Get(i)->key()->string_view() < wanted;
        });
    const auto* const entry = found == end ? nullptr : entries.Get(*found);
    return entry != nullptr && entry->key()->string_view() == key ? entry : nullptr;
  }
  for (uint32_t i = 0; i < num_keys(); ++i) {
    const auto* entry = program_->named_data()->Get(i);
    if (entry->key()->string_view() == key) return entry;
  }
  return nullptr;
}

Result<FreeableBuffer> PteDataMap::get_data(std::string_view key) const {
  const auto* const entry = find(key);
  if (entry == nullptr) return Error::NotFound;
  const uint32_t index = entry->segment_index();
  const auto* segment = program_->segments()->Get(index);
  return load_exactly(*loader_, segment_base_offset_ + segment->offset(), segment->size(),
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

}  // namespace executorch::runtime::internal
