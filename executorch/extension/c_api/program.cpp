#include <executorch/extension/c_api/executorch.h>
#include <executorch/extension/c_api/guarded_call.h>
#include <executorch/extension/c_api/handles.h>
#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/threadpool/threadpool.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

namespace executorch::extension::c_api {
namespace {

using runtime::Error;

/// Verifies the program of `module` and makes a handle of it.
Error open(std::shared_ptr<LoadedProgram> loaded, executorch_program** program) {
  ET_CHECK_OK_OR_RETURN_ERROR(loaded->module->load());
  auto names = loaded->module->method_names();
  ET_CHECK_OK_OR_RETURN_ERROR(names.error());
  auto handle = std::make_unique<executorch_program>();
  handle->method_names.assign(names->begin(), names->end());
  std::sort(handle->method_names.begin(), handle->method_names.end());
  handle->loaded = std::move(loaded);
  *program = handle.release();
  return Error::Ok;
}

}  // namespace

void FreeAligned::operator()(void* bytes) const {
  ::operator delete[](bytes, std::align_val_t(kAlignment));
}

AlignedBytes aligned_bytes(size_t n_bytes) {
  // operator new rounds up to the alignment without checking for overflow.
  if (n_bytes > PTRDIFF_MAX) throw std::bad_alloc();
  // Never null, as tensors without elements may not be either.
  const size_t room = n_bytes == 0 ? 1 : n_bytes;
  return AlignedBytes(static_cast<uint8_t*>(::operator new[](room, std::align_val_t(kAlignment))));
}

AlignedBytes aligned_copy(const void* bytes, size_t n_bytes) {
  AlignedBytes copy = aligned_bytes(n_bytes);
  if (n_bytes != 0) std::memcpy(copy.get(), bytes, n_bytes);
  return copy;
}

}  // namespace executorch::extension::c_api

namespace c_api = executorch::extension::c_api;
using c_api::all_given;
using c_api::guarded;
using executorch::extension::Module;
using executorch::runtime::Error;

#define ET_C_STRING(x) #x
#define ET_C_VERSION(x) ET_C_STRING(x)

const char* executorch_version(void) {
  return ET_C_VERSION(EXECUTORCH_VERSION);
}

const char* executorch_last_error(void) {
  return c_api::last_error();
}

void executorch_set_log(executorch_log_function log, void* user) {
  c_api::set_log(log, user);
}

executorch_status executorch_set_threads(uint32_t n) {
  return guarded("executorch_set_threads", [&] {
    ET_CHECK_OR_RETURN_ERROR(n >= 1 && n <= 1024, InvalidArgument,
                             "%" PRIu32 " threads, expected 1 to 1024", n);
    auto* pool = executorch::extension::threadpool::get_threadpool();
    ET_CHECK_OR_RETURN_ERROR(pool != nullptr && pool->_unsafe_reset_threadpool(n), OutOfResources,
                             "no pool of %" PRIu32 " threads can be had", n);
    return Error::Ok;
  });
}

executorch_status executorch_program_load(const char* path, executorch_program** program) {
  return guarded("executorch_program_load", [&] {
    if (!all_given("path and program", path, program)) return Error::InvalidArgument;
    auto loaded = std::make_shared<c_api::LoadedProgram>();
    loaded->module = std::make_unique<Module>(std::string(path), Module::LoadMode::Mmap);
    return c_api::open(std::move(loaded), program);
  });
}

executorch_status executorch_program_load_memory(const void* bytes, size_t n_bytes, int borrow,
                                                 executorch_program** program) {
  return guarded("executorch_program_load_memory", [&] {
    if (!all_given("bytes and program", bytes, program)) return Error::InvalidArgument;
    auto loaded = std::make_shared<c_api::LoadedProgram>();
    if (borrow != 0) {
      ET_CHECK_OR_RETURN_ERROR(reinterpret_cast<uintptr_t>(bytes) % 16 == 0, InvalidArgument,
                               "borrowed bytes at %p, expected a multiple of 16", bytes);
    } else {
      loaded->bytes = c_api::aligned_copy(bytes, n_bytes);
      bytes = loaded->bytes.get();
    }
    loaded->module = std::make_unique<Module>(
        std::make_unique<executorch::extension::BufferDataLoader>(bytes, n_bytes));
    return c_api::open(std::move(loaded), program);
  });
}

void executorch_program_free(executorch_program* program) {
  delete program;
}

executorch_status executorch_program_method_count(const executorch_program* program,
                                                  size_t* count) {
  return guarded("executorch_program_method_count", [&] {
    if (!all_given("program and count", program, count)) return Error::InvalidArgument;
    *count = program->method_names.size();
    return Error::Ok;
  });
}

executorch_status executorch_program_method_name(const executorch_program* program, size_t index,
                                                 const char** name) {
  return guarded("executorch_program_method_name", [&] {
    if (!all_given("program and name", program, name)) return Error::InvalidArgument;
    ET_CHECK_OR_RETURN_ERROR(index < program->method_names.size(), InvalidArgument,
                             "method %zu of %zu", index, program->method_names.size());
    *name = program->method_names[index].c_str();
    return Error::Ok;
  });
}
