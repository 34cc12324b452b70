#include <executorch/exir/native/file_image.h>
#include <executorch/exir/native/transposed_bytes.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;
using namespace nb::literals;

namespace executorch::exir {
namespace {

// Elements on a side of the block that is transposed at once: a cache line of float32, in lines
// that all fit into the first cache.
constexpr uint64_t kBlock = 16;

template <typename T>
void transpose(const T* in, uint64_t in_stride, T* out, uint64_t out_stride, uint64_t n_rows,
               uint64_t n_cols) {
  for (uint64_t c0 = 0; c0 < n_cols; c0 += kBlock) {
    const uint64_t c1 = std::min(n_cols, c0 + kBlock);
    for (uint64_t r0 = 0; r0 < n_rows; r0 += kBlock) {
      const uint64_t r1 = std::min(n_rows, r0 + kBlock);
      for (uint64_t r = r0; r < r1; ++r) {
        for (uint64_t c = c0; c < c1; ++c) out[r * out_stride + c] = in[c * in_stride + r];
      }
    }
  }
}

nb::object to_bytes(const TransposedBytes& source, uint64_t at, uint64_t n) {
  if (at > source.size() || n > source.size() - at) {
    throw nb::value_error("TransposedBytes: the range reaches beyond the end");
  }
  nb::object bytes = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(n)));
  if (!bytes.is_valid()) throw nb::python_error();
  source.read(at, n, reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(bytes.ptr())));
  return bytes;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    const auto& source = nb::cast<const TransposedBytes&>(nb::handle(self));
    const nb::object bytes = to_bytes(source, 0, source.size());
    return PyObject_GetBuffer(bytes.ptr(), view, flags);
  } catch (nb::python_error& error) {
    error.restore();
    return -1;
  }
}

PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

TransposedBytes::TransposedBytes(nb::object base, uint64_t rows, uint64_t cols,
                                 uint64_t element_bytes)
    : base_(std::move(base)), rows_(rows), cols_(cols), element_bytes_(element_bytes) {
  const BorrowedBytes bytes(base_);
  data_ = bytes.data();
  if (bytes.size() != size() || size() == 0) {
    throw std::invalid_argument("TransposedBytes: the base has not the matrix's size");
  }
}

void TransposedBytes::read_rows(uint64_t first, uint64_t n_rows, uint8_t* out) const {
  const auto run = [&]<typename T>(T*) {
    transpose(reinterpret_cast<const T*>(data_) + first, rows_, reinterpret_cast<T*>(out), cols_,
              n_rows, cols_);
  };
  switch (element_bytes_) {
    case 1:
      return run(static_cast<uint8_t*>(nullptr));
    case 2:
      return run(static_cast<uint16_t*>(nullptr));
    case 4:
      return run(static_cast<uint32_t*>(nullptr));
    case 8:
      return run(static_cast<uint64_t*>(nullptr));
    default:
      for (uint64_t r = 0; r < n_rows; ++r) {
        for (uint64_t c = 0; c < cols_; ++c) {
          std::memcpy(out + (r * cols_ + c) * element_bytes_,
                      data_ + (c * rows_ + first + r) * element_bytes_, element_bytes_);
        }
      }
  }
}

void TransposedBytes::read(uint64_t at, uint64_t n, uint8_t* out) const {
  const uint64_t row_bytes = cols_ * element_bytes_;
  std::vector<uint8_t> part;  // of a row that is asked for in part
  while (n > 0) {
    const uint64_t row = at / row_bytes;
    const uint64_t skip = at % row_bytes;
    uint64_t taken = std::min(n, row_bytes - skip);
    if (skip == 0 && n >= row_bytes) {
      taken = n / row_bytes * row_bytes;
      read_rows(row, n / row_bytes, out);
    } else {
      part.resize(row_bytes);
      read_rows(row, 1, part.data());
      std::memcpy(out, part.data() + skip, taken);
    }
    at += taken;
    out += taken;
    n -= taken;
  }
}

void bind_transposed_bytes(nb::module_& m) {
  nb::class_<TransposedBytes>(m, "TransposedBytes", nb::type_slots(kSlots))
      .def(nb::init<nb::object, uint64_t, uint64_t, uint64_t>(), "base"_a, "rows"_a, "cols"_a,
           "element_bytes"_a)
      .def_prop_ro("nbytes", &TransposedBytes::size)
      .def("__len__", &TransposedBytes::size)
      .def_prop_ro("rows", &TransposedBytes::rows)
      .def_prop_ro("base", &TransposedBytes::base)
      .def("read", &to_bytes, "at"_a, "n"_a);
}

}  // namespace executorch::exir
