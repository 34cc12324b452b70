#pragma once

#include <executorch/devtools/profiler/profile.h>

namespace executorch::devtools {

/// What is known of one row: operator, work, rates, shapes, place. Without the nodes below it.
Json work_json(const Profile& profile, const ProfiledInstruction& row);
Json work_json(const Profile& profile, const ProfiledNode& row);

}  // namespace executorch::devtools
