#include <executorch/extension/command/failure.h>
#include <executorch/extension/command/npy.h>
#include <executorch/extension/command/outputs.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_dimension_limit.h>

#include <charconv>
#include <cstring>
#include <optional>

namespace executorch::extension::command {
namespace {

using aten::ScalarType;

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeName {
  std::string_view text;  ///< without the byte order
  ScalarType dtype;
};
constexpr TypeName kTypes[] = {
    {"f4", ScalarType::Float},   {"f8", ScalarType::Double}, {"f2", ScalarType::Half},
    {"i8", ScalarType::Long},    {"i4", ScalarType::Int},    {"i2", ScalarType::Short},
    {"i1", ScalarType::Char},    {"u1", ScalarType::Byte},   {"b1", ScalarType::Bool},
    {"u2", ScalarType::UInt16},  {"u4", ScalarType::UInt32}, {"u8", ScalarType::UInt64},
    {"V2", ScalarType::BFloat16}};

/// The text behind 'key': in the header's dictionary, up to `end`.
std::string_view field(std::string_view header, std::string_view key, std::string_view end) {
  const size_t at = header.find(key);
  const size_t begin =
      at == header.npos ? header.npos : header.find_first_not_of(" :", at + key.size());
  const size_t stop = begin == header.npos ? header.npos : header.find(end, begin + 1);
  return stop == header.npos ? "" : header.substr(begin, stop - begin + end.size());
}

std::optional<std::vector<aten::SizesType>> parse_shape(std::string_view text) {
  std::vector<aten::SizesType> sizes;
  if (text.empty() || text[0] != '(') return std::nullopt;
  for (size_t i = 1; i < text.size() && text[i] != ')';) {
    if (text[i] == ' ' || text[i] == ',') {
      ++i;
      continue;
    }
    aten::SizesType n = 0;
    const auto [end, error] = std::from_chars(&text[i], text.data() + text.size(), n);
    const bool is_one_more = sizes.size() == runtime::kTensorDimensionLimit;
    if (error != std::errc() || n < 0 || is_one_more) return std::nullopt;
    sizes.push_back(n);
    i = static_cast<size_t>(end - text.data());
  }
  return sizes;
}

}  // namespace

bool is_npy(std::string_view file) {
  return file.substr(0, kMagic.size()) == kMagic;
}

NpyArray read_npy(std::string_view file, const std::string& path) {
  const auto bad = [&](const std::string& what) {
    fail(path + " is no usable .npy file: " + what);
  };
  if (!is_npy(file) || file.size() < 12) bad("it ends in its header");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(file[i])); };
  const bool is_short = file[6] == 1;
  const size_t start = is_short ? 10 : 12;
  const size_t length =
      is_short ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > file.size() - start) bad("it ends in its header");
  const std::string_view header = file.substr(start, length);

  std::string_view descr = field(header, "'descr'", "'");
  if (descr.size() < 4) bad("it does not name one element type");
  descr = descr.substr(1, descr.size() - 2);
  NpyArray array{ScalarType::Undefined, {}, file.substr(start + length)};
  for (const TypeName& type : kTypes) {
    if (descr[0] != '>' && descr.substr(1) == type.text) array.dtype = type.dtype;
  }
  if (array.dtype == ScalarType::Undefined) bad("elements of type " + std::string(descr));
  if (field(header, "'fortran_order'", ",") != "False,") {
    bad("it is in Fortran order; save numpy.ascontiguousarray() of it");
  }
  const auto sizes = parse_shape(field(header, "'shape'", ")"));
  if (!sizes.has_value()) bad("it has no shape, or more than 16 dims");
  array.sizes = *sizes;
  size_t bytes = runtime::elementSize(array.dtype);
  for (const aten::SizesType n : array.sizes) {
    if (__builtin_mul_overflow(bytes, static_cast<size_t>(n), &bytes))
      bad("its shape is too large");
  }
  if (bytes != array.data.size()) {
    bad("its shape needs " + std::to_string(bytes) + " bytes, it has " +
        std::to_string(array.data.size()));
  }
  return array;
}

std::string write_npy(const aten::Tensor& tensor) {
  std::string_view type = "V1";
  for (const TypeName& known : kTypes) {
    if (known.dtype == tensor.scalar_type()) type = known.text;
  }
  std::string shape;
  for (const auto n : tensor.sizes()) shape += std::to_string(n) + ",";
  const bool is_byte = runtime::elementSize(tensor.scalar_type()) == 1;
  std::string header = "{'descr': '" + std::string(is_byte ? "|" : "<") + std::string(type) +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string file(kMagic);
  file += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
           static_cast<char>(header.size() >> 8)};
  std::string elements =
      reorder(bytes_of(tensor, "an output"), {tensor.sizes().begin(), tensor.sizes().end()},
              tensor.dim_order(), runtime::elementSize(tensor.scalar_type()), false);
  if (tensor.scalar_type() == ScalarType::Bool) {
    for (char& byte : elements) byte = byte != 0;
  }
  return file + header + elements;
}

std::string reorder(std::string_view bytes, const std::vector<aten::SizesType>& sizes,
                    aten::ArrayRef<aten::DimOrderType> dim_order, size_t element_size,
                    bool to_dim_order) {
  std::string out(bytes);
  std::vector<size_t> strides(sizes.size());
  bool is_same = true;
  size_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[dim_order[i]] = stride;
    stride *= static_cast<size_t>(sizes[dim_order[i]]);
    is_same = is_same && dim_order[i] == i;
  }
  if (is_same || bytes.empty()) return out;
  std::vector<size_t> index(sizes.size());
  for (size_t c = 0; c < bytes.size() / element_size; ++c) {
    size_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    std::memcpy(out.data() + (to_dim_order ? at : c) * element_size,
                bytes.data() + (to_dim_order ? c : at) * element_size, element_size);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < static_cast<size_t>(sizes[d])) break;
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace executorch::extension::command
