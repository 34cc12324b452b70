/// The parts of a payload that is made or changed for tests and fuzzing.
#pragma once

#include <executorch/backends/xnnpack/runtime/payload_mutation.h>
#include <executorch/backends/xnnpack/serialization/schema_generated.h>

#include <iterator>
#include <memory>

namespace executorch::backends::xnnpack::testing {

namespace fb = fb_xnnpack;

/// A header, the graph, and the bytes behind it.
Bytes pack_payload(const fb::XNNGraphT& graph, const uint8_t* constants, size_t n);

struct UnpackedPayload {
  std::unique_ptr<fb::XNNGraphT> graph;
  Bytes constants;
};
/// `payload` has a header and was not damaged.
UnpackedPayload unpack_payload(const Bytes& payload);

/// True once in n times.
inline bool one_in(uint64_t n, Random& random) {
  return random() % n == 0;
}
inline uint32_t below(uint64_t n, Random& random) {
  return static_cast<uint32_t>(random() % n);
}
template <class List>
auto& any_of(List& list, Random& random) {
  return list[random() % std::size(list)];
}

/// Numbers that go together: a * n + b for one large n, small a and b.
class Linear {
 public:
  explicit Linear(Random& random);
  uint32_t operator()() const;
  uint64_t n() const { return n_; }

 private:
  Random& random_;
  uint64_t n_;
};

}  // namespace executorch::backends::xnnpack::testing
