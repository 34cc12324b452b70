#include <executorch/backends/xnnpack/runtime/XNNPACKBackend.h>
#include <executorch/backends/xnnpack/runtime/delegate_scratch.h>
#include <executorch/backends/xnnpack/runtime/executor.h>
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/allocation_failure.h>

#include <atomic>
#include <cstring>
#include <variant>

extern "C" {
int et_xnnpack_backend_registered = 1;
}

namespace executorch::backends::xnnpack {
namespace {

using runtime::BackendExecutionContext;
using runtime::BackendInitContext;
using runtime::BackendOption;
using runtime::BackendOptionContext;
using runtime::DelegateHandle;
using runtime::Result;

class XnnpackBackend final : public runtime::BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext& context, runtime::FreeableBuffer* processed,
                               runtime::ArrayRef<runtime::CompileSpec>) const override {
    return runtime::catch_allocation_failure(xnnpack_backend_key, [&]() -> Result<DelegateHandle*> {
      auto graph = read_graph(processed->data(), processed->size(), context.get_named_data_map());
      ET_CHECK_OK_OR_RETURN_ERROR(graph.error());
      const bool uses_payload = (*graph)->uses_payload;
      auto* const executor = new Executor(std::move(*graph));
      if (!uses_payload) processed->Free();
      return executor;
    });
  }

  Error execute(BackendExecutionContext& context, DelegateHandle* handle,
                runtime::Span<runtime::EValue*> args) const override {
    DelegateScratch scratch(context);
    return runtime::catch_allocation_failure(xnnpack_backend_key, [&] {
      auto& executor = *static_cast<Executor*>(handle);
      const Error error = executor.execute(args, context.event_tracer(), scratch);
      context.add_steps(executor.steps());
      return error;
    });
  }

  bool writes_argument(const DelegateHandle* handle, size_t index, size_t) const override {
    const auto& executor = *static_cast<const Executor*>(handle);
    return index < executor.n_arguments() && executor.writes_argument(index);
  }

  void destroy(DelegateHandle* handle) const override { delete static_cast<Executor*>(handle); }

  Error set_option(BackendOptionContext&, const runtime::Span<BackendOption>& options) override {
    for (const BackendOption& option : options) {
      if (std::strcmp(option.key, workspace_sharing_mode_option_key) == 0) {
        const int* mode = std::get_if<int>(&option.value);
        ET_CHECK_OR_RETURN_ERROR(
            mode != nullptr && *mode >= 0 && *mode < static_cast<int>(WorkspaceSharingMode::Count),
            InvalidArgument, "XnnpackBackend: %s is not 0, 1 or 2", option.key);
        sharing_mode_ = *mode;
      } else if (std::strcmp(option.key, weight_cache_option_key) == 0) {
        const bool* enabled = std::get_if<bool>(&option.value);
        ET_CHECK_OR_RETURN_ERROR(enabled != nullptr, InvalidArgument,
                                 "XnnpackBackend: %s is not a bool", option.key);
        weight_cache_ = *enabled;
      }
    }
    return Error::Ok;
  }

  Error get_option(BackendOptionContext&, runtime::Span<BackendOption>& options) override {
    for (BackendOption& option : options) {
      if (std::strcmp(option.key, workspace_sharing_mode_option_key) == 0) {
        option.value = sharing_mode_.load();
      } else if (std::strcmp(option.key, weight_cache_option_key) == 0) {
        option.value = weight_cache_.load();
      }
    }
    return Error::Ok;
  }

 private:
  std::atomic<int> sharing_mode_{static_cast<int>(WorkspaceSharingMode::Global)};
  std::atomic<bool> weight_cache_{false};
};

[[maybe_unused]] const Error registered = [] {
  static XnnpackBackend backend;
  return runtime::register_backend({xnnpack_backend_key, &backend});
}();

}  // namespace
}  // namespace executorch::backends::xnnpack
