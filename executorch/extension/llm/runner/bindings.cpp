// executorch.extension.llm.runner._llm_runner

#include <executorch/extension/llm/runner/llm_runner_helper.h>
#include <executorch/extension/llm/runner/metadata.h>
#include <executorch/extension/llm/runner/multimodal_runner.h>
#include <executorch/extension/llm/runner/text_llm_runner.h>
#include <executorch/runtime/platform/runtime.h>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <stdexcept>

namespace nb = nanobind;
using executorch::extension::Module;
using executorch::runtime::Error;
using namespace executorch::extension::llm;

namespace {

/// An array of the host, in C order.
using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Inputs = std::vector<MultimodalInput>;
using Path = std::filesystem::path;

void check(Error error, const char* what) {
  if (error == Error::Ok) return;
  throw std::runtime_error(std::string(what) + ": " + executorch::runtime::to_string(error) +
                           "; the log says why");
}

nb::str text_of(const std::string& bytes) {
  PyObject* const text =
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (text == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(text);
}

/// What a runner of either kind has in Python. Calls from several threads come one after the other;
/// callbacks may call it, too. Exceptions of callbacks end a generation, and are thrown behind it.
template <class Runner>
class PyRunner {
 public:
  PyRunner(std::unique_ptr<Runner> runner, int64_t vocabulary_size)
      : runner_(std::move(runner)), vocabulary_size_(vocabulary_size) {}

  template <class Prompt>
  void generate(const Prompt& prompt, const GenerationConfig& config, const nb::object& on_text,
                const nb::object& on_stats) {
    std::exception_ptr thrown;
    const auto guarded = [&](const auto& call) {
      if (thrown != nullptr) return;
      const nb::gil_scoped_acquire acquire;
      try {
        call();
      } catch (...) {
        thrown = std::current_exception();
        runner_->stop();
      }
    };
    std::function<void(const std::string&)> text_callback;
    std::function<void(const Stats&)> stats_callback;
    if (!on_text.is_none()) {
      text_callback = [&](const std::string& text) { guarded([&] { on_text(text_of(text)); }); };
    }
    if (!on_stats.is_none()) {
      stats_callback = [&](const Stats& stats) { guarded([&] { on_stats(nb::cast(stats)); }); };
    }
    const Error error = in_turn([&](Runner& runner) {
      return runner.generate(prompt, config, text_callback, stats_callback);
    });
    if (thrown != nullptr) std::rethrow_exception(thrown);
    check(error, "generate");
  }

  /// What `call` gives of the runner, while no other thread calls it.
  template <class Call>
  auto in_turn(const Call& call) {
    const nb::gil_scoped_release release;
    const std::lock_guard<std::recursive_mutex> turn(mutex_);
    return call(*runner_);
  }

  /// From any thread, also while another one generates.
  void stop() { runner_->stop(); }
  int64_t vocabulary_size() const { return vocabulary_size_; }

 private:
  std::unique_ptr<Runner> runner_;
  int64_t vocabulary_size_;
  std::recursive_mutex mutex_;
};
using PyText = PyRunner<TextLLMRunner>;
using PyMultimodal = PyRunner<MultimodalRunner>;

/// -1 if the program does not say it.
int64_t named_vocabulary_size(const std::string& model_path) {
  Module module(model_path, Module::LoadMode::Mmap);
  const auto names = module.method_names();
  if (!names.ok() || names->count(kVocabSize) == 0) return -1;
  const auto sizes = constant_integers(module, kVocabSize);
  return sizes.empty() ? -1 : sizes[0];
}

std::unique_ptr<tokenizers::Tokenizer> tokenizer_of(const std::string& path) {
  auto tokenizer = load_tokenizer(path);
  if (tokenizer == nullptr) {
    throw std::runtime_error(std::string("cannot read the tokenizer ") + text_of(path).c_str() +
                             "; the log says why");
  }
  return tokenizer;
}

template <class Runner>
void construct(PyRunner<Runner>* self, std::unique_ptr<Runner> runner, const std::string& path) {
  if (runner == nullptr) {
    throw std::runtime_error(std::string("cannot run ") + text_of(path).c_str() +
                             "; the log says why");
  }
  check(runner->load(), "load");
  new (self) PyRunner<Runner>(std::move(runner), named_vocabulary_size(path));
}

/// Bytes or floats of an array, with three sizes: [1, ...] in front is left out.
struct Media {
  Media(const Array& array, const char* what) : is_bytes(array.dtype() == nb::dtype<uint8_t>()) {
    if (!is_bytes && array.dtype() != nb::dtype<float>()) {
      throw std::runtime_error(std::string(what) + ": expected elements of uint8 or float32");
    }
    for (size_t i = 0; i < array.ndim(); ++i) sizes.push_back(static_cast<int64_t>(array.shape(i)));
    if (sizes.size() == 4 && sizes[0] == 1) sizes.erase(sizes.begin());
    bool fits = sizes.size() == 3;
    for (const int64_t size : sizes) fits = fits && size > 0 && size <= INT32_MAX;
    if (!fits) throw std::runtime_error(std::string(what) + ": expected three dims, none empty");
    const auto* const data = static_cast<const uint8_t*>(array.data());
    bytes.assign(data, data + array.nbytes());
  }
  std::vector<float> floats() const {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  int32_t size(size_t i) const { return static_cast<int32_t>(sizes[i]); }

  bool is_bytes;
  std::vector<int64_t> sizes;
  std::vector<uint8_t> bytes;
};

/// [h, w, c] as [c, h, w].
template <class T>
std::vector<T> channels_first(const std::vector<T>& values, size_t n_channels) {
  return internal::planes_of(values.data(), values.size(), n_channels);
}

MultimodalInput image_of(const Array& array) {
  Media media(array, "make_image_input");
  const auto is_count = [](int64_t n) { return n == 1 || n == 3 || n == 4; };
  const bool is_first = is_count(media.sizes[0]);
  if (!is_first && !is_count(media.sizes[2])) {
    throw std::runtime_error("make_image_input: expected 1, 3 or 4 channels, first or last");
  }
  const int32_t channels = media.size(is_first ? 0 : 2);
  const int32_t height = media.size(is_first ? 1 : 0);
  const int32_t width = media.size(is_first ? 2 : 1);
  const auto n = static_cast<size_t>(channels);
  if (media.is_bytes) {
    auto values = is_first ? std::move(media.bytes) : channels_first(media.bytes, n);
    return make_image_input(Image(std::move(values), width, height, channels));
  }
  auto values = is_first ? media.floats() : channels_first(media.floats(), n);
  return make_image_input(Image(std::move(values), width, height, channels));
}

MultimodalInput audio_of(const Array& array) {
  Media media(array, "make_audio_input");
  const int32_t batch = media.size(0), bins = media.size(1), frames = media.size(2);
  if (media.is_bytes) return make_audio_input(Audio(std::move(media.bytes), batch, bins, frames));
  return make_audio_input(Audio(media.floats(), batch, bins, frames));
}

MultimodalInput raw_audio_of(const Array& array) {
  Media media(array, "make_raw_audio_input");
  const int32_t batch = media.size(0), channels = media.size(1), n = media.size(2);
  return make_raw_audio_input(RawAudio{std::move(media.bytes), batch, channels, n});
}

std::string repr_of(nb::handle value) {
  if (!PyFloat_Check(value.ptr())) return nb::cast<std::string>(nb::repr(value));
  char text[32];
  std::snprintf(text, sizeof(text), "%g", nb::cast<double>(value));  // of 32 bits, most of them
  return text;
}

/// "Name(property=value, ...)" of those properties that are not None.
auto repr_with(std::vector<const char*> properties) {
  return [properties = std::move(properties)](nb::handle self) {
    auto text = nb::cast<std::string>(self.type().attr("__name__")) + "(";
    const size_t begin = text.size();
    for (const char* name : properties) {
      nb::object value = self.attr(name);
      if (PyCallable_Check(value.ptr()) != 0) value = value();
      if (value.is_none()) continue;
      text += (text.size() == begin ? "" : ", ") + (name + ("=" + repr_of(value)));
    }
    return text + ")";
  };
}

void add_settings(nb::module_& m) {
  nb::class_<GenerationConfig>(m, "GenerationConfig", "What a generation is bounded by.")
      .def(
          "__init__",
          [](GenerationConfig* self, bool echo, int32_t max_new_tokens, bool warming,
             int32_t seq_len, float temperature, int32_t num_bos, int32_t num_eos) {
            new (self) GenerationConfig();
            self->echo = echo;
            self->max_new_tokens = max_new_tokens;
            self->warming = warming;
            self->seq_len = seq_len;
            self->temperature = temperature;
            self->num_bos = num_bos;
            self->num_eos = num_eos;
          },
          nb::kw_only(), nb::arg("echo") = true, nb::arg("max_new_tokens") = -1,
          nb::arg("warming") = false, nb::arg("seq_len") = -1, nb::arg("temperature") = 0.8f,
          nb::arg("num_bos") = 0, nb::arg("num_eos") = 0)
      .def_rw("echo", &GenerationConfig::echo)
      .def_rw("max_new_tokens", &GenerationConfig::max_new_tokens)
      .def_rw("warming", &GenerationConfig::warming)
      .def_rw("seq_len", &GenerationConfig::seq_len)
      .def_rw("temperature", &GenerationConfig::temperature)
      .def_rw("num_bos", &GenerationConfig::num_bos)
      .def_rw("num_eos", &GenerationConfig::num_eos)
      .def_rw("ignore_eos", &GenerationConfig::ignore_eos)
      .def_rw("grammar", &GenerationConfig::grammar)
      .def_rw("grammar_type", &GenerationConfig::grammar_type)
      .def("resolve_max_new_tokens", &GenerationConfig::resolve_max_new_tokens,
           nb::arg("max_context_len"), nb::arg("num_tokens_occupied"))
      .def("__repr__", repr_with({"max_new_tokens", "seq_len", "temperature", "echo", "warming",
                                  "num_bos", "num_eos", "ignore_eos"}));
  nb::class_<Stats>(m, "Stats", "When the steps of a generation ended, in milliseconds.")
      .def(nb::init<>())
      .def_ro("SCALING_FACTOR_UNITS_PER_SECOND", &Stats::SCALING_FACTOR_UNITS_PER_SECOND)
      .def_rw("model_load_start_ms", &Stats::model_load_start_ms)
      .def_rw("model_load_end_ms", &Stats::model_load_end_ms)
      .def_rw("inference_start_ms", &Stats::inference_start_ms)
      .def_rw("token_encode_end_ms", &Stats::token_encode_end_ms)
      .def_rw("model_execution_start_ms", &Stats::model_execution_start_ms)
      .def_rw("model_execution_end_ms", &Stats::model_execution_end_ms)
      .def_rw("prompt_eval_end_ms", &Stats::prompt_eval_end_ms)
      .def_rw("first_token_ms", &Stats::first_token_ms)
      .def_rw("inference_end_ms", &Stats::inference_end_ms)
      .def_rw("aggregate_sampling_time_ms", &Stats::aggregate_sampling_time_ms)
      .def_rw("aggregate_model_execution_time_ms", &Stats::aggregate_model_execution_time_ms)
      .def_rw("num_prompt_tokens", &Stats::num_prompt_tokens)
      .def_rw("num_generated_tokens", &Stats::num_generated_tokens)
      .def("on_sampling_begin", &Stats::on_sampling_begin)
      .def("on_sampling_end", &Stats::on_sampling_end)
      .def("reset", &Stats::reset, nb::arg("all_stats") = false)
      .def("to_json_string", [](const Stats& self) { return stats_to_json_string(self); })
      .def("__repr__", repr_with({"num_prompt_tokens", "num_generated_tokens",
                                  "model_load_start_ms", "model_load_end_ms", "inference_start_ms",
                                  "prompt_eval_end_ms", "first_token_ms", "inference_end_ms"}));
}

void add_media(nb::module_& m) {
  nb::class_<Image>(m, "Image", "An image: channel after channel, row after row.")
      .def(nb::init<>())
      .def(
          "__init__",
          [](Image* self, std::vector<uint8_t> data, int32_t width, int32_t height,
             int32_t channels) { new (self) Image(std::move(data), width, height, channels); },
          nb::arg("data"), nb::arg("width"), nb::arg("height"), nb::arg("channels"))
      .def(
          "__init__",
          [](Image* self, std::vector<float> data, int32_t width, int32_t height,
             int32_t channels) { new (self) Image(std::move(data), width, height, channels); },
          nb::arg("data"), nb::arg("width"), nb::arg("height"), nb::arg("channels"))
      .def("is_uint8", &Image::is_uint8)
      .def("is_float", &Image::is_float)
      .def_prop_ro("width", &Image::width)
      .def_prop_ro("height", &Image::height)
      .def_prop_ro("channels", &Image::channels)
      .def_prop_ro("uint8_data",
                   [](const Image& self) {
                     if (!self.is_uint8()) throw std::runtime_error("the image has floats");
                     return self.get_uint8_data();
                   })
      .def_prop_ro("float_data",
                   [](const Image& self) {
                     if (!self.is_float()) throw std::runtime_error("the image has bytes");
                     return self.get_float_data();
                   })
      .def("__repr__", repr_with({"width", "height", "channels", "is_float"}));
  nb::class_<Audio>(m, "Audio", "A spectrogram.")
      .def_prop_ro("batch_size", &Audio::get_batch_size)
      .def_prop_ro("n_bins", &Audio::get_n_bins)
      .def_prop_ro("n_frames", &Audio::get_n_frames)
      .def("__repr__", repr_with({"batch_size", "n_bins", "n_frames"}));
  nb::class_<RawAudio>(m, "RawAudio", "Sound as it was recorded.")
      .def_ro("batch_size", &RawAudio::batch_size)
      .def_ro("n_channels", &RawAudio::n_channels)
      .def_ro("n_samples", &RawAudio::n_samples)
      .def("__repr__", repr_with({"batch_size", "n_channels", "n_samples"}));
}

void add_inputs(nb::module_& m) {
  const auto part = [](auto get) {
    return [get](const MultimodalInput& self) -> nb::object {
      const auto* const found = (self.*get)();
      return found == nullptr ? nb::object(nb::none()) : nb::cast(*found);
    };
  };
  using Input = MultimodalInput;
  nb::class_<Input>(m, "MultimodalInput", "A piece of a prompt.")
      .def(nb::init<const std::string&>(), nb::arg("text"))
      .def(nb::init<const Image&>(), nb::arg("image"))
      .def(nb::init<const Audio&>(), nb::arg("audio"))
      .def(nb::init<const RawAudio&>(), nb::arg("raw_audio"))
      .def(nb::init<const std::vector<uint64_t>&>(), nb::arg("tokens"))
      .def("is_text", &Input::is_text)
      .def("is_tokens", &Input::is_tokens)
      .def("is_image", &Input::is_image)
      .def("is_audio", &Input::is_audio)
      .def("is_raw_audio", &Input::is_raw_audio)
      .def("get_text",
           part(static_cast<const std::string* (Input::*)() const noexcept>(&Input::try_get_text)))
      .def("get_tokens", part(static_cast<const std::vector<uint64_t>* (Input::*)() const noexcept>(
                             &Input::try_get_tokens)))
      .def("get_image",
           part(static_cast<const Image* (Input::*)() const noexcept>(&Input::try_get_image)))
      .def("get_audio",
           part(static_cast<const Audio* (Input::*)() const noexcept>(&Input::try_get_audio)))
      .def(
          "get_raw_audio",
          part(static_cast<const RawAudio* (Input::*)() const noexcept>(&Input::try_get_raw_audio)))
      .def("__repr__", [](nb::handle self) {
        for (const char* kind : {"text", "tokens", "image", "audio", "raw_audio"}) {
          const nb::object found = self.attr((std::string("get_") + kind).c_str())();
          if (!found.is_none()) {
            return "MultimodalInput(" + std::string(kind) + "=" + repr_of(found) + ")";
          }
        }
        return std::string("MultimodalInput()");
      });
  m.def(
      "make_text_input", [](const std::string& text) { return make_text_input(text); },
      nb::arg("text"));
  m.def(
      "make_token_input",
      [](std::vector<uint64_t> tokens) { return make_token_input(std::move(tokens)); },
      nb::arg("tokens"));
  m.def("make_image_input", image_of, nb::arg("image_tensor"));
  m.def("make_audio_input", audio_of, nb::arg("audio_tensor"));
  m.def("make_raw_audio_input", raw_audio_of, nb::arg("audio_tensor"));
}

/// What both runners have.
template <class Runner>
nb::class_<PyRunner<Runner>> add_runner(nb::module_& m, const char* name, const char* doc) {
  using Py = PyRunner<Runner>;
  return nb::class_<Py>(m, name, doc, nb::dynamic_attr())
      .def("stop", &Py::stop)
      .def("reset", [](Py& self) { self.in_turn([](Runner& runner) { runner.reset(); }); })
      .def("get_vocab_size", &Py::vocabulary_size);
}

}  // namespace

NB_MODULE(_llm_runner, m) {
  executorch::runtime::runtime_init();
  m.doc() = "Runners of language models.";
  add_settings(m);
  add_media(m);
  add_inputs(m);
  add_runner<TextLLMRunner>(m, "TextLLMRunner", "Continues a text, prompt after prompt.")
      .def(
          "__init__",
          [](PyText* self, const Path& model, const Path& tokenizer,
             const std::optional<Path>& data) {
            std::vector<std::string> files;
            if (data.has_value()) files.push_back(data->string());
            construct(
                self,
                create_text_llm_runner(model.string(), tokenizer_of(tokenizer.string()), files),
                model.string());
          },
          nb::arg("model_path"), nb::arg("tokenizer_path"), nb::arg("data_path") = nb::none())
      .def("generate", &PyText::generate<std::string>, nb::arg("prompt"), nb::arg("config"),
           nb::arg("token_callback") = nb::none(), nb::arg("stats_callback") = nb::none())
      .def(
          "prefill",
          [](PyText& self, const std::string& prompt, const GenerationConfig& config) {
            check(
                self.in_turn([&](auto& runner) { return runner.prefill(prompt, config).error(); }),
                "prefill");
          },
          nb::arg("prompt"), nb::arg("config"));
  add_runner<MultimodalRunner>(m, "MultimodalRunner",
                               "Continues a text with images and sound in it.")
      .def(
          "__init__",
          [](PyMultimodal* self, const Path& model, const Path& tokenizer,
             const std::optional<Path>& data) {
            std::optional<const std::string> file;
            if (data.has_value()) file.emplace(data->string());
            construct(
                self,
                create_multimodal_runner(model.string(), tokenizer_of(tokenizer.string()), file),
                model.string());
          },
          nb::arg("model_path"), nb::arg("tokenizer_path"), nb::arg("data_path") = nb::none())
      .def("generate", &PyMultimodal::generate<Inputs>, nb::arg("inputs"), nb::arg("config"),
           nb::arg("token_callback") = nb::none(), nb::arg("stats_callback") = nb::none())
      .def(
          "prefill",
          [](PyMultimodal& self, const Inputs& inputs) {
            check(self.in_turn([&](auto& runner) { return runner.prefill(inputs).error(); }),
                  "prefill");
          },
          nb::arg("inputs"));
}
