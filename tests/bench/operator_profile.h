/// Times and shapes of every instruction of a method, in two passes:
///
///   OperatorProfile profile;
///   module.load_method("forward", nullptr, &profile, nullptr, profile.kernels());
///   module.forward(inputs);                            // names and shapes
///   other.load_method("forward", nullptr, &profile);
///   other.forward(inputs); profile.end_call();         // times, any number of calls
///   profile.rows()                                     // JSON, one entry per instruction
///
/// The kernels of the first pass note what they are called with; as nothing else knows them,
/// nothing is fused. In the second pass the method is as always: an instruction that stands for
/// several has the name of the operator in whose place it runs, and those it replaces do not
/// appear.
#pragma once

#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/kernel/operator_registry.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace bench {

class OperatorProfile final : public executorch::runtime::EventTracer {
 public:
  using Entry = executorch::runtime::EventTracerEntry;
  using Id = executorch::runtime::DelegateDebugIntId;
  using Tensor = executorch::aten::Tensor;
  using Logged = executorch::runtime::Result<bool>;

  /// Every registered kernel, wrapped to note what it is called with. Valid for one profile at a
  /// time.
  std::vector<executorch::runtime::Kernel> kernels() const;
  void end_call();
  nlohmann::json rows() const;

  void create_event_block(const char*) override {}
  Entry start_profiling(const char* name, executorch::runtime::ChainID,
                        executorch::runtime::DebugHandle) override;
  void end_profiling(Entry entry) override;
  Entry start_profiling_delegate(const char*, Id) override { return {}; }
  void end_profiling_delegate(Entry, const void*, size_t) override {}
  void log_profiling_delegate(const char*, Id, et_timestamp_t, et_timestamp_t, const void*,
                              size_t) override {}
  uint32_t track_allocator(const char*) override { return 0; }
  void track_allocation(uint32_t, size_t) override {}
  Logged log_evalue(const executorch::runtime::EValue&,
                    executorch::runtime::LoggedEValueType) override {
    return false;
  }
  Logged log_intermediate_output_delegate(const char*, Id, const Tensor&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, Id,
                                          const executorch::runtime::ArrayRef<Tensor>) override {
    return false;
  }
  Logged log_intermediate_output_delegate(const char*, Id, const int&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, Id, const bool&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, Id, const double&) override { return false; }
  void set_delegation_intermediate_output_filter(
      executorch::runtime::EventTracerFilterBase*) override {}

 private:
  struct Row {
    std::string name;
    std::string shapes;
    size_t bytes = 0;
    double this_call = 0;  // a loop runs an instruction several times
    double least = 0;
  };
  using Place = std::pair<executorch::runtime::ChainID, executorch::runtime::DebugHandle>;
  std::map<Place, Row> rows_;
};

}  // namespace bench
