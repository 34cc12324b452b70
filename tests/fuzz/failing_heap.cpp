#include "failing_heap.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace failing_heap {
namespace {

std::atomic<size_t> number{0};
std::atomic<size_t> n_allocations{0};
std::atomic<bool> is_armed{false};
std::atomic<bool> failed{false};
std::atomic<size_t> live{0};
thread_local int exempt = 0;

bool fails() {
  if (exempt > 0 || !is_armed) return false;
  if (++n_allocations != number) return false;
  failed = true;
  return true;
}

void* entered(void* memory) {
  if (memory != nullptr) live += malloc_usable_size(memory);
  return memory;
}

void left(void* memory) {
  if (memory != nullptr) live -= malloc_usable_size(memory);
}

void arm(size_t n) {
  number = n;
  n_allocations = 0;
  failed = false;
  is_armed = true;
}

}  // namespace

void fail_at(size_t n) {
  arm(n);
}
void count() {
  arm(0);
}
size_t allocations() {
  return n_allocations;
}
bool has_failed() {
  return failed;
}
size_t live_bytes() {
  return live;
}

NoFailure::NoFailure() {
  ++exempt;
}
NoFailure::~NoFailure() {
  --exempt;
}

}  // namespace failing_heap

using failing_heap::entered;
using failing_heap::fails;
using failing_heap::left;

extern "C" {
void* __real_malloc(size_t size);
void* __real_calloc(size_t n, size_t size);
void* __real_realloc(void* memory, size_t size);
void* __real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void** memory, size_t alignment, size_t size);
void __real_free(void* memory);

void* __wrap_malloc(size_t size) {
  return fails() ? nullptr : entered(__real_malloc(size));
}

void* __wrap_calloc(size_t n, size_t size) {
  return fails() ? nullptr : entered(__real_calloc(n, size));
}

void* __wrap_realloc(void* memory, size_t size) {
  if (fails()) return nullptr;
  left(memory);
  return entered(__real_realloc(memory, size));
}

void* __wrap_aligned_alloc(size_t alignment, size_t size) {
  return fails() ? nullptr : entered(__real_aligned_alloc(alignment, size));
}

int __wrap_posix_memalign(void** memory, size_t alignment, size_t size) {
  if (fails()) return ENOMEM;
  const int error = __real_posix_memalign(memory, alignment, size);
  if (error == 0) entered(*memory);
  return error;
}

void __wrap_free(void* memory) {
  left(memory);
  __real_free(memory);
}
}

namespace {

void* new_or_null(size_t size, size_t alignment) {
  if (fails()) return nullptr;
  void* memory = nullptr;
  const size_t least = std::max<size_t>(size, 1);
  return __real_posix_memalign(&memory, std::max(alignment, sizeof(void*)), least) == 0
             ? entered(memory)
             : nullptr;
}

void* new_or_throw(size_t size, size_t alignment) {
  void* const memory = new_or_null(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

constexpr size_t kDefault = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(size_t size) {
  return new_or_throw(size, kDefault);
}
void* operator new[](size_t size) {
  return new_or_throw(size, kDefault);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return new_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return new_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return new_or_null(size, kDefault);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return new_or_null(size, kDefault);
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return new_or_null(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return new_or_null(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  __wrap_free(memory);
}
void operator delete[](void* memory) noexcept {
  __wrap_free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  __wrap_free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  __wrap_free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  __wrap_free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  __wrap_free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  __wrap_free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  __wrap_free(memory);
}
