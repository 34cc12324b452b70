/// Prepacked panels: a caller packs a matrix B once and passes the panels to many products, which
/// then need not pack B themselves. A panel is read in the order of its addresses, whereas the same
/// columns of an unpacked B lie a row's length apart.
#pragma once

#include <executorch/cpu/gemm/gemm.h>
#include <executorch/cpu/size.h>

#include <cstdint>

namespace executorch::cpu {

/// The number of elements in the panels of a B of k rows and n columns; invalid if it exceeds
/// int64.
Size count_panel_elements(int64_t k, int64_t n);

/// The number of columns in a whole panel.
int64_t panel_columns();

/// Whether a product of m rows is faster with panels. Products of few rows read B at the machine's
/// memory bandwidth either way.
bool panels_pay(int64_t m);

/// Packs `b`, k > 0 rows of n > 0 contiguous elements, to `to`, which must have room for
/// count_panel_elements(k, n) elements and lie on a cache line's boundary. Returns the panels, as
/// Gemm::b_panels takes them; they refer to `to`.
Panels<float> pack_panels(const Matrix<const float>& b, int64_t k, int64_t n, float* to);

}  // namespace executorch::cpu
