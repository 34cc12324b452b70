#include <executorch/devtools/etdump/etdump_generated.h>
#include <executorch/devtools/native/aligned_bytes.h>
#include <executorch/devtools/native/etdump.h>

#include <cstring>
#include <map>
#include <string>

namespace nb = nanobind;
namespace fb = etdump_flatbuffer;

namespace executorch::devtools {
namespace {

constexpr uint64_t kPrefixBytes = sizeof(uint32_t);
constexpr uint32_t kVersion = 0;

// Turns tables into dataclasses and knows at which run and event it is.
class EtdumpReader {
 public:
  explicit EtdumpReader(uint64_t file_bytes) : left_(file_bytes) {}

  nb::object dump(const fb::ETDump& root) {
    require(root.version() == kVersion,
            "version " + std::to_string(root.version()) + ", not " + std::to_string(kVersion));
    return dump_(root.version(), list_of(root.run_data(), &EtdumpReader::run));
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    std::string place = "ETDump";
    if (n_runs_ > 0) place += ": run_data[" + std::to_string(n_runs_ - 1) + "]";
    if (n_events_ > 0) place += ".events[" + std::to_string(n_events_ - 1) + "]";
    throw nb::value_error((place + ": " + what).c_str());
  }

  void require(bool holds, const std::string& what) const {
    if (!holds) damaged(what);
  }

  // A text as str; None if it is absent.
  nb::object text(const flatbuffers::String* s) {
    if (s == nullptr) return nb::none();
    // Writers store a text once for many events, so decode it once.
    nb::object& known = texts_[s];
    if (!known.is_valid()) {
      const auto size = static_cast<Py_ssize_t>(s->size());
      take(s->size());
      known = nb::steal(PyUnicode_DecodeUTF8(s->c_str(), size, nullptr));
    }
    if (!known.is_valid()) {
      PyErr_Clear();
      damaged("a text is not UTF-8");
    }
    return known;
  }

  nb::object name(const flatbuffers::String* s) {
    require(s != nullptr, "it has no name");
    return text(s);
  }

  template <typename T>
  nb::list list_of(const flatbuffers::Vector<flatbuffers::Offset<T>>* items,
                   nb::object (EtdumpReader::*convert)(const T&)) {
    nb::list result;
    for (flatbuffers::uoffset_t i = 0; items != nullptr && i < items->size(); ++i) {
      result.append((this->*convert)(*items->Get(i)));
    }
    return result;
  }

  template <typename T>
  nb::object optional(const T* table, nb::object (EtdumpReader::*convert)(const T&)) {
    return table == nullptr ? nb::none() : (this->*convert)(*table);
  }

  // Reads an element that may be unaligned: the verifier checks the alignment of a vector's length
  // only.
  static int64_t number_at(const flatbuffers::Vector<int64_t>& items, flatbuffers::uoffset_t i) {
    int64_t number;
    std::memcpy(&number, items.Data() + i * sizeof(number), sizeof(number));
    return flatbuffers::EndianScalar(number);
  }

  // Counts bytes that are converted. Parts of a file may share bytes, but if the converted parts
  // together are larger than the file, it is refused.
  void take(uint64_t bytes) {
    require(bytes <= left_, "its parts have more bytes than the file");
    left_ -= bytes;
  }

  nb::list numbers(const flatbuffers::Vector<int64_t>* items) {
    take(items == nullptr ? 0 : items->size());
    nb::list result;
    for (flatbuffers::uoffset_t i = 0; items != nullptr && i < items->size(); ++i) {
      result.append(number_at(*items, i));
    }
    return result;
  }

  nb::object run(const fb::RunData& r) {
    ++n_runs_;
    n_events_ = 0;
    nb::object allocators = nb::none();
    if (r.allocators() != nullptr) allocators = list_of(r.allocators(), &EtdumpReader::allocator);
    nb::object events = nb::none();
    if (r.events() != nullptr) events = list_of(r.events(), &EtdumpReader::event);
    n_events_ = 0;
    return run_(name(r.name()), r.bundled_input_index(), allocators, events);
  }

