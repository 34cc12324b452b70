#pragma once

namespace executorch::extension::command {

/// Runs the verb that the command line names. Returns the exit code: 0 done, 1 what the verb looked
/// for is not so, 2 wrong command line (the cause is on stderr). Throws what verbs throw. `verbose`
/// is set before the verb runs.
int run_command_line(int argc, char** argv, bool& verbose);

}  // namespace executorch::extension::command
