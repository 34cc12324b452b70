/// The outer form of a payload: "XH00" header, flatbuffer, constants; or a bare flatbuffer.
#pragma once

#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>

#include <cstddef>
#include <cstdint>

namespace executorch::backends::xnnpack {

struct Payload {
  runtime::Span<const uint8_t> flatbuffer;
  runtime::Span<const uint8_t> constants;
};

/// Finds the parts in `size` bytes. Their contents are not looked at, but that the flatbuffer says
/// to be of a version we know: else DelegateInvalidCompatibility. InvalidProgram: a part is not
/// inside.
runtime::Result<Payload> split_payload(const void* data, size_t size);

}  // namespace executorch::backends::xnnpack
