#pragma once

#include <c10/util/BFloat16-math.h>
#include <executorch/runtime/core/portable_type/bfloat16.h>