  nb::object allocator(const fb::Allocator& a) { return allocator_(name(a.name())); }

  nb::object event(const fb::Event& e) {
    ++n_events_;
    const int kinds = (e.profile_event() != nullptr) + (e.allocation_event() != nullptr) +
                      (e.debug_event() != nullptr);
    require(kinds == 1, "it is of " + std::to_string(kinds) + " kinds, not of one");
    return event_(optional(e.profile_event(), &EtdumpReader::profile_event),
                  optional(e.allocation_event(), &EtdumpReader::allocation_event),
                  optional(e.debug_event(), &EtdumpReader::debug_event));
  }

  nb::object profile_event(const fb::ProfileEvent& e) {
    nb::object metadata = nb::none();
    if (const auto* bytes = e.delegate_debug_metadata()) {
      metadata = nb::bytes(bytes->data(), bytes->size());
    }
    return profile_event_(text(e.name()), e.chain_index(), e.instruction_id(),
                          e.delegate_debug_id_int(), text(e.delegate_debug_id_str()), metadata,
                          e.start_time(), e.end_time());
  }

  nb::object allocation_event(const fb::AllocationEvent& e) {
    return allocation_event_(e.allocator_id(), e.allocation_size());
  }

  nb::object debug_event(const fb::DebugEvent& e) {
    require(e.debug_entry() != nullptr, "it has no value");
    return debug_event_(text(e.name()), e.chain_index(), e.instruction_id(),
                        e.delegate_debug_id_int(), text(e.delegate_debug_id_str()),
                        value(*e.debug_entry()));
  }

  nb::object value(const fb::Value& v) {
    const bool has_content = v.val() == fb::ValueType::Tensor       ? v.tensor() != nullptr
                             : v.val() == fb::ValueType::TensorList ? v.tensor_list() != nullptr
                             : v.val() == fb::ValueType::Int        ? v.int_value() != nullptr
                             : v.val() == fb::ValueType::Float      ? v.float_value() != nullptr
                             : v.val() == fb::ValueType::Double     ? v.double_value() != nullptr
                             : v.val() == fb::ValueType::Bool       ? v.bool_value() != nullptr
                                                                    : true;
    const int kind = static_cast<int>(v.val());
    require(kind >= 0 && v.val() <= fb::ValueType::MAX,
            "its value is of the unknown kind " + std::to_string(kind));
    const char* kind_name = fb::EnumNameValueType(v.val());
    require(has_content, std::string("its value is a ") + kind_name + " without content");
    return value_(kind_name, optional(v.tensor(), &EtdumpReader::tensor),
                  optional(v.tensor_list(), &EtdumpReader::tensor_list),
                  optional(v.int_value(), &EtdumpReader::integer),
                  optional(v.float_value(), &EtdumpReader::single),
                  optional(v.double_value(), &EtdumpReader::real),
                  optional(v.bool_value(), &EtdumpReader::truth),
                  optional(v.output(), &EtdumpReader::truth));
  }

  nb::object tensor(const fb::Tensor& t) {
    const auto rank = [](const auto* dims) { return dims == nullptr ? 0 : dims->size(); };
    require(rank(t.sizes()) == rank(t.strides()),
            "its tensor has " + std::to_string(rank(t.sizes())) + " sizes and " +
                std::to_string(rank(t.strides())) + " strides");
    for (flatbuffers::uoffset_t d = 0; d < rank(t.sizes()); ++d) {
      const int64_t size = number_at(*t.sizes(), d);
      require(size >= 0, "its tensor has the size " + std::to_string(size));
    }
    require(t.offset() >= -1, "its tensor lies at the offset " + std::to_string(t.offset()));
    const int number = static_cast<int>(t.scalar_type());
    require(*executorch_flatbuffer::EnumNameScalarType(t.scalar_type()) != '\0',
            "its tensor is of the unknown type " + std::to_string(number));
    return tensor_(scalar_type_(number), numbers(t.sizes()), numbers(t.strides()), t.offset());
  }

