#pragma once

#include <cstdint>

namespace executorch::extension::cpuinfo {

/// Cores that this process may run on, without the slow ones of a machine that has two kinds.
/// At least 1.
uint32_t get_num_performant_cores();

}  // namespace executorch::extension::cpuinfo

// torch::executorch::cpuinfo, as upstream spells it. An alias, and no namespace of its own, in
// which torch::executor would look for executorch::runtime.
namespace executorch {
namespace cpuinfo = extension::cpuinfo;
}
namespace torch {
namespace executorch = ::executorch;
}
