#include "operator_profile.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

namespace bench {
namespace {

using executorch::runtime::EValue;
using executorch::runtime::get_registered_kernels;
using executorch::runtime::Kernel;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::OpFunction;
using executorch::runtime::Span;

int64_t nanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// What the running instruction was called with; the last kernel of an instruction counts.
struct Called {
  const char* name = nullptr;
  std::string shapes;
  size_t bytes = 0;
} called;

void describe(Span<EValue*> args) {
  called.shapes.clear();
  called.bytes = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const EValue* const arg = args[i];
    // An output stands twice: as argument and as what is returned.
    if (!arg->isTensor() || (i > 0 && arg == args[i - 1])) continue;
    const auto& tensor = arg->toTensor();
    called.shapes += called.shapes.empty() ? "[" : " [";
    for (ssize_t d = 0; d < tensor.dim(); ++d) {
      if (d != 0) called.shapes += ",";
      called.shapes += std::to_string(tensor.size(d));
    }
    called.shapes += "]";
    called.bytes += tensor.nbytes();
  }
}

// A kernel is a plain function, so that each one has a wrapper of its own.
constexpr size_t kMaxKernels = 768;

template <size_t I>
void call_and_note(KernelRuntimeContext& context, Span<EValue*> args) {
  const Kernel& kernel = get_registered_kernels()[I];
  kernel.op_(context, args);
  called.name = kernel.name_;  // outputs have their shape now
  describe(Span<EValue*>(args.data(), args.size()));
}

template <size_t... I>
constexpr std::array<OpFunction, sizeof...(I)> wrappers(std::index_sequence<I...>) {
  return {call_and_note<I>...};
}
constexpr auto kWrappers = wrappers(std::make_index_sequence<kMaxKernels>());

}  // namespace

std::vector<Kernel> OperatorProfile::kernels() const {
  const auto registered = get_registered_kernels();
  std::vector<Kernel> wrapped;
  for (size_t i = 0; i < std::min(registered.size(), kMaxKernels); ++i) {
    wrapped.emplace_back(registered[i].name_, registered[i].kernel_key_, kWrappers[i]);
  }
  return wrapped;
}

void OperatorProfile::end_call() {
  for (auto& [place, row] : rows_) {
    if (row.this_call > 0)
      row.least = row.least == 0 ? row.this_call : std::min(row.least, row.this_call);
    row.this_call = 0;
  }
}

OperatorProfile::Entry OperatorProfile::start_profiling(const char* name,
                                                        executorch::runtime::ChainID,
                                                        executorch::runtime::DebugHandle) {
  Entry entry{};
  entry.chain_id = current_chain_id();  // unset for what is no instruction
  entry.debug_handle = current_debug_handle();
  called.name = nullptr;
  if (entry.chain_id >= 0) {
    Row& row = rows_[{entry.chain_id, entry.debug_handle}];
    if (row.name.empty()) row.name = name;
  }
  entry.start_time = static_cast<et_timestamp_t>(nanoseconds());
  return entry;
}

void OperatorProfile::end_profiling(Entry entry) {
  const int64_t end = nanoseconds();
  if (entry.chain_id < 0) return;
  Row& row = rows_[{entry.chain_id, entry.debug_handle}];
  if (called.name != nullptr) {
    row.name = called.name;
    row.shapes = called.shapes;
    row.bytes = called.bytes;
    return;
  }
  row.this_call += static_cast<double>(end - static_cast<int64_t>(entry.start_time)) * 1e-9;
}

nlohmann::json OperatorProfile::rows() const {
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [place, row] : rows_) {
    rows.push_back({{"instruction", place.second},
                    {"op", row.name},
                    {"shapes", row.shapes},
                    {"bytes", row.bytes},
                    {"seconds", row.least}});
  }
  return rows;
}

}  // namespace bench
