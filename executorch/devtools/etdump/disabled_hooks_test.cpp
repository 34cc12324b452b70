// Compiled with ET_EVENT_TRACER_DISABLED, as everything is with
// -DEXECUTORCH_ENABLE_EVENT_TRACER=OFF.

#include <executorch/devtools/etdump/etdump_flatcc.h>
static_assert(sizeof(executorch::runtime::EValue) > 0, "values come with this header");

#include <executorch/runtime/core/event_tracer_hooks.h>
#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <gtest/gtest.h>

namespace executorch::runtime::internal {
namespace {

static_assert(!event_tracer_enabled());

TEST(DisabledHooks, ReportNothingToATracer) {
  etdump::ETDumpGen tracer;
  event_tracer_create_event_block(&tracer, "Execute");
  EXPECT_EQ(event_tracer_track_allocator(&tracer, "arena"), 0u);
  {
    EventTracerProfileInstructionScope instruction(&tracer, 0, 5);
    EventTracerProfileOpScope op(&tracer, "add");
    EXPECT_EQ(tracer.current_chain_id(), kUnsetChainId);
  }
  event_tracer_log_profiling_delegate(&tracer, "Add", 1, 2, 3);
  event_tracer_log_evalue_output(&tracer, EValue(1));
  EXPECT_EQ(tracer.get_num_blocks(), 0u);
  EXPECT_EQ(tracer.get_etdump_data().buf, nullptr);
}

}  // namespace
}  // namespace executorch::runtime::internal
