#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/kernel/traced_call.h>

#include <cstring>

namespace executorch::runtime::internal {
namespace {

constexpr char kPrefix[] = "native_call_";
constexpr char kPrimNamespace[] = "executorch_prim::";

// The text of an event. It is cut if it is longer than the names that programs may have.
struct Label {
  Label(const char* name, const char* overload) {
    const char* const colons = std::strstr(name, "::");
    append(kPrefix);
    append(colons == nullptr ? name : colons + 2);
    if (overload != nullptr && overload[0] != '\0') {
      append(".");
      append(overload);
    }
    text[length] = '\0';
  }
  void append(const char* part) {
    const size_t room = sizeof(text) - 1 - length;
    const size_t length_of_part = std::strlen(part);
    const size_t n = length_of_part < room ? length_of_part : room;
    std::memcpy(text + length, part, n);
    length += n;
  }
  char text[128];
  size_t length = 0;
};

void log_results(EventTracer* tracer, Span<EValue*> args) {
  const size_t n = args.size();
  if (n == 0 || !tracer->intermediate_outputs_logging_status()) return;
  if (n == 1 || !args[n - 1]->isTensorList() || args[n - 2]->isTensorList()) {
    return event_tracer_log_evalue(tracer, *args[n - 1]);
  }
  const auto gathered = args[n - 1]->tryToTensorList();
  const size_t count = gathered.ok() && gathered->size() < n ? gathered->size() : 0;
  for (size_t i = n - 1 - count; i < n - 1; ++i) event_tracer_log_evalue(tracer, *args[i]);
}

}  // namespace

void call_traced(const char* name, const char* overload, OpFunction kernel,
                 KernelRuntimeContext& context, Span<EValue*> args) {
  EventTracer* const tracer = attached(context.internal_event_tracer());
  if (tracer == nullptr || std::strncmp(name, kPrimNamespace, sizeof(kPrimNamespace) - 1) == 0) {
    return kernel(context, args);
  }
  const Label label(name, overload);
  EventTracerProfileOpScope scope(tracer, label.text);
  kernel(context, args);
  if (context.failure_state() == Error::Ok) log_results(tracer, args);
}

}  // namespace executorch::runtime::internal
