#pragma once

#include <cstddef>
#include <cstdint>

#include <executorch/runtime/core/defines.h>

// X11 defines a macro of this name.
#if defined(__linux__) && defined(None)
#undef None
#endif

namespace executorch::runtime {

#define EXECUTORCH_FORALL_TAGS(_) \
  _(None)                         \
  _(Tensor)                       \
  _(String)                       \
  _(Double)                       \
  _(Int)                          \
  _(Bool)                         \
  _(ListBool)                     \
  _(ListDouble)                   \
  _(ListInt)                      \
  _(ListTensor)                   \
  _(ListScalar)                   \
  _(ListOptionalTensor)

/// The type that an EValue holds.
enum class Tag : uint32_t {
#define DEFINE_TAG(x) x,
  EXECUTORCH_FORALL_TAGS(DEFINE_TAG)
#undef DEFINE_TAG
};

/// Room for every name and its zero byte.
constexpr size_t kTagNameBufferSize = 19;

#if ET_ENABLE_ENUM_STRINGS
/// The enumerator's name; "Unknown" for any other number.
const char* tag_to_string(Tag tag);
#endif

/// Writes the name, cut to `buffer_size` - 1 characters and ended by a zero byte, and returns how
/// many characters it has: `buffer_size` or more if it was cut. Without names compiled in, writes
/// the number.
size_t tag_to_string(Tag tag, char* buffer, size_t buffer_size);

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Tag;
}  // namespace torch::executor
