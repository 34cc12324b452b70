#pragma once

#include <cstddef>

/// A heap one of whose allocations fails: malloc and its kin by the linker's --wrap, operator new
/// by replacement. Allocations of the harness itself stand in the scope of a NoFailure.
namespace failing_heap {

/// The allocation with this number from now on, 1 for the next one, fails once, whichever thread
/// asks for it; 0: none.
void fail_at(size_t number);
/// Counts allocations, none of which fails, from now on.
void count();
/// Allocations since fail_at() or count().
size_t allocations();
/// Whether the failure has happened.
bool has_failed();
/// Bytes that are allocated now.
size_t live_bytes();

class NoFailure {
 public:
  NoFailure();
  ~NoFailure();
  NoFailure(const NoFailure&) = delete;
  NoFailure& operator=(const NoFailure&) = delete;
};

}  // namespace failing_heap
