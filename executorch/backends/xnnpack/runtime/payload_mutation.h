/// Damages and makes payloads for tests and fuzzing: their bytes, and what their fields say.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace executorch::backends::xnnpack::testing {

using Bytes = std::vector<uint8_t>;
using Random = std::mt19937_64;

/// Some bytes or words of the payload, the header's too, are others.
Bytes mutate_bytes(const Bytes& payload, Random& random);

/// A well-formed payload whose graph says something else in some places: ids, types, extents,
/// quantization, lists, kinds, constants; entries are missing, there twice or in another order.
/// `payload` has a header and was not damaged.
Bytes mutate_fields(const Bytes& payload, Random& random);

/// A well-formed payload in which several fields of a node and its values say multiples of one
/// large number, so that sums and differences of them come out small again. Often what follows the
/// node is left out, so that its result is the graph's.
Bytes mutate_together(const Bytes& payload, Random& random);

/// A graph of a few nodes made from nothing: kinds, types and shapes that go together, with
/// extents, strides, paddings and dilations as above.
Bytes generate_payload(Random& random);

}  // namespace executorch::backends::xnnpack::testing
