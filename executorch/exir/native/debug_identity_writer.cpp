#include <executorch/exir/native/borrowed_bytes.h>
#include <executorch/exir/native/debug_identity_writer.h>
#include <executorch/exir/native/python_fields.h>
#include <executorch/schema/debug_identity_generated.h>

#include <cstring>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;
namespace fb = executorch_flatbuffer;

namespace executorch::exir {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

/// The numbers of 32 bits, or structs of them, that a buffer holds one after the other.
template <typename T>
std::vector<T> items_of(nb::handle buffer) {
  const BorrowedBytes bytes(buffer);
  if (bytes.size() % sizeof(T) != 0) {
    throw std::invalid_argument("debug identity: a vector ends inside an entry");
  }
  std::vector<T> items(bytes.size() / sizeof(T));
  if (!items.empty()) std::memcpy(items.data(), bytes.data(), bytes.size());
  return items;
}

template <typename T>
Offset<flatbuffers::Vector<const T*>> structs(FlatBufferBuilder& builder, nb::handle buffer) {
  return builder.CreateVectorOfStructs(items_of<T>(buffer));
}

Offset<flatbuffers::Vector<uint32_t>> numbers(FlatBufferBuilder& builder, nb::handle buffer) {
  return builder.CreateVector(items_of<uint32_t>(buffer));
}

Offset<fb::DelegateCallIdentity> delegate_call(FlatBufferBuilder& builder, nb::handle entry) {
  const auto by_id = structs<fb::DelegatedOrigin>(builder, entry[1]);
  const auto by_name = structs<fb::DelegatedOrigin>(builder, entry[2]);
  const auto instruction = to_int<uint32_t>(entry[0], "DelegateCallIdentity.instruction");
  return fb::CreateDelegateCallIdentity(builder, instruction, by_id, by_name);
}

Offset<fb::ChainIdentity> chain(FlatBufferBuilder& builder, nb::handle entry) {
  const auto origins = structs<fb::Origin>(builder, entry[0]);
  const auto calls = builder.CreateVector(
      to_vector(entry[1], [&](nb::handle call) { return delegate_call(builder, call); }));
  return fb::CreateChainIdentity(builder, origins, calls);
}

}  // namespace

nb::bytes write_debug_identity(nb::handle strings, nb::handle places, nb::handle methods) {
  FlatBufferBuilder builder;
  const auto texts = builder.CreateVector(
      to_vector(strings, [&](nb::handle text) { return add_string(builder, text); }));
  const auto place_list = structs<fb::Place>(builder, places);
  const auto method_list = builder.CreateVector(to_vector(methods, [&](nb::handle entry) {
    const auto name = add_string(builder, entry[0]);
    const auto chains = builder.CreateVector(
        to_vector(entry[1], [&](nb::handle part) { return chain(builder, part); }));
    const auto inputs = numbers(builder, entry[2]);
    const auto outputs = numbers(builder, entry[3]);
    return fb::CreateMethodIdentity(builder, name, chains, inputs, outputs,
                                    nb::cast<bool>(entry[4]));
  }));
  fb::FinishDebugIdentityBuffer(builder,
                                fb::CreateDebugIdentity(builder, texts, place_list, method_list));
  return nb::bytes(builder.GetBufferPointer(), builder.GetSize());
}

}  // namespace executorch::exir
