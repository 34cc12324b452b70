/// Times and shapes of every instruction of a method.
///
///   OperatorProfile profile;
///   module.load_method("forward", nullptr, &profile, nullptr, profile.kernels());
///   profile.start_call(); module.forward(inputs);      // any number of times
///   profile.rows()                                     // JSON, one entry per instruction
///
/// Names and shapes come from kernels() that stand before the registered ones; an instruction that
/// calls none of them (a fused operator, a delegate) has the name of its event. One at a time.
#pragma once

#include <executorch/runtime/core/event_tracer.h>
#include <executorch/runtime/kernel/operator_registry.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bench {

class OperatorProfile final : public executorch::runtime::EventTracer {
 public:
  using Entry = executorch::runtime::EventTracerEntry;
  using Id = executorch::runtime::DelegateDebugIntId;
  using Tensor = executorch::aten::Tensor;
  using Logged = executorch::runtime::Result<bool>;

  OperatorProfile();

  /// Every registered kernel, wrapped to note what it is called with.
  std::vector<executorch::runtime::Kernel> kernels() const;
  void start_call() { next_ = 0; }
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
    size_t bytes;
    double seconds;
  };
  std::vector<Row> rows_;
  size_t next_ = 0;
};

}  // namespace bench
