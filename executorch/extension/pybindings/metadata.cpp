#include <executorch/extension/pybindings/metadata.h>

#include <executorch/extension/pybindings/log_capture.h>
#include <executorch/extension/pybindings/text.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/tag.h>
#include <executorch/runtime/executor/method_meta.h>

#include <string>

namespace executorch::extension::pybindings {
namespace nb = nanobind;
using runtime::MethodMeta;
using runtime::Result;
using runtime::Tag;
using runtime::TensorInfo;

namespace {

using TagOf = Result<Tag> (MethodMeta::*)(size_t) const;
using TensorOf = Result<TensorInfo> (MethodMeta::*)(size_t) const;

template <typename List>
nb::tuple to_tuple(const List& list) {
  nb::list items;
  for (auto item : list) items.append(nb::int_(static_cast<int64_t>(item)));
  return nb::tuple(items);
}

std::string describe(const TensorInfo& info) {
  std::string sizes;
  for (int32_t size : info.sizes()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return "TensorInfo(sizes=[" + sizes + "], dtype=" + runtime::toString(info.scalar_type()) +
         ", is_memory_planned=" + (info.is_memory_planned() ? "True" : "False") +
         ", nbytes=" + std::to_string(info.nbytes()) + ")";
}

/// A Python list of strings: a tensor's description, or the tag's name for any other value.
std::string describe_values(const MethodMeta& meta, size_t n, TagOf tag_of, TensorOf tensor_of) {
  std::string list;
  for (size_t i = 0; i < n; ++i) {
    const Result<Tag> tag = (meta.*tag_of)(i);
    char name[runtime::kTagNameBufferSize] = "?";
    if (tag.ok()) runtime::tag_to_string(*tag, name, sizeof(name));
    const Result<TensorInfo> info = tag.ok() && *tag == Tag::Tensor
                                        ? (meta.*tensor_of)(i)
                                        : Result<TensorInfo>(runtime::Error::InvalidArgument);
    list += i == 0 ? "'" : ", '";
    list += (info.ok() ? describe(*info) : std::string(name)) + "'";
  }
  return "[" + list + "]";
}

std::string describe(const MethodMeta& meta) {
  const size_t n_in = meta.num_inputs();
  const size_t n_out = meta.num_outputs();
  return std::string("MethodMeta(name='") + meta.name() + "', num_inputs=" + std::to_string(n_in) +
         ", input_tensor_meta=" +
         describe_values(meta, n_in, &MethodMeta::input_tag, &MethodMeta::input_tensor_meta) +
         ", num_outputs=" + std::to_string(n_out) + ", output_tensor_meta=" +
         describe_values(meta, n_out, &MethodMeta::output_tag, &MethodMeta::output_tensor_meta) +
         ")";
}

/// The kind of a value, as "Tensor", "Int" or "None".
template <TagOf tag_of>
std::string kind(const MethodMeta& meta, size_t i) {
  LogCapture log;
  const Result<Tag> tag = (meta.*tag_of)(i);
  if (!tag.ok()) {
    throw nb::index_error((printable(meta.name()) + ": no value " + std::to_string(i)).c_str());
  }
  char name[runtime::kTagNameBufferSize] = "?";
  runtime::tag_to_string(*tag, name, sizeof(name));
  return name;
}

template <TensorOf tensor_of>
TensorInfo tensor_info(const MethodMeta& meta, size_t i) {
  LogCapture log;
  try {
    const auto info = (meta.*tensor_of)(i);
    log.check(info.error(), std::string(meta.name()) + ": tensor " + std::to_string(i));
    return *info;
  } catch (const std::runtime_error& e) {
    throw nb::index_error(printable(e.what()).c_str());
  }
}

}  // namespace

void bind_metadata(nb::module_& m) {
  nb::class_<TensorInfo>(m, "TensorInfo", "Shape, dtype and storage of a tensor of a method.")
      .def("sizes", [](const TensorInfo& t) { return to_tuple(t.sizes()); })
      .def("dim_order", [](const TensorInfo& t) { return to_tuple(t.dim_order()); })
      .def(
          "dtype", [](const TensorInfo& t) { return static_cast<int>(t.scalar_type()); },
          "The number of torch's ScalarType: 6 is float32, 4 is int64, 11 is bool.")
      .def("is_memory_planned", &TensorInfo::is_memory_planned)
      .def("nbytes", &TensorInfo::nbytes, "Bytes at the largest shape.")
      .def("__repr__", [](const TensorInfo& t) { return describe(t); });

  nb::class_<MethodMeta>(m, "MethodMeta", "What a method takes and returns.")
      .def("name", [](const MethodMeta& meta) { return std::string(meta.name()); })
      .def("num_inputs", &MethodMeta::num_inputs)
      .def("num_outputs", &MethodMeta::num_outputs)
      .def("num_attributes", &MethodMeta::num_attributes)
      .def("_input_kind", &kind<&MethodMeta::input_tag>, nb::arg("index"))
      .def("_output_kind", &kind<&MethodMeta::output_tag>, nb::arg("index"))
      .def("input_tensor_meta", &tensor_info<&MethodMeta::input_tensor_meta>, nb::arg("index"),
           nb::keep_alive<0, 1>(), "Raises IndexError when that input is no tensor.")
      .def("output_tensor_meta", &tensor_info<&MethodMeta::output_tensor_meta>, nb::arg("index"),
           nb::keep_alive<0, 1>(), "Raises IndexError when that output is no tensor.")
      .def("attribute_tensor_meta", &tensor_info<&MethodMeta::attribute_tensor_meta>,
           nb::arg("index"), nb::keep_alive<0, 1>())
      .def("__repr__", [](const MethodMeta& meta) { return printable(describe(meta)); });
}

}  // namespace executorch::extension::pybindings
