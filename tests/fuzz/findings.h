#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "worker.h"

namespace executorch::fuzz {

/// One class of findings: one kind in one function under one operator.
struct Finding {
  std::string kind, op, where;
  std::vector<std::string> frames;
  uint64_t count = 0;
  double seconds = 0;
  std::string file;  // the first mutant's bytes; beside it a text of the same name
  std::string command;
};

/// What went wrong, by class, with the bytes of one mutant of each.
class Findings {
 public:
  explicit Findings(std::string folder);

  /// A worker ended in `shared.index`; `status` is waitpid's, `log` what it printed.
  void add_crash(const Groups& groups, const Shared& shared, int status, const std::string& log);
  void add_note(const Groups& groups, const Note& note);

  const std::map<std::string, Finding>& all() const { return all_; }
  uint64_t total() const;

 private:
  void add(const Groups& groups, uint64_t index, Finding finding, const Place& place,
           const std::string& log);

  std::string folder_;
  std::map<std::string, Finding> all_;
};

}  // namespace executorch::fuzz
