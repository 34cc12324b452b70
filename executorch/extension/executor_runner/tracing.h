#pragma once

#include <executorch/devtools/etdump/data_sinks/file_data_sink.h>
#include <executorch/devtools/etdump/etdump_flatcc.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace executorch::extension::command {

/// What --etdump_path and its companions ask for: an ETDump of the whole command.
class Tracing {
 public:
  /// Where the ETDump goes; empty for none.
  std::string etdump_path;
  /// Where the bytes of recorded values go. `outputs` and `intermediate_outputs` choose the values:
  /// the method's outputs, or the results of every instruction, for which fusion is off.
  std::string debug_output_path = "debug_output.bin";
  bool outputs = false;
  bool intermediate_outputs = false;
  /// The most bytes of values; 0: no limit.
  size_t debug_buffer_size = 0;

  bool records_values() const { return outputs || intermediate_outputs; }
  /// The tracer for methods; null if no ETDump is asked for. Throws Failure.
  runtime::EventTracer* start();
  /// Writes the files. Throws Failure.
  void finish();

 private:
  etdump::ETDumpGen gen_;
  std::optional<etdump::FileDataSink> sink_;
  /// Used instead of sink_ if there is a limit: `debug_buffer_` is a part of `memory_`.
  std::vector<uint8_t> memory_;
  runtime::Span<uint8_t> debug_buffer_;
};

}  // namespace executorch::extension::command
