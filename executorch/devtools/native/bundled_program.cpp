#include <executorch/devtools/bundled_program/bundled_program_generated.h>
#include <executorch/devtools/native/aligned_bytes.h>
#include <executorch/devtools/native/bundled_program.h>
#include <executorch/exir/native/borrowed_bytes.h>
#include <executorch/exir/native/python_fields.h>

#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;
namespace fb = bundled_program_flatbuffer;

namespace executorch::devtools {
namespace {

using exir::BorrowedBytes;
using exir::to_int;
using exir::to_vector;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using flatbuffers::Vector;

constexpr size_t kProgramAlignment = 32;
constexpr size_t kDataAlignment = 16;

class BundleWriter {
 public:
  nb::bytes bundle(nb::handle b) {
    const auto suites = builder_.CreateVector(
        to_vector(b.attr("method_test_suites"), [this](nb::handle s) { return suite(s); }));
    const auto program = octets(b.attr("program"), kProgramAlignment);
    const auto version = to_int<uint32_t>(b.attr("version"), "BundledProgram.version");
    builder_.Finish(fb::CreateBundledProgram(builder_, version, suites, program),
                    fb::BundledProgramIdentifier());
    return nb::bytes(builder_.GetBufferPointer(), builder_.GetSize());
  }

 private:
  Offset<Vector<uint8_t>> octets(nb::handle buffer, size_t alignment) {
    const BorrowedBytes bytes(buffer);
    builder_.ForceVectorAlignment(bytes.size(), 1, alignment);
    return builder_.CreateVector(bytes.data(), bytes.size());
  }

  Offset<fb::BundledMethodTestSuite> suite(nb::handle s) {
    const auto name = exir::add_string(builder_, s.attr("method_name"));
    const auto cases = builder_.CreateVector(
        to_vector(s.attr("test_cases"), [this](nb::handle c) { return test_case(c); }));
    return fb::CreateBundledMethodTestSuite(builder_, name, cases);
  }

  Offset<fb::BundledMethodTestCase> test_case(nb::handle c) {
    const auto convert = [this](nb::handle v) { return value(v); };
    const auto inputs = builder_.CreateVector(to_vector(c.attr("inputs"), convert));
    const auto outputs = builder_.CreateVector(to_vector(c.attr("expected_outputs"), convert));
    return fb::CreateBundledMethodTestCase(builder_, inputs, outputs);
  }

  Offset<fb::Value> value(nb::handle v) {
    const nb::object content = v.attr("val");
    const std::string kind = nb::cast<std::string>(content.type().attr("__name__"));
    if (kind == "Tensor") {
      return fb::CreateValue(builder_, fb::ValueUnion::Tensor, tensor(content).Union());
    }
    if (kind == "Int") {
      const auto number = to_int<int64_t>(content.attr("int_val"), "Int.int_val");
      return fb::CreateValue(builder_, fb::ValueUnion::Int,
                             fb::CreateInt(builder_, number).Union());
    }
    if (kind == "Bool") {
      const bool truth = exir::to_bool(content.attr("bool_val"));
      return fb::CreateValue(builder_, fb::ValueUnion::Bool,
                             fb::CreateBool(builder_, truth).Union());
    }
    if (kind == "Double") {
      const double number = exir::to_double(content.attr("double_val"));
      return fb::CreateValue(builder_, fb::ValueUnion::Double,
                             fb::CreateDouble(builder_, number).Union());
    }
    throw nb::value_error(("Value.val: a bundled program cannot hold a " + kind).c_str());
  }

  Offset<fb::Tensor> tensor(nb::handle t) {
    const auto sizes = builder_.CreateVector(exir::to_ints<int32_t>(t.attr("sizes"), "sizes"));
    const auto data = octets(t.attr("data"), kDataAlignment);
    const auto order =
        builder_.CreateVector(exir::to_ints<uint8_t>(t.attr("dim_order"), "dim_order"));
    const auto type = to_int<int8_t>(t.attr("scalar_type"), "Tensor.scalar_type");
    return fb::CreateTensor(builder_, executorch_flatbuffer::ScalarType{type}, sizes, data, order);
  }

  FlatBufferBuilder builder_;
};

class BundleReader {
 public:
  explicit BundleReader(uint64_t file_bytes) : left_(file_bytes) {}

  nb::object bundle(const fb::BundledProgram& b) {
    if (b.program() == nullptr) throw nb::value_error("bundled program: it holds no program");
    nb::list suites;
    for (flatbuffers::uoffset_t i = 0; b.method_test_suites() && i < b.method_test_suites()->size();
         ++i) {
      place_ = "method_test_suites[" + std::to_string(i) + "]";
      suites.append(suite(*b.method_test_suites()->Get(i)));
    }
    return schema_.attr("BundledProgram")(b.version(), suites, octets(b.program()));
  }

