// What executorch.mjs knows of the C interface's structure: where its fields are.
#include <executorch/extension/c_api/executorch.h>

#include <cstddef>

static_assert(offsetof(executorch_value, kind) == 0);
static_assert(offsetof(executorch_value, dtype) == 4);
static_assert(offsetof(executorch_value, rank) == 8);
static_assert(offsetof(executorch_value, sizes) == 16);
static_assert(offsetof(executorch_value, dim_order) == 144);
static_assert(offsetof(executorch_value, data) == 160);
static_assert(offsetof(executorch_value, n_bytes) == 168);
static_assert(offsetof(executorch_value, as_int) == 176);
static_assert(offsetof(executorch_value, as_double) == 184);
static_assert(offsetof(executorch_value, is_dynamic) == 192);
static_assert(sizeof(executorch_value) == 224);
