// The `executorch` command: looks into programs, runs and measures them.

#include <executorch/devtools/inspect/describe.h>
#include <executorch/devtools/inspect/table.h>
#include <executorch/extension/command/command_line.h>
#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/outputs.h>
#include <executorch/runtime/platform/platform.h>
#include <executorch/runtime/platform/runtime.h>

#include <fcntl.h>

#include <csignal>
#include <cstdio>
#include <string>

using executorch::extension::command::Failure;
using executorch::extension::command::finish_standard_output;
using executorch::extension::command::run_command_line;

namespace {

bool verbose = false;

/// Messages hold names and parts of files, which need not be printable.
void print_error(const char* before, const std::string& message) {
  std::fprintf(stderr, "%s%s\n", before, executorch::devtools::printable(message, true).c_str());
}

void log_plainly(et_timestamp_t, et_pal_log_level_t level, const char*, const char*, size_t,
                 const char* message, size_t) {
  if (verbose || level == et_pal_log_level_t::kError || level == et_pal_log_level_t::kFatal) {
    print_error("", message);
  }
}

/// Opens /dev/null in place of standard streams that are closed. Otherwise the next file that is
/// opened would get such a stream's number and be read as a prompt, or written to by messages.
void occupy_closed_streams() {
  for (const int stream : {0, 1, 2}) {
    if (fcntl(stream, F_GETFD) >= 0) continue;
    const int opened = open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);  // the lowest place
    (void)opened;  // without /dev/null nothing is lost
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond a limit is then an error with a path
  executorch::runtime::register_pal(
      executorch::runtime::PalImpl::create(log_plainly, "executorch"));
  executorch::runtime::runtime_init();
  std::string cause;
  int exit_code = 1;
  try {
    const int status = run_command_line(argc, argv, verbose);
    finish_standard_output();
    return status;
  } catch (const Failure& failure) {
    cause = failure.cause;
    exit_code = failure.exit_code;
  } catch (const executorch::devtools::InspectError& error) {
    cause = error.message;
  } catch (const std::exception& error) {
    cause = error.what();
  }
  print_error("executorch: ", cause);
  return exit_code;
}
