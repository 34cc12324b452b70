#pragma once

#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/profiler/recorder.h>
#include <executorch/devtools/profiler/work.h>
#include <executorch/runtime/executor/program.h>

#include <cstdint>
#include <string>
#include <vector>

/// Where a method's time goes. All times are seconds.
namespace executorch::devtools {

/// What the machine can do at most, measured in the same run; 0: not known.
struct Roofline {
  double flops = 0;             ///< multiply-adds of floats, two operations each, per second
  double bytes_per_second = 0;  ///< read from memory
  size_t threads = 0;
  double int8 = 0;  ///< multiply-adds of bytes, as those of floats
};

/// An instruction, or an operation inside a delegate. Numbers are sums over all times that it runs
/// in one execute().
struct ProfiledWork {
  /// Of the instruction, or of the delegate call that contains the operation.
  uint32_t chain = 0;
  uint32_t instruction = 0;
  /// The operator, "aten::addmm.out". For a fused call, its name, "linear+gelu"; for a delegate,
  /// its id; for an operation of a delegate, the name that it reports, "FullyConnected #3".
  std::string op = "";
  /// In the user's model: "transformer.h.0.attn" and "gpt2/attention.py:41"; empty if not known.
  std::string module = "", place = "";
  double calls = 0;
  double seconds = 0;
  /// Empty if the work was not counted.
  std::string shapes = "";
  Family family = Family::Other;
  double bytes = 0;
  double flop = 0;
  /// Whether matrix products multiply 8-bit integers.
  bool int8 = false;
};

/// Lower bounds of the time, by the roofline: for the arithmetic alone, and for arithmetic and
/// memory accesses.
double arithmetic_seconds(const Roofline& roofline, const ProfiledWork& work);
double least_seconds(const Roofline& roofline, const ProfiledWork& work);

struct ProfiledNode : ProfiledWork {
  /// The delegate's number for the operation; -1 where the delegate gives a name, which is `op`.
  int32_t id = -1;
  /// The program's operators that it stands for, if it says so: "aten::linear+aten::relu".
  std::string operators = "";
};

struct ProfiledInstruction : ProfiledWork {
  /// The operators that a fused instruction replaces, in order.
  std::vector<std::string> originals;
  std::vector<uint32_t> original_numbers;
  /// The operations that a delegate reports, and at the end the time of the call that belongs to
  /// none of them. `bytes` and `flop` of the instruction are their sums.
  std::vector<ProfiledNode> nodes;
};

/// Times of instructions are means over the middle half of the runs, by their duration: as stable
/// as a median, and the parts add up to the whole.
struct Profile {
  std::string program;
  std::string method;
  size_t n_runs = 0;
  size_t n_warm_up = 0;
  /// Of one execute(): the mean of the middle half of the runs, to which the instructions' times
  /// add up; then the least, median and largest of all runs.
  double seconds = 0;
  double least = 0, median = 0, most = 0;
  /// Events of all runs that were not recorded, as the recorder's arrays were full.
  size_t n_lost = 0;
  /// Medians of execute() with and without a tracer, in turns; 0 if that was not measured.
  double traced = 0, untraced = 0;
  Roofline roofline;
  /// What ran, in the order of the file.
  std::vector<ProfiledInstruction> instructions;
  /// The median run as it happened.
  Run trace;

  /// The share of the method's time that belongs to instructions.
  double coverage() const;
};

/// What make_profile() joins the recorded runs with.
struct ProfileSource {
  std::string path = "";
  const runtime::Program* program = nullptr;
  const runtime::Method* method = nullptr;
  /// Describes fused instructions; null if there are none.
  runtime::DescribeRewritten describe_rewritten = nullptr;
  /// Null: bytes and operations are not counted.
  const MethodWork* work = nullptr;
  Roofline roofline = {};
};
Profile make_profile(const ProfileSource& source, const std::vector<Run>& runs);

/// The least time, by the roofline, in which this work can be done; 0 if that is not known.
double least_seconds(const Profile& profile, const ProfiledInstruction& row);

/// Several rows of a profile, summed up.
struct ProfileGroup {
  std::string name = "";
  double calls = 0;
  double seconds = 0;
  double bytes = 0;
  double flop = 0;
  /// The sum of the rows' lower bounds, and of those for their arithmetic; whether arithmetic
  /// rather than memory accounts for most of it.
  double bound = 0, arithmetic = 0;
  bool compute_bound = false;
  /// The row that takes longest.
  const ProfiledWork* example = nullptr;
  /// Modules: how deep in the tree. Operators: 1 for what is inside a delegate.
  int depth = 0;
};
/// Groups by operator, longest first. After a delegate follow the operations it reports, by name.
std::vector<ProfileGroup> by_operator(const Profile& profile);
/// The tree of modules in the order in which they first run, each with what is below it. Empty if
/// the program does not name them.
std::vector<ProfileGroup> by_module(const Profile& profile);
/// Groups by operator and shapes, in the order of the file. The operations that a delegate reports
/// replace its call.
std::vector<ProfileGroup> by_shapes(const Profile& profile);
/// The groups of by_shapes() that take most time beyond the roofline's least, at most `n`.
std::vector<ProfileGroup> largest_losses(const Profile& profile, size_t n);

/// Tables for people. `every_instruction`: one line for each, too.
std::string to_text(const Profile& profile, bool every_instruction = false);
Json to_json(const Profile& profile);
/// Trace Event Format, which Perfetto and chrome://tracing open: the median run. What overlaps in
/// time gets a track of its own. Left out: what delegates report of another clock.
Json to_trace(const Profile& profile);

}  // namespace executorch::devtools
