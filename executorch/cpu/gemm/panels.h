/// Panels of a matrix that many products multiply by: packed once, by the caller, instead of by each
/// product. A panel of many rows is read from memory in the order of addresses, where rows of B are
/// as far apart as they are long.
#pragma once

#include <executorch/cpu/gemm/gemm.h>
#include <executorch/cpu/size.h>

#include <cstdint>

namespace executorch::cpu {

/// Elements of the panels of a B of k rows and n columns; invalid if they are too many.
Size count_panel_elements(int64_t k, int64_t n);

/// Columns of a whole panel.
int64_t panel_columns();

/// Packs `b`, k > 0 rows of n > 0 contiguous elements, to `to`, which has room for
/// count_panel_elements(k, n) and begins with a cache line.
Panels<float> pack_panels(const Matrix<const float>& b, int64_t k, int64_t n, float* to);

}  // namespace executorch::cpu
