#pragma once

#include <stdint.h>

extern "C" {

/// Platform ticks; `et_pal_ticks_to_ns_multiplier` converts them to nanoseconds.
typedef uint64_t et_timestamp_t;
}
