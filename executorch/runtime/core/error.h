/// Errors are values: a function that can fail returns Error, or Result<T> (result.h).
#pragma once

#include <stdint.h>

#include <executorch/runtime/platform/log.h>

namespace executorch::runtime {

typedef uint32_t error_code_t;

/// The numbers are part of the interface. 0x0_ state of the runtime, 0x1_ what the caller asked,
/// 0x2_ resources and files, 0x3_ delegates.
enum class [[nodiscard]] Error : error_code_t{
    /// Success.
    Ok = 0x00,
    /// A defect of the runtime itself.
    Internal = 0x01,
    /// The object is not in a state in which this can be done.
    InvalidState = 0x02,
    /// Stepping has reached the end of the method.
    EndOfMethod = 0x03,
    /// The resource was loaded before.
    AlreadyLoaded = 0x04,

    /// This can never be done here.
    NotSupported = 0x10,
    /// This is not written yet.
    NotImplemented = 0x11,
    /// An argument has a value that is not allowed.
    InvalidArgument = 0x12,
    /// An object is not of the type that is needed.
    InvalidType = 0x13,
    /// The program calls an operator that no kernel is registered for.
    OperatorMissing = 0x14,
    /// The kernel table is full.
    RegistrationExceedingMaxKernels = 0x15,
    /// The name (and key) is taken.
    RegistrationAlreadyRegistered = 0x16,

    /// There is nothing of that name.
    NotFound = 0x20,
    /// Memory could not be had.
    MemoryAllocationFailed = 0x21,
    /// A file or another source could not be read.
    AccessFailed = 0x22,
    /// The program's bytes are damaged or contradict themselves.
    InvalidProgram = 0x23,
    /// The bytes of data beside the program are damaged or contradict themselves.
    InvalidExternalData = 0x24,
    /// A limit other than memory is used up.
    OutOfResources = 0x25,

    /// A delegate cannot read its blob: wrong version or format.
    DelegateInvalidCompatibility = 0x30,
    /// A delegate could not allocate.
    DelegateMemoryAllocationFailed = 0x31,
    /// A delegate got a handle that is not its own.
    DelegateInvalidHandle = 0x32,
};

/// "Error::<Name>"; "Error::Unknown" for any other number.
constexpr const char* to_string(const Error error) {
  switch (error) {
    case Error::Ok:
      return "Error::Ok";
    case Error::Internal:
      return "Error::Internal";
    case Error::InvalidState:
      return "Error::InvalidState";
    case Error::EndOfMethod:
      return "Error::EndOfMethod";
    case Error::AlreadyLoaded:
      return "Error::AlreadyLoaded";
    case Error::NotSupported:
      return "Error::NotSupported";
    case Error::NotImplemented:
      return "Error::NotImplemented";
    case Error::InvalidArgument:
      return "Error::InvalidArgument";
    case Error::InvalidType:
      return "Error::InvalidType";
    case Error::OperatorMissing:
      return "Error::OperatorMissing";
    case Error::RegistrationExceedingMaxKernels:
      return "Error::RegistrationExceedingMaxKernels";
    case Error::RegistrationAlreadyRegistered:
      return "Error::RegistrationAlreadyRegistered";
    case Error::NotFound:
      return "Error::NotFound";
    case Error::MemoryAllocationFailed:
      return "Error::MemoryAllocationFailed";
    case Error::AccessFailed:
      return "Error::AccessFailed";
    case Error::InvalidProgram:
      return "Error::InvalidProgram";
    case Error::InvalidExternalData:
      return "Error::InvalidExternalData";
    case Error::OutOfResources:
      return "Error::OutOfResources";
    case Error::DelegateInvalidCompatibility:
      return "Error::DelegateInvalidCompatibility";
    case Error::DelegateMemoryAllocationFailed:
      return "Error::DelegateMemoryAllocationFailed";
    case Error::DelegateInvalidHandle:
      return "Error::DelegateInvalidHandle";
  }
  return "Error::Unknown";
}

}  // namespace executorch::runtime

namespace torch::executor {
using ::executorch::runtime::Error;
using ::executorch::runtime::error_code_t;
using ::executorch::runtime::to_string;
}  // namespace torch::executor

/// Unless `cond__`, logs the message and returns Error::error__ (the bare enumerator name) from
/// the calling function, which returns Error or Result.
#define ET_CHECK_OR_RETURN_ERROR(cond__, error__, message__, ...) \
  do {                                                            \
    if (!(cond__)) {                                              \
      ET_LOG(Error, message__, ##__VA_ARGS__);                    \
      return ::executorch::runtime::Error::error__;               \
    }                                                             \
  } while (false)

/// Unless `cond__`, logs the message and returns false.
#define ET_CHECK_OR_RETURN_FALSE(cond__, message__, ...)                      \
  do {                                                                        \
    if (!(cond__)) {                                                          \
      ET_LOG(Error, "Check failed (%s): " message__, #cond__, ##__VA_ARGS__); \
      return false;                                                           \
    }                                                                         \
  } while (false)

/// (expr) or (expr, format, ...): when the Error `expr` is not Ok, logs the message if there is
/// one and returns that error.
#define ET_CHECK_OK_OR_RETURN_ERROR(error__, ...)              \
  do {                                                         \
    const ::executorch::runtime::Error et_error__ = (error__); \
    if (et_error__ != ::executorch::runtime::Error::Ok) {      \
      ET_INTERNAL_LOG_IF_GIVEN(_, ##__VA_ARGS__)               \
      return et_error__;                                       \
    }                                                          \
  } while (false)

// Expands to ET_LOG(Error, ...) for arguments behind the first and to nothing for none. (Without a
// named parameter, strict modes of the preprocessor would keep the comma before nothing.)
#define ET_INTERNAL_LOG_IF_GIVEN(anchor, ...)                                                \
  ET_INTERNAL_PICK(anchor, ##__VA_ARGS__, ET_INTERNAL_LOG, ET_INTERNAL_LOG, ET_INTERNAL_LOG, \
                   ET_INTERNAL_LOG, ET_INTERNAL_LOG, ET_INTERNAL_LOG, ET_INTERNAL_LOG,       \
                   ET_INTERNAL_LOG, ET_INTERNAL_LOG, ET_INTERNAL_LOG, ET_INTERNAL_LOG,       \
                   ET_INTERNAL_LOG, ET_INTERNAL_NO_LOG, _)                                   \
  (__VA_ARGS__)
#define ET_INTERNAL_PICK(_0, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, pick, ...) pick
#define ET_INTERNAL_LOG(...) ET_LOG(Error, __VA_ARGS__);
#define ET_INTERNAL_NO_LOG(...)
