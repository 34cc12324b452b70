#pragma once

#include <executorch/devtools/memory/memory_plan.h>
#include <executorch/devtools/profiler/profile.h>

#include <string>

namespace executorch::devtools {

/// One HTML page with everything in it, which needs no network: where time went by operator and
/// module, the roofline, the graph of what ran with what was delegated, memory over time, every
/// instruction. `method` is the method's part of describe_file().
std::string report_html(const Profile& profile, const Json& method, const MemoryPlan& memory);

// The pictures in it.

/// Operations a second over operations a byte, both logarithmic; a dot is an operator with its
/// shapes, as large as its time. "" if nothing was counted.
std::string roofline_svg(const Profile& profile);
/// The instructions that ran, from top to bottom in the order of their dependences. Views are not
/// drawn: edges lead to the values that they are views of.
std::string graph_svg(const Profile& profile, const Json& method);

}  // namespace executorch::devtools
