#pragma once

#include <executorch/extension/llm/tokenizers/log.h>

#include <cstdint>

namespace tokenizers {

typedef uint32_t error_code_t;

enum class Error : error_code_t {
  /// It worked.
  Ok = 0x00,
  /// The library itself is in a state that it should never reach.
  Internal = 0x01,
  /// Nothing has been loaded yet.
  Uninitialized = 0x02,
  /// A token or a text that the vocabulary does not have.
  OutOfRange = 0x03,
  /// The file cannot be read.
  LoadFailure = 0x04,
  /// The text cannot be encoded.
  EncodeFailure = 0x05,
  /// The text is not base64.
  Base64DecodeFailure = 0x06,
  /// The file was read, but its content is not what the tokenizer expects.
  ParseFailure = 0x07,
  /// The token cannot be decoded.
  DecodeFailure = 0x08,
  /// The pattern is not a regular expression that the engine knows.
  RegexFailure = 0x09,
};

/// What an error means, as a sentence without its end.
inline const char* to_string(Error error) {
  switch (error) {
    case Error::Ok:
      return "it worked";
    case Error::Internal:
      return "the tokenizer is in a state that it should never reach";
    case Error::Uninitialized:
      return "no tokenizer has been loaded yet";
    case Error::OutOfRange:
      return "the vocabulary does not have the token or the text";
    case Error::LoadFailure:
      return "the file cannot be read";
    case Error::EncodeFailure:
      return "the text cannot be encoded";
    case Error::Base64DecodeFailure:
      return "the text is not base64";
    case Error::ParseFailure:
      return "the content of the file is not what the tokenizer expects";
    case Error::DecodeFailure:
      return "the token cannot be decoded";
    case Error::RegexFailure:
      return "the pattern is not a regular expression that the engine knows";
  }
  return "the error is not known";
}

}  // namespace tokenizers

/// Logs the message (format and arguments as of printf) and returns `error__` where `cond__` is
/// false.
#define TK_CHECK_OR_RETURN_ERROR(cond__, error__, message__, ...) \
  {                                                               \
    if (!(cond__)) {                                              \
      TK_LOG(Error, message__, ##__VA_ARGS__);                    \
      return ::tokenizers::Error::error__;                        \
    }                                                             \
  }

/// Returns `error__` unless it is Ok.
#define TK_CHECK_OK_OR_RETURN_ERROR(error__)                  \
  do {                                                        \
    const ::tokenizers::Error tk_checked_error__ = (error__); \
    if (tk_checked_error__ != ::tokenizers::Error::Ok) {      \
      return tk_checked_error__;                              \
    }                                                         \
  } while (0)
