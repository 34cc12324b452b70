#include <executorch/runtime/backend/backend_options_map.h>

#include <cstring>

namespace executorch::runtime {

const LoadBackendOptionsMap::Entry* LoadBackendOptionsMap::find(const char* backend_id) const {
  for (size_t i = 0; backend_id != nullptr && i < size_; ++i) {
    if (std::strcmp(entries_[i].backend_id, backend_id) == 0) return &entries_[i];
  }
  return nullptr;
}

Error LoadBackendOptionsMap::set_options(const char* backend_id, Span<BackendOption> options) {
  ET_CHECK_OR_RETURN_ERROR(backend_id != nullptr && backend_id[0] != '\0', InvalidArgument,
                           "backend options: the backend has no name");
  const size_t bytes = std::strlen(backend_id) + 1;
  ET_CHECK_OR_RETURN_ERROR(bytes <= kMaxBackendIdLength, InvalidArgument,
                           "backend options: the name %s has more than %zu bytes", backend_id,
                           kMaxBackendIdLength - 1);
  auto* entry = const_cast<Entry*>(find(backend_id));
  if (entry == nullptr) {
    ET_CHECK_OR_RETURN_ERROR(size_ < kMaxBackends, InvalidArgument,
                             "backend options: no room for %s beside %zu backends", backend_id,
                             size_);
    entry = &entries_[size_++];
    std::memcpy(entry->backend_id, backend_id, bytes);
  }
  entry->options = {options.data(), options.size()};
  return Error::Ok;
}

Span<const BackendOption> LoadBackendOptionsMap::get_options(const char* backend_id) const {
  const Entry* entry = find(backend_id);
  return entry != nullptr ? entry->options : Span<const BackendOption>();
}

bool LoadBackendOptionsMap::has_options(const char* backend_id) const {
  return find(backend_id) != nullptr;
}

LoadBackendOptionsMap::EntryView LoadBackendOptionsMap::entry_at(size_t index) const {
  EntryView view;
  if (index < size_) {
    view.backend_id = entries_[index].backend_id;
    view.options = entries_[index].options;
  }
  return view;
}

}  // namespace executorch::runtime
