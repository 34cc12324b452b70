/// Damages payloads for tests and fuzzing: their bytes, and what their fields say.
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
/// quantisation, lists, kinds, constants; entries are missing, there twice or in another order.
/// `payload` has a header and was not damaged.
Bytes mutate_fields(const Bytes& payload, Random& random);

}  // namespace executorch::backends::xnnpack::testing
