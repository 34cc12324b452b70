// Payloads from lists; serialization/payload.py makes the lists.
#include <executorch/backends/xnnpack/serialization/reader.h>
#include <executorch/backends/xnnpack/serialization/schema_generated.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstring>

namespace nb = nanobind;

namespace {

namespace fb = fb_xnnpack;

constexpr size_t kHeaderBytes = 32, kAlignment = 16;
constexpr uint16_t kHeaderLength = 30;

/// A table's fields in the order of their ids: numbers and lists of them, None for what is left
/// out. Signed and unsigned numbers are 32 bits alike.
using Field = std::variant<std::monostate, int64_t, double, std::vector<uint32_t>>;
using Fields = std::vector<Field>;
/// Union member, fields.
using Member = std::tuple<int, Fields>;
/// Id, type, dims, entry of constants (0: none), external id, flags, quantization.
using Value = std::tuple<uint32_t, int, std::vector<uint32_t>, uint32_t, uint32_t, uint32_t,
                         std::optional<Member>>;
/// Member of XNodeUnion, debug handle, bounds.
using Node = std::tuple<Member, uint32_t, std::optional<std::tuple<float, float>>>;
/// Offset, bytes, key of named data.
using Constant = std::tuple<uint64_t, uint64_t, std::string>;

flatbuffers::voffset_t slot(size_t id) {
  return static_cast<flatbuffers::voffset_t>(4 + 2 * id);
}

flatbuffers::Offset<void> write_table(flatbuffers::FlatBufferBuilder& fbb, const Fields& fields) {
  std::vector<flatbuffers::Offset<flatbuffers::Vector<uint32_t>>> lists(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    if (const auto* list = std::get_if<std::vector<uint32_t>>(&fields[i])) {
      lists[i] = fbb.CreateVector(*list);
    }
  }
  const auto start = fbb.StartTable();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (const auto* number = std::get_if<int64_t>(&fields[i])) {
      fbb.AddElement<uint32_t>(slot(i), static_cast<uint32_t>(*number), 0);
    } else if (const auto* real = std::get_if<double>(&fields[i])) {
      fbb.AddElement<float>(slot(i), static_cast<float>(*real), 0);
    } else if (!lists[i].IsNull()) {
      fbb.AddOffset(slot(i), lists[i]);
    }
  }
  return flatbuffers::Offset<void>(fbb.EndTable(start));
}

flatbuffers::Offset<fb::XValue> write_value(flatbuffers::FlatBufferBuilder& fbb,
                                            const Value& value) {
  const auto& [id, type, dims, constant, external, flags, quantization] = value;
  flatbuffers::Offset<void> params;
  if (quantization) params = write_table(fbb, std::get<1>(*quantization));
  const auto tensor = fb::CreateXNNTensorValue(
      fbb, static_cast<fb::XNNDatatype>(type), static_cast<uint32_t>(dims.size()),
      fbb.CreateVector(dims), constant, external, flags, id);
  if (!quantization) return fb::CreateXValue(fbb, fb::XValueUnion::XNNTensorValue, tensor.Union());
  const auto kind = static_cast<fb::XNNQuantParams>(std::get<0>(*quantization));
  return fb::CreateXValue(fbb, fb::XValueUnion::XNNQuantizedTensorValue,
                          fb::CreateXNNQuantizedTensorValue(fbb, tensor, kind, params).Union());
}

template <class T>
void put(std::string& bytes, size_t at, T number) {
  std::memcpy(bytes.data() + at, &number, sizeof(number));
}

nb::bytes write_payload(const std::vector<Value>& values, const std::vector<Node>& nodes,
                        const std::vector<Constant>& constants, uint32_t n_externals,
                        const std::vector<uint32_t>& inputs, const std::vector<uint32_t>& outputs,
                        const std::string& version) {
  flatbuffers::FlatBufferBuilder fbb;
  std::vector<flatbuffers::Offset<fb::XValue>> value_tables;
  for (const Value& value : values) value_tables.push_back(write_value(fbb, value));
  std::vector<flatbuffers::Offset<fb::XNode>> node_tables;
  for (const auto& [member, handle, bounds] : nodes) {
    const auto table = write_table(fbb, std::get<1>(member));
    flatbuffers::Offset<fb::OutputMinMax> min_max;
    if (bounds) min_max = fb::CreateOutputMinMax(fbb, std::get<0>(*bounds), std::get<1>(*bounds));
    node_tables.push_back(fb::CreateXNode(fbb, static_cast<fb::XNodeUnion>(std::get<0>(member)),
                                          table, handle, min_max));
  }
  std::vector<flatbuffers::Offset<fb::ConstantDataOffset>> entries;
  for (const auto& [offset, size, key] : constants) {
    entries.push_back(fb::CreateConstantDataOffset(fbb, offset, size, fbb.CreateString(key)));
  }
  fbb.Finish(
      fb::CreateXNNGraph(fbb, fbb.CreateString(version), fbb.CreateVector(node_tables),
                         fbb.CreateVector(value_tables), n_externals, fbb.CreateVector(inputs),
                         fbb.CreateVector(outputs), 0, 0, fbb.CreateVector(entries)),
      fb::XNNGraphIdentifier());
  const size_t size = fbb.GetSize();
  const size_t total = kHeaderBytes + (size + kAlignment - 1) / kAlignment * kAlignment;
  std::string bytes(total, '\0');
  std::memcpy(&bytes[4], "XH00", 4);
  put(bytes, 8, kHeaderLength);
  put(bytes, 10, static_cast<uint32_t>(kHeaderBytes));
  put(bytes, 14, static_cast<uint32_t>(size));
  put(bytes, 18, static_cast<uint32_t>(total));
  put(bytes, 22, uint64_t{0});
  std::memcpy(&bytes[kHeaderBytes], fbb.GetBufferPointer(), size);
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

NB_MODULE(_native, m) {
  m.attr("NODE_FIELDS") = executorch::backends::xnnpack::node_fields();
  m.def("write_payload", &write_payload, nb::arg("values"), nb::arg("nodes"), nb::arg("constants"),
        nb::arg("n_externals"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("version"));
  m.def("read_payload", &executorch::backends::xnnpack::read_payload, nb::arg("payload"));
  m.def("constants_offset", &executorch::backends::xnnpack::constants_offset, nb::arg("payload"));
}
