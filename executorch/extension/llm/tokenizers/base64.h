#pragma once

#include <executorch/extension/llm/tokenizers/result.h>

#include <string>
#include <string_view>

namespace base64 {

using tokenizers::Error;
using tokenizers::Result;

/// The bytes of base64 (RFC 4648, with padding); Base64DecodeFailure for anything else.
tokenizers::Result<std::string> decode(const std::string_view& input);

}  // namespace base64
