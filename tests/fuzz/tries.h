/// Many tries, each of which depends on its seed alone, in processes that findings may end.
#pragma once

#include <cstdint>
#include <functional>

namespace executorch::fuzz {

enum class Verdict { Refused, Taken, TooSlow };
using Try = std::function<Verdict(uint64_t seed)>;

struct Plan {
  uint64_t seed = 1;
  /// Tries, or seconds: whichever ends first; 0 seconds: no limit.
  uint64_t rounds = ~uint64_t{0};
  double seconds = 0;
  /// Goes on behind each finding, in another process, and lists those that differ.
  bool keep_going = false;
};

struct Outcome {
  uint64_t tried = 0, refused = 0, taken = 0, findings = 0;
};

/// Tries seeds from plan.seed on. A finding is a signal, an abort, what a sanitizer reports, a try
/// that takes too long or does not end; it is printed with its seed and its places in the
/// executable, for addr2line. The first one ends this process with status 1 unless the plan says to
/// keep going.
Outcome run(const Plan& plan, const Try& attempt);

/// Ends the process as a finding does.
[[noreturn]] void fail(const char* what);

}  // namespace executorch::fuzz
