/// Names and options of the backend that runs parts of programs lowered by XnnpackPartitioner.
#pragma once

namespace executorch::backends::xnnpack {

inline constexpr char xnnpack_backend_key[] = "XnnpackBackend";

/// Options are accepted and kept; results do not depend on them. Memory for results is always
/// shared by all delegates that do not run at the same time, and weights are used where they lie,
/// so that there is nothing to pack or to keep.
inline constexpr char workspace_sharing_mode_option_key[] = "workspace_sharing_mode";
inline constexpr char weight_cache_option_key[] = "weight_cache_enabled";
inline constexpr char packed_cache_path_option_key[] = "packed_cache_path";

enum class WorkspaceSharingMode { Disabled = 0, PerModel = 1, Global = 2, Count };

}  // namespace executorch::backends::xnnpack
