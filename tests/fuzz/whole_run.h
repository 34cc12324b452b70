#pragma once

#include <executorch/runtime/core/error.h>

#include <memory>
#include <string>
#include <vector>

/// A program from its file to its outputs, in one of several ways that users have.

struct ProgramFile {
  std::string path;
  /// Without folder and extension.
  std::string name() const;
  /// Empty if there is none beside it.
  std::string data_path() const;
};

struct Way {
  const char* name;
  enum Kind { kMapped, kRead, kTraced, kMethods } kind;
};
/// Module over a mapped file, over one that is read, with a tracer of all values; and methods with
/// memory of the caller.
inline constexpr Way kWays[] = {{"mapped", Way::kMapped},
                                {"read", Way::kRead},
                                {"traced", Way::kTraced},
                                {"methods", Way::kMethods}};

using Outputs = std::vector<double>;
/// Up to rounding: a method that could not be fused for want of memory rounds in other places.
bool are_close(const Outputs& a, const Outputs& b);

/// Keeps what was loaded. What it needs for itself does not fail.
class WholeRun {
 public:
  virtual ~WholeRun() = default;
  /// Loads what is not yet loaded, runs every method on ones and appends the numbers that come out.
  virtual executorch::runtime::Error load_and_execute(Outputs& outputs) = 0;
};

/// Throws std::bad_alloc.
std::unique_ptr<WholeRun> make_run(const Way& way, const ProgramFile& file);
