#include <executorch/devtools/inspect/output_file.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/executor_runner/tracing.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

namespace executorch::extension::command {

using Level = runtime::EventTracerDebugLogLevel;

namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

}  // namespace

runtime::EventTracer* Tracing::start() {
  if (etdump_path.empty()) {
    if (records_values()) reject("values are recorded beside an ETDump: --etdump_path");
    return nullptr;
  }
  if (records_values()) {
    if (debug_buffer_size > 0) {
      // It begins where values may lie, so that how many fit is the same in every run.
      constexpr size_t kAlignment = 64;
      if (debug_buffer_size > memory_.max_size() - kAlignment) {
        fail("there is no memory for " + std::to_string(debug_buffer_size) + " bytes of values");
      }
      size_t room = debug_buffer_size + kAlignment;
      memory_.resize(room);
      void* start = memory_.data();
      std::align(kAlignment, debug_buffer_size, start, room);
      debug_buffer_ = {static_cast<uint8_t*>(start), debug_buffer_size};
      check(gen_.set_debug_buffer(debug_buffer_).error(), "record values");
    } else {
      auto sink = etdump::FileDataSink::create(debug_output_path.c_str());
      check(sink.error(), "write " + debug_output_path);
      sink_.emplace(std::move(*sink));
      gen_.set_data_sink(&*sink_);
    }
    gen_.set_event_tracer_debug_level(intermediate_outputs ? Level::kIntermediateOutputs
                                                           : Level::kProgramOutputs);
  }
  return &gen_;
}

void Tracing::finish() {
  if (etdump_path.empty()) return;
  if (gen_.error() != runtime::Error::Ok) {
    std::cerr << "executor_runner: " << etdump_path << " is not complete, see above\n";
  }
  const etdump::ETDumpResult result = gen_.get_etdump_data();
  const std::unique_ptr<void, Free> owner(result.buf);
  devtools::write_file(etdump_path, {static_cast<const char*>(result.buf), result.size});
  if (sink_) sink_->close();
  if (!debug_buffer_.empty()) {
    devtools::write_file(debug_output_path, {reinterpret_cast<const char*>(debug_buffer_.data()),
                                             gen_.get_data_sink()->get_used_bytes()});
  }
}

}  // namespace executorch::extension::command
