#include <executorch/backends/xnnpack/runtime/payload_parts.h>

namespace executorch::backends::xnnpack::testing {
namespace {

constexpr size_t kHeaderBytes = 32, kFlatbufferAt = 10, kConstantsAt = 18, kConstantBytesAt = 22;

template <class T>
T read(const Bytes& bytes, size_t at) {
  T value;
  std::memcpy(&value, &bytes[at], sizeof(value));
  return value;
}
template <class T>
void write(Bytes& bytes, size_t at, T value) {
  std::memcpy(&bytes[at], &value, sizeof(value));
}

}  // namespace

Bytes pack_payload(const fb::XNNGraphT& graph, const uint8_t* constants, size_t n) {
  flatbuffers::FlatBufferBuilder fbb;
  fbb.Finish(fb::CreateXNNGraph(fbb, &graph), "XN01");
  Bytes bytes(kHeaderBytes);
  const auto end = static_cast<uint32_t>((kHeaderBytes + fbb.GetSize() + 15) / 16 * 16);
  std::memcpy(&bytes[4], "XH00", 4);
  write(bytes, 8, uint16_t{30});
  write(bytes, kFlatbufferAt, static_cast<uint32_t>(kHeaderBytes));
  write(bytes, kFlatbufferAt + 4, fbb.GetSize());
  write(bytes, kConstantsAt, end);
  write(bytes, kConstantBytesAt, uint64_t{n});
  bytes.resize(end);
  std::memcpy(&bytes[kHeaderBytes], fbb.GetBufferPointer(), fbb.GetSize());
  if (n > 0) bytes.insert(bytes.end(), constants, constants + n);
  return bytes;
}

UnpackedPayload unpack_payload(const Bytes& payload) {
  const auto constants = static_cast<std::ptrdiff_t>(read<uint32_t>(payload, kConstantsAt));
  return {fb::UnPackXNNGraph(&payload[read<uint32_t>(payload, kFlatbufferAt)]),
          Bytes(payload.begin() + constants, payload.end())};
}

Linear::Linear(Random& random) : random_(random) {
  // Extents of windows may have 16 bits, others 31.
  constexpr uint64_t numbers[] = {uint64_t{1} << 15,
                                  uint64_t{1} << 16,
                                  uint64_t{1} << 16,
                                  65535,
                                  uint64_t{1} << 24,
                                  uint64_t{1} << 30,
                                  0x7FFFFFFF,
                                  uint64_t{1} << 31,
                                  0xFFFFFFFF,
                                  uint64_t{1} << 62,
                                  uint64_t{0xAAAAAAAAAAAAAA}};
  n_ = one_in(4, random) ? random() % (1 << (1 + random() % 20)) : any_of(numbers, random);
}

uint32_t Linear::operator()() const {
  // Halves of it are what paddings on two sides are.
  constexpr uint64_t factors[] = {0, 1, 1, 1, 1, 2, 3}, divisors[] = {1, 1, 1, 1, 2, 2, 3, 4};
  const uint64_t multiple = n_ * any_of(factors, random_) / any_of(divisors, random_);
  return static_cast<uint32_t>(multiple + random_() % 7 - 3);
}

}  // namespace executorch::backends::xnnpack::testing
