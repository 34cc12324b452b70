#include <executorch/exir/native/debug_identity_writer.h>
#include <executorch/exir/native/file_image.h>
#include <executorch/exir/native/offset_planner.h>
#include <executorch/exir/native/program_reader.h>
#include <executorch/exir/native/program_writer.h>
#include <executorch/exir/native/transposed_bytes.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <filesystem>

namespace nb = nanobind;
namespace exir = executorch::exir;
using namespace nb::literals;

namespace {

std::vector<exir::Block> to_blocks(nb::handle items) {
  std::vector<exir::Block> blocks;
  for (nb::handle item : items) {
    const exir::Block block{nb::cast<uint64_t>(item[0]), nb::cast<int64_t>(item[1]),
                            nb::cast<int64_t>(item[2])};
    if (block.last < block.first) throw nb::value_error("a block's last step is before its first");
    blocks.push_back(block);
  }
  return blocks;
}

nb::tuple to_python(const exir::OffsetPlan& plan) {
  return nb::make_tuple(nb::cast(plan.offsets), plan.total, plan.strategy);
}

bool all_zero(nb::handle buffer) {
  const exir::BorrowedBytes bytes(buffer);
  const uint8_t* data = bytes.data();
  // Zero iff the first byte is and every byte equals its successor.
  return bytes.size() == 0 || (data[0] == 0 && std::memcmp(data, data + 1, bytes.size() - 1) == 0);
}

uint64_t address_of(nb::handle buffer) {
  return reinterpret_cast<uintptr_t>(exir::BorrowedBytes(buffer).data());
}

bool same_bytes(nb::handle a, nb::handle b) {
  const exir::BorrowedBytes left(a);
  const exir::BorrowedBytes right(b);
  return left.size() == right.size() &&
         (left.data() == right.data() || std::memcmp(left.data(), right.data(), left.size()) == 0);
}

}  // namespace

NB_MODULE(_native, m) {
  nb::set_leak_warnings(false);  // objects that live until the interpreter ends are no error
  nb::class_<exir::FileImage>(m, "FileImage")
      .def(nb::init<>())
      .def("append", nb::overload_cast<const exir::FileImage&>(&exir::FileImage::append), "image"_a)
      .def("append", nb::overload_cast<nb::handle>(&exir::FileImage::append), "buffer"_a)
      .def_prop_ro("size", &exir::FileImage::size)
      .def("to_bytes", &exir::FileImage::to_bytes)
      .def(
          "save",
          [](const exir::FileImage& self, const std::filesystem::path& path, nb::handle progress) {
            self.save(path.string(), progress);
          },
          "path"_a, "progress"_a = nb::none())
      .def("write_to", &exir::FileImage::write_to, "file"_a);
  nb::class_<exir::Segment>(m, "Segment")
      .def(nb::init<uint64_t>(), "alignment"_a = 1)
      .def_static("part_of", &exir::Segment::part_of, "whole"_a, "offset"_a, "size"_a)
      .def("append", &exir::Segment::append, "buffer"_a, "alignment"_a = 1)
      .def_prop_ro("size", &exir::Segment::size);
  exir::bind_transposed_bytes(m);
  m.def("write_program", &exir::write_program, "program"_a, "segments"_a, "segment_alignment"_a,
        "constant_alignment"_a, "delegate_alignment"_a);
  m.def("write_flat_tensor", &exir::write_flat_tensor, "entries"_a, "segments"_a,
        "segment_alignment"_a);
  m.def("write_debug_identity", &exir::write_debug_identity, "strings"_a, "places"_a, "methods"_a);
  m.def("read_program", &exir::read_program, "file"_a);
  m.def("read_flat_tensor", &exir::read_flat_tensor, "file"_a);

  m.def("all_zero", &all_zero, "buffer"_a);
  m.def("address_of", &address_of, "buffer"_a);
  m.def("same_bytes", &same_bytes, "a"_a, "b"_a);

  m.def("lower_bound", [](nb::handle blocks) { return exir::lower_bound(to_blocks(blocks)); });
  m.def(
      "plan_greedy",
      [](nb::handle blocks, bool nest) {
        const exir::OffsetPlan plan = exir::plan_greedy(to_blocks(blocks), nest);
        return nb::make_tuple(nb::cast(plan.offsets), plan.total, nb::cast(plan.objects));
      },
      "blocks"_a, "nest"_a = true);
  m.def("plan_best",
        [](nb::handle blocks) { return to_python(exir::plan_best(to_blocks(blocks))); });
  m.def("find_conflict", [](nb::handle blocks, const std::vector<uint64_t>& offsets) {
    const auto checked = to_blocks(blocks);
    if (checked.size() != offsets.size()) {
      throw nb::value_error("find_conflict: one offset per block");
    }
    return exir::find_conflict(checked, offsets);
  });
}