 private:
  [[noreturn]] void damaged(const std::string& what) const {
    throw nb::value_error(("bundled program: " + place_ + ": " + what).c_str());
  }

  // Parts of a file may share bytes, but not so that they are more than the file when taken apart.
  void take(uint64_t bytes) {
    if (bytes > left_) damaged("its parts have more bytes than the file");
    left_ -= bytes;
  }

  nb::bytes octets(const Vector<uint8_t>* items) {
    take(items == nullptr ? 0 : items->size());
    return items == nullptr ? nb::bytes("", 0) : nb::bytes(items->data(), items->size());
  }

  template <typename T>
  nb::list numbers(const Vector<T>* items) {
    take(items == nullptr ? 0 : items->size());
    nb::list result;
    for (flatbuffers::uoffset_t i = 0; items != nullptr && i < items->size(); ++i) {
      result.append(items->Get(i));
    }
    return result;
  }

  nb::object suite(const fb::BundledMethodTestSuite& s) {
    if (s.method_name() == nullptr) damaged("it has no method name");
    take(s.method_name()->size());
    nb::object name = nb::steal(PyUnicode_DecodeUTF8(
        s.method_name()->c_str(), static_cast<Py_ssize_t>(s.method_name()->size()), nullptr));
    if (!name.is_valid()) {
      PyErr_Clear();
      damaged("its name is not UTF-8");
    }
    nb::list cases;
    const std::string place = place_;
    for (flatbuffers::uoffset_t i = 0; s.test_cases() != nullptr && i < s.test_cases()->size();
         ++i) {
      place_ = place + ".test_cases[" + std::to_string(i) + "]";
      const fb::BundledMethodTestCase& test = *s.test_cases()->Get(i);
      cases.append(schema_.attr("BundledMethodTestCase")(values(test.inputs()),
                                                         values(test.expected_outputs())));
    }
    return schema_.attr("BundledMethodTestSuite")(name, cases);
  }

  nb::list values(const Vector<Offset<fb::Value>>* items) {
    nb::list result;
    for (flatbuffers::uoffset_t i = 0; items != nullptr && i < items->size(); ++i) {
      result.append(schema_.attr("Value")(content(*items->Get(i))));
    }
    return result;
  }

  nb::object content(const fb::Value& v) {
    if (const fb::Tensor* t = v.val_as_Tensor()) {
      const int type = static_cast<int>(t->scalar_type());
      if (*executorch_flatbuffer::EnumNameScalarType(t->scalar_type()) == '\0') {
        damaged("a tensor is of the unknown type " + std::to_string(type));
      }
      return schema_.attr("Tensor")(scalar_type_(type), numbers(t->sizes()), octets(t->data()),
                                    numbers(t->dim_order()));
    }
    if (const fb::Int* number = v.val_as_Int()) return schema_.attr("Int")(number->int_val());
    if (const fb::Bool* truth = v.val_as_Bool()) return schema_.attr("Bool")(truth->bool_val());
    if (const fb::Double* number = v.val_as_Double()) {
      return schema_.attr("Double")(number->double_val());
    }
    damaged("a value is empty or of the unknown kind " +
            std::to_string(static_cast<int>(v.val_type())));
  }

  std::string place_;
  uint64_t left_;
  nb::module_ schema_ = nb::module_::import_("executorch.devtools.bundled_program.schema");
  nb::object scalar_type_ = nb::module_::import_("executorch.exir.scalar_type").attr("ScalarType");
};

}  // namespace

nb::object read_bundled_program(nb::handle source) {
  const BorrowedBytes file(source);
  const std::string size = std::to_string(file.size()) + " bytes";
  if (file.size() < 8 || !fb::BundledProgramBufferHasIdentifier(file.data())) {
    throw nb::value_error(("not a bundled program: these " + size + " do not have " +
                           fb::BundledProgramIdentifier() + " at byte 4")
                              .c_str());
  }
  const AlignedBytes bytes(file, 0);
  const auto max_tables = static_cast<flatbuffers::uoffset_t>(file.size() / 4 + 1);
  flatbuffers::Verifier verifier(bytes.data(), file.size(), 64, max_tables);
  if (!fb::VerifyBundledProgramBuffer(verifier)) {
    throw nb::value_error(("bundled program: its flatbuffer of " + size + " is damaged").c_str());
  }
  return BundleReader(file.size()).bundle(*fb::GetBundledProgram(bytes.data()));
}

nb::bytes write_bundled_program(nb::handle bundle) {
  return BundleWriter().bundle(bundle);
}

}  // namespace executorch::devtools
