#include <executorch/runtime/backend/interface.h>

#include <cstring>

namespace executorch::ET_RUNTIME_NAMESPACE {
namespace {

constexpr size_t kMaxBackends = 16;

// All zero before the program starts: backends are registered by static initialisers.
Backend backends[kMaxBackends];
size_t n_backends = 0;

}  // namespace

BackendInterface* get_backend_class(const char* name) {
  for (size_t i = 0; name != nullptr && i < n_backends; ++i) {
    if (std::strcmp(backends[i].name, name) == 0) return backends[i].backend;
  }
  return nullptr;
}

Error register_backend(const Backend& backend) {
  ET_CHECK_OR_RETURN_ERROR(backend.name != nullptr && backend.backend != nullptr, InvalidArgument,
                           "register_backend: a row without name or object");
  const BackendInterface* present = get_backend_class(backend.name);
  if (present == backend.backend) return Error::Ok;
  ET_CHECK_OR_RETURN_ERROR(present == nullptr, InvalidArgument,
                           "register_backend: %s is registered already", backend.name);
  ET_CHECK_OR_RETURN_ERROR(n_backends < kMaxBackends, Internal,
                           "register_backend: no room for %s beside %zu others", backend.name,
                           n_backends);
  backends[n_backends++] = backend;
  return Error::Ok;
}

size_t get_num_registered_backends() {
  return n_backends;
}

Result<const char*> get_backend_name(size_t index) {
  ET_CHECK_OR_RETURN_ERROR(index < n_backends, InvalidArgument, "backend %zu of %zu", index,
                           n_backends);
  return backends[index].name;
}

Error set_option(const char* backend_name, const Span<BackendOption> backend_options) {
  BackendInterface* backend = get_backend_class(backend_name);
  ET_CHECK_OR_RETURN_ERROR(backend != nullptr, NotFound, "set_option: no backend %s", backend_name);
  BackendOptionContext context;
  return backend->set_option(context, backend_options);
}

Error get_option(const char* backend_name, Span<BackendOption> backend_options) {
  BackendInterface* backend = get_backend_class(backend_name);
  ET_CHECK_OR_RETURN_ERROR(backend != nullptr, NotFound, "get_option: no backend %s", backend_name);
  BackendOptionContext context;
  return backend->get_option(context, backend_options);
}

}  // namespace executorch::ET_RUNTIME_NAMESPACE
