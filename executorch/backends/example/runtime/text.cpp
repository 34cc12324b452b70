#include <executorch/backends/example/runtime/text.h>
#include <executorch/cpu/size.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

namespace executorch::backends::example {
namespace {

using runtime::Error;
using runtime::Result;

// Larger texts come from no exporter of ours.
constexpr uint32_t kMaxSteps = 1 << 20;

struct Name {
  std::string_view text;
  Op op;
};
constexpr Name kExampleNames[] = {{"add", Op::Add}, {"sub", Op::Sub},   {"mul", Op::Mul},
                                  {"mm", Op::Mm},   {"relu", Op::Relu}, {"sin", Op::Sin}};
constexpr Name kDemoNames[] = {{"aten.add.Tensor", Op::Add},    {"aten.sub.Tensor", Op::Sub},
                               {"aten.mul.Tensor", Op::Mul},    {"aten.mm.default", Op::Mm},
                               {"aten.relu.default", Op::Relu}, {"aten.sin.default", Op::Sin}};

template <size_t N>
bool find(const Name (&names)[N], std::string_view text, Op& op) {
  for (const Name& name : names) {
    if (name.text == text) {
      op = name.op;
      return true;
    }
  }
  return false;
}

// What is left to read. Every function takes what it found, or nothing.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }

  bool take(std::string_view text) {
    if (rest_.substr(0, text.size()) != text) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  /// Everything before `stop`, and `stop` itself.
  bool until(char stop, std::string_view& out) {
    const size_t at = rest_.find(stop);
    if (at == std::string_view::npos) return false;
    out = rest_.substr(0, at);
    rest_.remove_prefix(at + 1);
    return true;
  }

  /// Everything before the next space, and that, or all that is left.
  std::string_view word() {
    std::string_view out;
    if (!until(' ', out)) out = std::exchange(rest_, {});
    return out;
  }

  bool number(uint32_t& out) {
    uint64_t value = 0;
    size_t digits = 0;
    while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') {
      value = value * 10 + static_cast<uint64_t>(rest_[digits] - '0');
      if (value > uint64_t{std::numeric_limits<int32_t>::max()}) return false;
      ++digits;
    }
    rest_.remove_prefix(digits);
    out = static_cast<uint32_t>(value);
    return digits > 0;
  }

  bool numbers(char separator, std::vector<uint32_t>& out) {
    do {
      out.emplace_back();
      if (!number(out.back())) return false;
    } while (take(std::string_view(&separator, 1)));
    return true;
  }

 private:
  std::string_view rest_;
};

bool add_step(Op op, const std::vector<uint32_t>& operands, Steps& out) {
  if (operands.size() != static_cast<size_t>(operand_count(op))) return false;
  out.steps.push_back({op, {operands.front(), operands.back()}});
  return true;
}

// Named data by key: a loader may read it from a file whenever it is asked for.
using Known = std::map<std::string_view, size_t>;

Result<size_t> find_data(std::string_view key, const runtime::NamedDataMap* data, Known& known,
                         Steps& out) {
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  if (data == nullptr) return Error::NotFound;
  ET_ASSIGN_OR_RETURN(runtime::FreeableBuffer bytes, data->get_data(key));
  out.data.push_back(std::move(bytes));
  return known[key] = out.data.size() - 1;
}

Error read_constant(Reader& line, const runtime::NamedDataMap* data, Known& known, Steps& out) {
  const std::string_view key = line.word();
  std::vector<uint32_t> sizes;  // none of a number
  ET_CHECK_OR_RETURN_ERROR(
      (line.done() || line.numbers(' ', sizes)) && line.done() && sizes.size() <= kMaxRank,
      DelegateInvalidCompatibility, "ExampleBackend: cannot read the sizes of constant %.*s",
      static_cast<int>(key.size()), key.data());
  const Result<size_t> index = find_data(key, data, known, out);
  if (!index.ok()) return index.error();
  const runtime::FreeableBuffer& bytes = out.data[*index];
  cpu::Size expected = sizeof(float);
  for (const uint32_t size : sizes) expected *= size;
  ET_CHECK_OR_RETURN_ERROR(
      expected.fits<size_t>() && bytes.size() == static_cast<size_t>(expected.value()) &&
          reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) == 0,
      DelegateInvalidCompatibility,
      "ExampleBackend: constant %.*s has %zu bytes, which its shape does not fill",
      static_cast<int>(key.size()), key.data(), bytes.size());
  Constant constant{sizes.size(), {}, *index};
  std::copy(sizes.begin(), sizes.end(), constant.sizes);
  out.constants.push_back(constant);
  return Error::Ok;
}

}  // namespace

Result<Steps> read_example(std::string_view text, const runtime::NamedDataMap* data) {
  Reader reader(text);
  Steps out;
  Known known;
  std::string_view line;
  while (reader.until('\n', line)) {
    Reader words(line);
    Op op{};
    std::string_view name;
    std::vector<uint32_t> numbers;
    if (!words.until(' ', name)) break;
    if (name == "constant") {
      ET_CHECK_OK_OR_RETURN_ERROR(read_constant(words, data, known, out));
    } else if (!words.numbers(' ', numbers) || !words.done()) {
      break;
    } else if (name == "outputs") {
      if (!reader.done()) break;
      out.outputs = std::move(numbers);
      return out;
    } else if (!find(kExampleNames, name, op) || !add_step(op, numbers, out)) {
      break;
    }
  }
  ET_LOG(Error, "ExampleBackend: cannot read the line \"%.*s\"", static_cast<int>(line.size()),
         line.data());
  return Error::DelegateInvalidCompatibility;
}

Result<Steps> read_compiler_demo(std::string_view text) {
  Reader reader(text);
  Steps out;
  uint32_t n_steps = 0;
  bool fits =
      reader.number(n_steps) && n_steps > 0 && n_steps <= kMaxSteps && reader.take("version:0#");
  for (uint32_t i = 0; fits && i < n_steps; ++i) {
    std::string_view name;
    uint32_t ignored = 0;
    Op op{};
    std::vector<uint32_t> operands;
    fits = reader.take("op:demo::") && reader.until(',', name) && find(kDemoNames, name, op) &&
           reader.take(" numel:") && reader.number(ignored) &&
           reader.take(", dtype:torch.float32<debug_handle>") && reader.number(ignored);
    if (fits && reader.take("<args>")) {
      fits = reader.numbers(',', operands);
    } else {
      operands.assign(static_cast<size_t>(operand_count(op)), i);  // the result before this
    }
    fits = fits && reader.take("#") && add_step(op, operands, out);
  }
  if (fits && reader.take("outputs:")) {
    fits = reader.numbers(',', out.outputs) && reader.take("#");
  } else {
    out.outputs.push_back(n_steps);
  }
  ET_CHECK_OR_RETURN_ERROR(fits && reader.done(), DelegateInvalidCompatibility,
                           "BackendWithCompilerDemo: cannot read step %zu of the text",
                           out.steps.size());
  return out;
}

}  // namespace executorch::backends::example
