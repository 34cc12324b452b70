#include <executorch/cpu/gemm/operands.h>
#include <executorch/cpu/gemm/panels.h>

namespace executorch::cpu {

Size count_panel_elements(int64_t k, int64_t n) {
  return round_up(Size(n), gemm::row<float>().width_step) * k;
}

int64_t panel_columns() {
  return gemm::row<float>().columns;
}

bool panels_pay(int64_t m) {
  return m > gemm::kMostAxpyRows;
}

Panels<float> pack_panels(const Matrix<const float>& b, int64_t k, int64_t n, float* to) {
  const auto& row = gemm::row<float>();
  // A piece of a row has whole memory pages, which are read one after the other.
  constexpr int64_t kColumns = 1024;
  const int64_t chunk = gemm::Division::even_columns(n, row.columns, row.columns, kColumns);
  parallel_for(gemm::ceil_div(n, chunk), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t j = i * chunk;
      row.pack_rows(b.data + j, b.row_stride, k, std::min(chunk, n - j), to + j * k, 0, k);
    }
  });
  return {to, row.columns};
}

}  // namespace executorch::cpu
