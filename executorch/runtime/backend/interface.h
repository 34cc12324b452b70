#pragma once

#include <cstddef>

#include <executorch/runtime/backend/backend_execution_context.h>
#include <executorch/runtime/backend/backend_init_context.h>
#include <executorch/runtime/backend/backend_option_context.h>
#include <executorch/runtime/backend/options.h>
#include <executorch/runtime/core/array_ref.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/evalue.h>
#include <executorch/runtime/core/freeable_buffer.h>
#include <executorch/runtime/core/result.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/platform/compiler.h>

namespace executorch::ET_RUNTIME_NAMESPACE {

struct SizedBuffer {
  void* buffer;
  /// Bytes of `buffer`.
  size_t nbytes;
};

/// A setting that the exporter stored with a delegated part.
struct CompileSpec {
  const char* key;
  SizedBuffer value;
};

/// The object that a backend makes of one delegated part. Only the backend knows its type.
using DelegateHandle = void;

/// A backend runs the parts of programs that were lowered for it. One object serves all parts of
/// all programs.
///
/// Every virtual function is inline: backends compiled with RTTI need the type's information, which
/// the library, compiled without, does not have.
class BackendInterface {
 public:
  virtual ~BackendInterface() = default;

  /// Whether it can run on this machine.
  ET_NODISCARD virtual bool is_available() const = 0;

  /// Prepares a delegated part. `processed` is the exporter's blob, which the backend frees when
  /// it needs it no more; `compile_specs` live until this returns. What is allocated from the
  /// context lives as long as the method.
  ET_NODISCARD virtual Result<DelegateHandle*> init(BackendInitContext& context,
                                                    FreeableBuffer* processed,
                                                    ArrayRef<CompileSpec> compile_specs) const = 0;

  /// Runs it. `args` are the inputs, then the outputs, which it writes and resizes. They come from
  /// a file: what is written goes to runtime::internal::writable_data(), which refuses constants.
  ET_NODISCARD virtual Error execute(BackendExecutionContext& context, DelegateHandle* handle,
                                     Span<EValue*> args) const = 0;

  /// Whether execute() writes args[index] of `n_args`. A method is refused while it is loaded if
  /// such an argument is no tensor, is a constant, or stands twice among those of one call; before
  /// each call the runtime checks again, as a move may have put a constant there. Fusion knows by
  /// it what a call computes, so that operators around the call are fused. The default, false,
  /// means that execute() has to check what it writes.
  virtual bool writes_argument(const DelegateHandle* /*handle*/, size_t /*index*/,
                               size_t /*n_args*/) const {
    return false;
  }

  /// Changes settings, and writes their present values into the given options. Both ignore what
  /// they do not know, and do nothing unless overridden.
  ET_NODISCARD virtual Error set_option(BackendOptionContext& /*context*/,
                                        const runtime::Span<BackendOption>& /*backend_options*/) {
    return Error::Ok;
  }
  ET_NODISCARD virtual Error get_option(BackendOptionContext& /*context*/,
                                        runtime::Span<BackendOption>& /*backend_options*/) {
    return Error::Ok;
  }

  /// Destroys what init() made. Called once, when the method is destroyed or its loading fails
  /// later. Memory from the init context's allocator must not be freed.
  virtual void destroy(DelegateHandle* handle) const { (void)handle; }
};

/// A backend's name in programs, and the object. Both must live until the process ends.
struct Backend {
  const char* name;
  BackendInterface* backend;
};

/// Null when there is none of that name.
BackendInterface* get_backend_class(const char* name);

/// There is room for 16. The same row again is Ok; another object under a name that is taken is
/// InvalidArgument, a null name or object too; Internal when the table is full. Not thread-safe;
/// meant for start-up.
ET_NODISCARD Error register_backend(const Backend& backend);

size_t get_num_registered_backends();
/// InvalidArgument past the end.
Result<const char*> get_backend_name(size_t index);

/// set_option() and get_option() of the backend of that name; NotFound when there is none.
Error set_option(const char* backend_name,
                 const runtime::Span<runtime::BackendOption> backend_options);
Error get_option(const char* backend_name, runtime::Span<runtime::BackendOption> backend_options);

}  // namespace executorch::ET_RUNTIME_NAMESPACE

namespace torch::executor {
using ::executorch::ET_RUNTIME_NAMESPACE::Backend;
using ::executorch::ET_RUNTIME_NAMESPACE::CompileSpec;
using ::executorch::ET_RUNTIME_NAMESPACE::DelegateHandle;
using ::executorch::ET_RUNTIME_NAMESPACE::get_backend_class;
using ::executorch::ET_RUNTIME_NAMESPACE::register_backend;
using ::executorch::ET_RUNTIME_NAMESPACE::SizedBuffer;
using PyTorchBackendInterface = ::executorch::ET_RUNTIME_NAMESPACE::BackendInterface;
}  // namespace torch::executor