  nb::object tensor_list(const fb::TensorList& l) {
    return tensor_list_(list_of(l.tensors(), &EtdumpReader::tensor));
  }
  nb::object integer(const fb::Int& v) { return int_(v.int_val()); }
  nb::object truth(const fb::Bool& v) { return bool_(v.bool_val()); }
  nb::object single(const fb::Float& v) { return float_(v.float_val()); }
  nb::object real(const fb::Double& v) { return double_(v.double_val()); }

  uint64_t left_;
  std::map<const flatbuffers::String*, nb::object> texts_;
  size_t n_runs_ = 0;
  size_t n_events_ = 0;
  nb::module_ schema_ = nb::module_::import_("executorch.devtools.etdump.schema_flatcc");
  nb::object dump_ = schema_.attr("ETDumpFlatCC");
  nb::object run_ = schema_.attr("RunData");
  nb::object allocator_ = schema_.attr("Allocator");
  nb::object event_ = schema_.attr("Event");
  nb::object profile_event_ = schema_.attr("ProfileEvent");
  nb::object allocation_event_ = schema_.attr("AllocationEvent");
  nb::object debug_event_ = schema_.attr("DebugEvent");
  nb::object value_ = schema_.attr("Value");
  nb::object tensor_ = schema_.attr("Tensor");
  nb::object scalar_type_ = schema_.attr("ScalarType");
  nb::object tensor_list_ = schema_.attr("TensorList");
  nb::object int_ = schema_.attr("Int");
  nb::object bool_ = schema_.attr("Bool");
  nb::object float_ = schema_.attr("Float");
  nb::object double_ = schema_.attr("Double");
};

}  // namespace

nb::object read_etdump(nb::handle source, bool size_prefixed) {
  const exir::BorrowedBytes file(source);
  const uint64_t prefix = size_prefixed ? kPrefixBytes : 0;
  const uint64_t identifier = prefix + sizeof(flatbuffers::uoffset_t);
  const std::string size = std::to_string(file.size()) + " bytes";
  if (file.size() < identifier + flatbuffers::kFileIdentifierLength ||
      std::memcmp(file.data() + identifier, fb::ETDumpIdentifier(),
                  flatbuffers::kFileIdentifierLength) != 0) {
    throw nb::value_error(("not an ETDump: these " + size + " do not have " +
                           fb::ETDumpIdentifier() + " at byte " + std::to_string(identifier))
                              .c_str());
  }
  if (size_prefixed) {
    flatbuffers::uoffset_t announced;
    std::memcpy(&announced, file.data(), sizeof(announced));
    const uint64_t expected = prefix + flatbuffers::EndianScalar(announced);
    if (expected != file.size()) {
      throw nb::value_error(("ETDump: its first word announces " + std::to_string(expected) +
                             " bytes, the file has " + size)
                                .c_str());
    }
  }
  // Some writers align fields to the file's first byte, others to the one behind the prefix.
  for (const uint64_t aligned : {uint64_t{0}, prefix}) {
    const AlignedBytes bytes(file, aligned);
    const auto max_tables = static_cast<flatbuffers::uoffset_t>(file.size() / 4 + 1);
    flatbuffers::Verifier verifier(bytes.data() + aligned, file.size() - aligned, 64, max_tables);
    const bool sound = aligned < prefix
                           ? verifier.VerifySizePrefixedBuffer<fb::ETDump>(fb::ETDumpIdentifier())
                           : verifier.VerifyBuffer<fb::ETDump>(fb::ETDumpIdentifier());
    if (sound) return EtdumpReader(file.size()).dump(*fb::GetETDump(bytes.data() + prefix));
  }
  throw nb::value_error(("ETDump: its flatbuffer of " + size + " is damaged").c_str());
}

}  // namespace executorch::devtools
