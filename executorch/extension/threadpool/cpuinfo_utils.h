#pragma once

#include <cstdint>

namespace executorch {
namespace extension {
namespace cpuinfo {

/// Cores that this process may run on, without the slow ones of a machine that has two kinds.
/// At least 1.
uint32_t get_num_performant_cores();

}  // namespace cpuinfo
}  // namespace extension
}  // namespace executorch

namespace torch {
namespace executorch {
namespace cpuinfo {
using ::executorch::extension::cpuinfo::get_num_performant_cores;
}  // namespace cpuinfo
}  // namespace executorch
}  // namespace torch
