#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/inputs.h>
#include <executorch/extension/command/npy.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/executor/method_meta.h>
#include <executorch/schema/program_generated.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
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
      fail("'" + shape + "' is no shape; write 1x8");
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

/// Describes a method's input for messages: "input 0 (Float 1x8 at most)".
std::string describe(size_t index, ScalarType dtype, const Sizes& bound, bool is_dynamic) {
  return "input " + std::to_string(index) + " (" + runtime::toString(dtype) + " " + text(bound) +
         (is_dynamic ? " at most)" : ")");
}

void check_sizes(const std::string& input, const Sizes& sizes, const Sizes& bound,
                 bool is_dynamic) {
  bool fits = sizes.size() == bound.size();
  for (size_t d = 0; fits && d < sizes.size(); ++d) {
    fits = is_dynamic ? sizes[d] <= bound[d] : sizes[d] == bound[d];
  }
  if (!fits) fail(input + " cannot be " + text(sizes));
}

size_t count(const Sizes& sizes) {
  size_t n = 1;
  for (const auto size : sizes) n *= static_cast<size_t>(size);
  return n;
}

// An upper bound on the header that NumPy writes in front of an array's bytes.
constexpr uint64_t kMostHeaderBytes = 1 << 20;

}  // namespace

std::string read_input_file(const std::string& path, uint64_t most) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  using std::filesystem::file_type;
  // Read at most `most` bytes, since a device such as /dev/zero has no end.
  if (status.type() != file_type::regular && status.type() != file_type::fifo) {
    fail("cannot read input file " + path);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot read input file " + path);
  std::string bytes;
  for (char block[1 << 16]; file.read(block, sizeof(block)) || file.gcount() > 0;) {
    bytes.append(block, static_cast<size_t>(file.gcount()));
    if (bytes.size() > most) {
      fail("input file " + path + " has more than " + std::to_string(most) + " bytes");
    }
  }
  if (file.bad()) fail("cannot read input file " + path);
  return bytes;
}

Inputs::Inputs(const runtime::Method& method, const InputOptions& options) {
  const auto meta = method.method_meta();
  const auto& plan = method.plan();
  std::mt19937_64 engine(options.seed);
  for (size_t i = 0; i < meta.num_inputs(); ++i) {
    const auto info = meta.input_tensor_meta(i);
    if (!info.ok()) continue;
    const size_t n = inputs_.size();
    const auto value = static_cast<uint32_t>(plan.inputs()->Get(static_cast<uint32_t>(i)));
    const bool is_dynamic = plan.values()->Get(value)->val_as_Tensor()->shape_dynamism() !=
                            executorch_flatbuffer::TensorShapeDynamism::STATIC;
    const Sizes bound(info->sizes().begin(), info->sizes().end());
    Input input{i, info->scalar_type(), bound, {}, {}};
    input.dim_order.assign(info->dim_order().begin(), info->dim_order().end());
    const std::string name = describe(i, input.dtype, bound, is_dynamic);
    const bool shaped = n < options.shapes.size() && options.shapes[n] != "-";
    if (shaped) input.sizes = parse_shape(options.shapes[n]);
    const size_t element_size = runtime::elementSize(input.dtype);
    if (options.files.empty()) {
      check_sizes(name, input.sizes, bound, is_dynamic);
      input.bytes = generate(input.dtype, count(input.sizes), options.fill == "random", engine);
    } else if (n < options.files.size()) {
      const std::string& path = options.files[n];
      std::string file = read_input_file(path, info->nbytes() + kMostHeaderBytes);
      if (is_npy(file)) {
        const NpyArray array = read_npy(file, path);
        if (array.dtype != input.dtype) {
          fail(path + " holds " + runtime::toString(array.dtype) + ", expected for " + name);
        }
        input.sizes = array.sizes;
        check_sizes(name, input.sizes, bound, is_dynamic);
        input.bytes = reorder(array.data, input.sizes,
                              {input.dim_order.data(), input.dim_order.size()}, element_size, true);
      } else {
        check_sizes(name, input.sizes, bound, is_dynamic);
        const size_t expected = count(input.sizes) * element_size;
        if (file.size() != expected) {
          fail("input file " + path + " has " + std::to_string(file.size()) + " bytes, " + name +
               " as " + text(input.sizes) + " " + std::to_string(expected) +
               (is_dynamic ? "; --shape says how large it is" : ""));
        }
        input.bytes = std::move(file);
      }
    }
    if (input.dtype == ScalarType::Bool) {
      // NumPy's files may hold any bytes.
      for (char& byte : input.bytes) byte = byte != 0;
    }
    inputs_.push_back(std::move(input));
  }
  if ((!options.files.empty() && options.files.size() != inputs_.size()) ||
      options.shapes.size() > inputs_.size()) {
    const bool files = !options.files.empty() && options.files.size() != inputs_.size();
    fail(std::to_string(files ? options.files.size() : options.shapes.size()) +
         (files ? " input files" : " shapes") + " for " + std::to_string(inputs_.size()) +
         " tensor inputs");
  }
}

std::shared_ptr<void> Inputs::set(runtime::Method& method) const {
  auto copies = std::make_shared<std::vector<Input>>(inputs_);
  for (Input& input : *copies) {
    aten::TensorImpl impl(input.dtype, static_cast<ssize_t>(input.sizes.size()), input.sizes.data(),
                          input.bytes.data(), input.dim_order.data());
    check(method.set_input(aten::Tensor(&impl), input.index),
          "set input " + std::to_string(input.index));
  }
  return copies;
}

}  // namespace executorch::extension::command
