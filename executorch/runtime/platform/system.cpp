#include <executorch/runtime/platform/system.h>

#if defined(__linux__) || defined(__APPLE__)
#include <dlfcn.h>

extern "C" const char* et_pal_get_shared_library_name(const void* addr) {
  Dl_info info;
  return dladdr(addr, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname
                                                               : DYNAMIC_LIBRARY_NOT_FOUND;
}
#else
extern "C" const char* et_pal_get_shared_library_name(const void*) {
  return DYNAMIC_LIBRARY_NOT_SUPPORTED;
}
#endif
