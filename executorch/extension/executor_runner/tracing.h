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
  /// Also values: outputs of the program, or of every instruction, for which methods run as they
  /// stand in the file.
  std::string debug_output_path = "debug_output.bin";
  bool outputs = false;
  bool intermediate_outputs = false;
  /// How many bytes of values there may be; 0: as many as there are.
  size_t debug_buffer_size = 0;

  /// The tracer for methods, null where nothing is asked for. Throws Failure.
  runtime::EventTracer* start();
  /// Writes the files. Throws Failure.
  void finish();

 private:
  etdump::ETDumpGen gen_;
  std::optional<etdump::FileDataSink> sink_;
  /// In its place where there is a limit: `debug_buffer_` lies in `memory_`.
  std::vector<uint8_t> memory_;
  runtime::Span<uint8_t> debug_buffer_;
};

}  // namespace executorch::extension::command
