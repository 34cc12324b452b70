/// What a payload's nodes say, whatever their kind.
#pragma once

#include <executorch/backends/xnnpack/runtime/operation.h>
#include <executorch/backends/xnnpack/runtime/payload_parts.h>

namespace executorch::backends::xnnpack::testing {

/// Borrowed from a node's table.
struct Fields {
  /// Values that it reads and computes.
  std::vector<uint32_t*> inputs, outputs;
  /// Extents, strides, paddings and other counts; flags.
  std::vector<uint32_t*> amounts, flags;
  std::vector<float*> floats;
  std::vector<std::vector<uint32_t>*> lists;
};
Fields fields_of(fb::XNodeUnionUnion& node);

/// All that the runtime has.
std::vector<fb::XNodeUnion> kinds_of(std::initializer_list<Form> forms);

/// Another kind whose table has the same fields.
void mutate_kind(fb::XNodeUnion& kind, Random& random);

}  // namespace executorch::backends::xnnpack::testing
