#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/inputs.h>
#include <executorch/extension/command/npy.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/executor/method_meta.h>
#include <executorch/schema/program_generated.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>

namespace executorch::extension::command {
namespace {

using aten::ScalarType;
using Sizes = std::vector<aten::SizesType>;

std::string text(const Sizes& sizes) {
  std::string out;
  for (const auto n : sizes) out += (out.empty() ? "" : "x") + std::to_string(n);
  return out.empty() ? "()" : out;
}

Sizes parse_shape(const std::string& shape) {
  Sizes sizes;
  for (const char* at = shape.data(); at < shape.data() + shape.size();) {
    aten::SizesType n = 0;
    const auto [end, error] = std::from_chars(at, shape.data() + shape.size(), n);
    const bool last = end == shape.data() + shape.size();
    if (error != std::errc() || n < 0 || (!last && (*end != 'x' || end[1] == '\0'))) {
      reject("'" + shape + "' is no shape; write 1x8");
    }
    sizes.push_back(n);
    at = end + (last ? 0 : 1);
  }
  return sizes;
}

template <typename T>
std::string generate(size_t n, bool random, std::mt19937_64& engine) {
  std::vector<T> values(n, static_cast<T>(1.0f));
  for (size_t i = 0; random && i < n; ++i) {
    if constexpr (std::is_integral_v<T>) {
      values[i] = static_cast<T>(engine() & 7);
    } else {
      const double unit = static_cast<double>(engine() >> 11) * 0x1p-53;
      values[i] = static_cast<T>(static_cast<float>(2 * unit - 1));
    }
  }
  return {reinterpret_cast<const char*>(values.data()), n * sizeof(T)};
}

std::string generate(ScalarType dtype, size_t n, bool random, std::mt19937_64& engine) {
  switch (dtype) {
#define GENERATE(ctype, name) \
  case ScalarType::name:      \
    return generate<ctype>(n, random, engine);
    ET_FORALL_REALHBF16_TYPES(GENERATE)
#undef GENERATE
    case ScalarType::Bool: {
      std::string bytes = generate<uint8_t>(n, random, engine);
      for (char& byte : bytes) byte = static_cast<char>(byte & 1);
      return bytes;
    }
    case ScalarType::UInt16:
      return generate<uint16_t>(n, random, engine);
    case ScalarType::UInt32:
      return generate<uint32_t>(n, random, engine);
    case ScalarType::UInt64:
      return generate<uint64_t>(n, random, engine);
    default:
      fail(std::string("no values can be generated for inputs of type ") +
           runtime::toString(dtype) + "; give files");
  }
}

/// What a method says about one of its tensor inputs.
struct Expected {
  size_t index;
  std::string name;  // "tokens"
  std::string text;  // "input 0 (tokens)"
  ScalarType dtype;
  Sizes bound;
  std::vector<aten::DimOrderType> dim_order;
  bool is_dynamic;
  size_t n_bytes;  // of the bound
};

Expected expected_of(const runtime::Method& method, size_t index) {
  const auto info = method.method_meta().input_tensor_meta(index);
  const runtime::ArgumentText input_text("input", index, method.input_name(index));
  check(info.error(), std::string("read what ") + input_text.text + " is");
  const auto& plan = method.plan();
  const auto value = static_cast<uint32_t>(plan.inputs()->Get(static_cast<uint32_t>(index)));
  const bool is_dynamic = plan.values()->Get(value)->val_as_Tensor()->shape_dynamism() !=
                          executorch_flatbuffer::TensorShapeDynamism::STATIC;
  return {index,
          method.input_name(index),
          input_text.text,
          info->scalar_type(),
          Sizes(info->sizes().begin(), info->sizes().end()),
          {info->dim_order().begin(), info->dim_order().end()},
          is_dynamic,
          info->nbytes()};
}

/// For messages: "input 0 (tokens, Long 1x8 at most)".
std::string describe(const Expected& input) {
  return "input " + std::to_string(input.index) + " (" +
         (input.name.empty() ? "" : input.name + ", ") + runtime::toString(input.dtype) + " " +
         text(input.bound) + (input.is_dynamic ? " at most)" : ")");
}

/// `file`: where the sizes come from; empty: from an option.
void check_sizes(const std::string& file, const Sizes& sizes, const Expected& input) {
  bool fits = sizes.size() == input.bound.size();
  for (size_t d = 0; fits && d < sizes.size(); ++d) {
    fits = input.is_dynamic ? sizes[d] <= input.bound[d] : sizes[d] == input.bound[d];
  }
  if (fits) return;
  fail((file.empty() ? "" : file + ": ") + describe(input) + " cannot be " + text(sizes));
}

size_t count(const Sizes& sizes) {
  size_t n = 1;
  for (const auto size : sizes) n *= static_cast<size_t>(size);
  return n;
}

// An upper bound on the header that NumPy writes in front of an array's bytes.
constexpr uint64_t kMostHeaderBytes = 1 << 20;

/// Reads the elements of `input`, whose sizes a file of raw bytes must have; a .npy file says its
/// own, which may be only those of an option (`is_shaped`).
void read_values(const std::string& path, const Expected& expected, bool is_shaped,
                 InputTensor& input) {
  std::string file = read_input_file(path, expected.n_bytes + kMostHeaderBytes);
  if (is_npy(file)) {
    const NpyArray array = read_npy(file, path);
    if (array.dtype != input.dtype) {
      fail(path + " holds " + runtime::toString(array.dtype) + ", expected for " +
           describe(expected));
    }
    if (is_shaped && array.sizes != input.sizes) {
      fail(path + " is " + text(array.sizes) + ", --shape says " + text(input.sizes));
    }
    input.sizes = array.sizes;
    check_sizes(path, input.sizes, expected);
    input.bytes = reorder(array.data, input.sizes, {input.dim_order.data(), input.dim_order.size()},
                          runtime::elementSize(input.dtype), true);
    return;
  }
  check_sizes("", input.sizes, expected);
  const size_t n_bytes = count(input.sizes) * runtime::elementSize(input.dtype);
  if (file.size() != n_bytes) {
    fail("input file " + path + " has " + std::to_string(file.size()) + " bytes, " +
         describe(expected) + " as " + text(input.sizes) + " " + std::to_string(n_bytes) +
         (expected.is_dynamic ? "; --shape says how large it is" : ""));
  }
  input.bytes = std::move(file);
}

/// Options for the inputs, each given for the next one or as NAME=VALUE; none for inputs without.
/// `what`: "input files" or "shapes".
std::vector<std::optional<std::string>> by_input(const std::vector<std::string>& given,
                                                 const std::vector<Expected>& inputs,
                                                 const char* what) {
  std::vector<std::optional<std::string>> values(inputs.size());
  size_t next = 0;
  for (const std::string& option : given) {
    const size_t length = std::min(option.find('='), option.size());
    const auto named = std::find_if(inputs.begin(), inputs.end(), [&](const Expected& input) {
      return length > 0 && length < option.size() && input.name == option.substr(0, length);
    });
    const bool is_named = named != inputs.end();
    const size_t i = is_named ? static_cast<size_t>(named - inputs.begin()) : next++;
    if (i >= inputs.size()) {
      fail(std::to_string(given.size()) + " " + what + " for " + std::to_string(inputs.size()) +
           " tensor inputs");
    }
    if (values[i].has_value()) fail("two " + std::string(what) + " for " + inputs[i].text);
    values[i] = is_named ? option.substr(length + 1) : option;
  }
  return values;
}

/// The value of a tensor input.
InputTensor value_of(const Expected& expected, const std::optional<std::string>& file,
                     const std::optional<std::string>& shape, bool is_random,
                     std::mt19937_64& engine) {
  InputTensor input{expected.index, expected.text,      expected.dtype,
                    expected.bound, expected.dim_order, {}};
  const bool is_shaped = shape.has_value() && *shape != "-";
  if (is_shaped) input.sizes = parse_shape(*shape);
  if (file.has_value()) {
    read_values(*file, expected, is_shaped, input);
  } else {
    check_sizes("", input.sizes, expected);
    input.bytes = generate(input.dtype, count(input.sizes), is_random, engine);
  }
  if (input.dtype == ScalarType::Bool) {
    // NumPy's files may hold any bytes.
    for (char& byte : input.bytes) byte = byte != 0;
  }
  return input;
}

}  // namespace

std::string read_input_file(const std::string& path, uint64_t most) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  using std::filesystem::file_type;
  // Read at most `most` bytes, since a device such as /dev/zero has no end.
  if (status.type() != file_type::regular && status.type() != file_type::fifo) {
    const bool is_there = std::filesystem::exists(status);
    fail(
        "cannot read input file '" + path + "': " +
        (is_there ? "it is a directory or device" : std::strerror(error ? error.value() : ENOENT)));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot read input file '" + path + "': " + std::strerror(errno));
  std::string bytes;
  for (char block[1 << 16]; file.read(block, sizeof(block)) || file.gcount() > 0;) {
    bytes.append(block, static_cast<size_t>(file.gcount()));
    if (bytes.size() > most) {
      fail("input file " + path + " has more than " + std::to_string(most) + " bytes");
    }
  }
  if (file.bad()) fail("cannot read input file '" + path + "': " + std::strerror(errno));
  return bytes;
}

Inputs::Inputs(const runtime::Method& method, const InputOptions& options) {
  const auto meta = method.method_meta();
  std::vector<Expected> expected;
  for (size_t i = 0; i < meta.num_inputs(); ++i) {
    // Asked for first, since asking a number for its tensor's facts is logged as an error.
    const auto tag = meta.input_tag(i);
    if (!tag.ok() || *tag != runtime::Tag::Tensor) continue;
    expected.push_back(expected_of(method, i));
  }
  const auto files = by_input(options.files, expected, "input files");
  const auto shapes = by_input(options.shapes, expected, "shapes");
  std::mt19937_64 engine(options.seed);
  for (size_t n = 0; n < expected.size(); ++n) {
    if (!options.files.empty() && !files[n].has_value()) {
      fail(std::to_string(options.files.size()) + " input files for " +
           std::to_string(expected.size()) + " tensor inputs: none for " + expected[n].text);
    }
    inputs_.push_back(value_of(expected[n], files[n], shapes[n], options.fill == "random", engine));
  }
}

std::shared_ptr<void> Inputs::set(runtime::Method& method) const {
  auto copies = std::make_shared<std::vector<InputTensor>>(inputs_);
  for (InputTensor& input : *copies) {
    aten::TensorImpl impl(input.dtype, static_cast<ssize_t>(input.sizes.size()), input.sizes.data(),
                          input.bytes.data(), input.dim_order.data());
    check(method.set_input(aten::Tensor(&impl), input.index), "set " + input.text);
  }
  return copies;
}

}  // namespace executorch::extension::command
