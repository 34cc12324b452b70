// executorch.extension.llm.tokenizers._tokenizers

#include <executorch/extension/llm/tokenizers/stream_decoder.h>
#include <executorch/extension/llm/tokenizers/tokenizer_file.h>
#include <executorch/extension/llm/tokenizers/unicode_regex.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <limits>

namespace nb = nanobind;
using tokenizers::Tokenizer;
using Tokens = std::vector<uint64_t>;

namespace {

template <typename T>
T value_of(tokenizers::Result<T>&& result, const char* what) {
  if (!result.ok()) {
    const std::string reason = tokenizers::UnicodeRegex::take_failure();
    const std::string number = "error " + std::to_string(static_cast<unsigned>(result.error()));
    throw nb::value_error((std::string(what) + ": " + (reason.empty() ? number : reason)).c_str());
  }
  return std::move(result.get());
}

std::string bytes_of(nb::handle text) {
  if (nb::isinstance<nb::bytes>(text)) {
    const auto bytes = nb::borrow<nb::bytes>(text);
    return {bytes.c_str(), bytes.size()};
  }
  // Lone surrogates cannot be encoded; they are read as U+FFFD like other damaged text.
  const nb::object encoded = nb::borrow(text).attr("encode")("utf-8", "surrogatepass");
  const auto bytes = nb::cast<nb::bytes>(encoded);
  return {bytes.c_str(), bytes.size()};
}

int8_t count_of(int64_t n) {
  if (n < 0 || n > std::numeric_limits<int8_t>::max()) {
    throw nb::value_error("bos and eos are counts from 0 to 127");
  }
  return static_cast<int8_t>(n);
}

nb::str text_of(const std::string& bytes) {
  PyObject* const text =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (text == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(text);
}

std::unique_ptr<Tokenizer> checked(std::unique_ptr<Tokenizer> made, const std::string& error) {
  if (made == nullptr) {
    PyErr_SetObject(PyExc_ValueError, text_of(error).ptr());  // it may name a path of any bytes
    throw nb::python_error();
  }
  return made;
}

void bind_tokenizer(nb::module_& m) {
  nb::class_<Tokenizer>(m, "Tokenizer")
      .def(
          "encode",
          [](const Tokenizer& self, nb::handle text, int64_t bos, int64_t eos) {
            const std::string bytes = bytes_of(text);
            const int8_t first = count_of(bos);
            const int8_t last = count_of(eos);
            const nb::gil_scoped_release release;
            return value_of(self.encode(bytes, first, last), "encode");
          },
          nb::arg("text"), nb::kw_only(), nb::arg("bos") = 0, nb::arg("eos") = 0)
      .def(
          "decode",
          [](const Tokenizer& self, const Tokens& tokens, bool skip_special_tokens) {
            return text_of(value_of(self.decode_bytes(tokens, skip_special_tokens), "decode"));
          },
          nb::arg("tokens"), nb::arg("skip_special_tokens") = false)
      .def(
          "decode_bytes",
          [](const Tokenizer& self, const Tokens& tokens, bool skip_special_tokens) {
            const std::string bytes =
                value_of(self.decode_bytes(tokens, skip_special_tokens), "decode");
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("tokens"), nb::arg("skip_special_tokens") = false)
      .def(
          "decode_token",
          [](const Tokenizer& self, uint64_t token) {
            return text_of(value_of(self.decode(token, token), "decode"));
          },
          nb::arg("token"))
      .def(
          "token_bytes",
          [](const Tokenizer& self, uint64_t token) {
            const std::string bytes = value_of(self.token_bytes(token), "token_bytes");
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("token"))
      .def(
          "id_to_piece",
          [](const Tokenizer& self, uint64_t token) {
            return text_of(value_of(self.id_to_piece(token), "id_to_piece"));
          },
          nb::arg("token"))
      .def(
          "piece_to_id",
          [](const Tokenizer& self, nb::handle text) {
            return value_of(self.piece_to_id(bytes_of(text)), "piece_to_id");
          },
          nb::arg("text"))
      .def("is_special", &Tokenizer::is_special, nb::arg("token"))
      .def_prop_ro("vocab_size", &Tokenizer::vocab_size)
      .def_prop_ro("bos_id", &Tokenizer::bos_tok)
      .def_prop_ro("eos_id", &Tokenizer::eos_tok)
      .def_prop_ro("end_tokens", &Tokenizer::end_tokens)
      .def_prop_ro("chat_template", [](const Tokenizer& self) { return self.chat_template(); });
}

void bind_stream_decoder(nb::module_& m) {
  nb::class_<tokenizers::StreamDecoder>(m, "StreamDecoder")
      .def(nb::init<const Tokenizer&, bool>(), nb::arg("tokenizer"),
           nb::arg("skip_special_tokens") = true, nb::keep_alive<1, 2>())
      .def(
          "push",
          [](tokenizers::StreamDecoder& self, uint64_t token) {
            return value_of(self.push(token), "push");
          },
          nb::arg("token"))
      .def("finish", &tokenizers::StreamDecoder::finish);
}

void bind_loading(nb::module_& m) {
  m.def(
      "load_file",
      [](const std::filesystem::path& path, const std::vector<std::string>& special_tokens,
         const std::string& pattern) {
        std::string error;
        const tokenizers::TokenizerOptions options{special_tokens, pattern};
        return checked(tokenizers::load_tokenizer_file(path.string(), &error, options), error);
      },
      nb::arg("path"), nb::arg("special_tokens") = std::vector<std::string>(),
      nb::arg("pattern") = "");
  m.def(
      "load_bytes",
      [](nb::bytes bytes, const std::vector<std::string>& special_tokens,
         const std::string& pattern, nb::bytes merges, nb::bytes config) {
        std::string error;
        const tokenizers::TokenizerOptions options{special_tokens, pattern};
        return checked(tokenizers::load_tokenizer_bytes({bytes.c_str(), bytes.size()}, &error,
                                                        options, {merges.c_str(), merges.size()},
                                                        {config.c_str(), config.size()}),
                       error);
      },
      nb::arg("bytes"), nb::arg("special_tokens") = std::vector<std::string>(),
      nb::arg("pattern") = "", nb::arg("merges") = nb::bytes("", 0),
      nb::arg("config") = nb::bytes("", 0));
}

}  // namespace

NB_MODULE(_tokenizers, m) {
  m.doc() = "Text to tokens and back.";
  bind_tokenizer(m);
  bind_stream_decoder(m);
  bind_loading(m);
}
