#include <executorch/runtime/executor/merged_data_map.h>
#include <executorch/runtime/platform/log.h>

namespace executorch::runtime::internal {

Result<MergedDataMap> MergedDataMap::load(const NamedDataMap* first, const NamedDataMap* second) {
  ET_CHECK_OR_RETURN_ERROR(first != nullptr && second != nullptr, InvalidArgument,
                           "a named data map is null");
  ET_ASSIGN_OR_RETURN(const uint32_t first_keys, first->get_num_keys());
  ET_ASSIGN_OR_RETURN(const uint32_t second_keys, second->get_num_keys());
  for (uint32_t i = 0; i < first_keys; ++i) {
    ET_ASSIGN_OR_RETURN(const char* const key, first->get_key(i));
    ET_CHECK_OR_RETURN_ERROR(!second->get_tensor_layout(key).ok(), InvalidArgument,
                             "named data %s is in two places; keys must be unique", key);
  }
  return MergedDataMap(first, first_keys, second, second_keys);
}

Result<const TensorLayout> MergedDataMap::get_tensor_layout(std::string_view key) const {
  auto layout = first_->get_tensor_layout(key);
  return layout.error() == Error::NotFound ? second_->get_tensor_layout(key) : std::move(layout);
}

Result<FreeableBuffer> MergedDataMap::get_data(std::string_view key) const {
  auto data = first_->get_data(key);
  return data.error() == Error::NotFound ? second_->get_data(key) : std::move(data);
}

Error MergedDataMap::load_data_into(std::string_view key, void* buffer, size_t size) const {
  const Error error = first_->load_data_into(key, buffer, size);
  return error == Error::NotFound ? second_->load_data_into(key, buffer, size) : error;
}

Result<uint32_t> MergedDataMap::get_num_keys() const {
  return first_keys_ + second_keys_;
}

Result<const char*> MergedDataMap::get_key(uint32_t index) const {
  return index < first_keys_ ? first_->get_key(index) : second_->get_key(index - first_keys_);
}

}  // namespace executorch::runtime::internal
