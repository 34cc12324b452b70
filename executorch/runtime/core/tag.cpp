#include <executorch/runtime/core/tag.h>

#include <stdio.h>

namespace executorch::runtime {

#if ET_ENABLE_ENUM_STRINGS
const char* tag_to_string(Tag tag) {
  static constexpr const char* kNames[] = {
#define TAG_NAME(x) #x,
      EXECUTORCH_FORALL_TAGS(TAG_NAME)
#undef TAG_NAME
  };
  const auto index = static_cast<size_t>(tag);
  return index < sizeof(kNames) / sizeof(kNames[0]) ? kNames[index] : "Unknown";
}
#endif

size_t tag_to_string(Tag tag, char* buffer, size_t buffer_size) {
#if ET_ENABLE_ENUM_STRINGS
  const int needed = snprintf(buffer, buffer_size, "%s", tag_to_string(tag));
#else
  const int needed = snprintf(buffer, buffer_size, "Tag::%d", static_cast<int>(tag));
#endif
  return needed < 0 ? 0 : static_cast<size_t>(needed);
}

}  // namespace executorch::runtime
