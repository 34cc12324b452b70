// Payloads as JSON, with the names of schema.fbs: for looking at them, not for running.
#include <executorch/backends/xnnpack/serialization/reader.h>
#include <executorch/backends/xnnpack/serialization/schema_generated.h>
#include <flatbuffers/minireflect.h>

#include <cmath>
#include <cstdio>
#include <cstring>

namespace nb = nanobind;

namespace executorch::backends::xnnpack {
namespace {

namespace fb = fb_xnnpack;

/// Floats with all their digits, and those that are no numbers as Python spells them.
struct Visitor final : flatbuffers::ToStringVisitor {
  Visitor() : ToStringVisitor(" ", true, "", true) {}
  void Float(float x) override {
    char text[32];
    std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(x));
    s += std::isnan(x) ? "NaN" : std::isinf(x) ? (x < 0 ? "-Infinity" : "Infinity") : text;
  }
};

struct Parts {
  uint64_t graph = 0, graph_bytes = 0, constants = 0;
};

template <class T>
T number_at(const char* bytes, size_t at) {
  T number;
  std::memcpy(&number, bytes + at, sizeof(number));
  return number;
}

Parts parts_of(const nb::bytes& payload) {
  const char* const bytes = payload.c_str();
  if (payload.size() < 30 || std::memcmp(bytes + 4, "XH00", 4) != 0) return {0, payload.size(), 0};
  return {number_at<uint32_t>(bytes, 10), number_at<uint32_t>(bytes, 14),
          number_at<uint32_t>(bytes, 18)};
}

}  // namespace

nb::str read_payload(const nb::bytes& payload) {
  const Parts parts = parts_of(payload);
  const auto* const graph = reinterpret_cast<const uint8_t*>(payload.c_str()) + parts.graph;
  const bool is_inside = parts.graph + parts.graph_bytes <= payload.size();
  flatbuffers::Verifier verifier(graph, is_inside ? parts.graph_bytes : 0);
  if (!is_inside || !verifier.VerifyBuffer<fb::XNNGraph>(nullptr)) {
    throw nb::value_error("not an XNNPACK payload: its graph is no well-formed flatbuffer");
  }
  Visitor visitor;
  flatbuffers::IterateFlatBuffer(graph, fb::XNNGraphTypeTable(), &visitor);
  return nb::str(visitor.s.data(), visitor.s.size());
}

nb::dict node_fields() {
  nb::dict found;
  const auto* const members = fb::XNodeUnionTypeTable();
  for (size_t i = 1; i < members->num_elems; ++i) {
    const auto* const table = members->type_refs[members->type_codes[i].sequence_ref]();
    nb::dict fields;
    for (size_t field = 0; field < table->num_elems; ++field) {
      const auto code = table->type_codes[field];
      fields[table->names[field]] = code.is_repeating                         ? "list[int]"
                                    : code.base_type == flatbuffers::ET_FLOAT ? "float"
                                                                              : "int";
    }
    found[members->names[i] + std::strlen("XNN")] = fields;
  }
  return found;
}

uint64_t constants_offset(const nb::bytes& payload) {
  return parts_of(payload).constants;
}

}  // namespace executorch::backends::xnnpack
