#include <executorch/backends/xnnpack/runtime/payload.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/platform/log.h>

#include <cinttypes>
#include <cstring>

namespace executorch::backends::xnnpack {
namespace {

// Fields of the header, all little endian: magic, u16 header size, u32 flatbuffer offset and size,
// u32 constants offset, u64 constants size.
constexpr size_t kMagicAt = 4, kFlatbufferAt = 10, kConstantsAt = 18, kHeaderBytes = 30;
// A flatbuffer names its version behind the offset of its root.
constexpr size_t kVersionAt = 4, kMinFlatbufferBytes = 8;

template <class T>
T read(const uint8_t* p) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(p[i]) << (8 * i);
  return value;
}

}  // namespace

runtime::Result<Payload> split_payload(const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  Payload payload{{bytes, size}, {}};
  if (size >= kHeaderBytes && std::memcmp(bytes + kMagicAt, "XH00", 4) == 0) {
    const uint64_t offset = read<uint32_t>(bytes + kFlatbufferAt);
    const uint64_t length = read<uint32_t>(bytes + kFlatbufferAt + 4);
    const uint64_t constants = read<uint32_t>(bytes + kConstantsAt);
    const uint64_t constants_length = read<uint64_t>(bytes + kConstantsAt + 4);
    ET_CHECK_OR_RETURN_ERROR(offset >= kHeaderBytes && offset + length <= size &&
                                 constants >= offset + length && constants <= size &&
                                 constants_length <= size - constants,
                             InvalidProgram,
                             "XnnpackBackend: the header names bytes [%" PRIu64 ", +%" PRIu64
                             ") and [%" PRIu64 ", +%" PRIu64 ") of a payload of %zu",
                             offset, length, constants, constants_length, size);
    payload = {{bytes + offset, static_cast<size_t>(length)},
               {bytes + constants, static_cast<size_t>(constants_length)}};
  }
  const auto flatbuffer = payload.flatbuffer;
  ET_CHECK_OR_RETURN_ERROR(flatbuffer.size() >= kMinFlatbufferBytes, InvalidProgram,
                           "XnnpackBackend: a payload of %zu bytes holds no graph", size);
  const uint8_t* version = flatbuffer.data() + kVersionAt;
  ET_CHECK_OR_RETURN_ERROR(
      std::memcmp(version, "XN00", 4) == 0 || std::memcmp(version, "XN01", 4) == 0,
      DelegateInvalidCompatibility,
      "XnnpackBackend: the payload has version %02x%02x%02x%02x, expected \"XN00\" or \"XN01\"",
      version[0], version[1], version[2], version[3]);
  return payload;
}

}  // namespace executorch::backends::xnnpack
