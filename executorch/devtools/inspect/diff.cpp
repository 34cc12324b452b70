#include <executorch/devtools/inspect/budget.h>
#include <executorch/devtools/inspect/diff.h>
#include <executorch/devtools/inspect/file_loader.h>
#include <executorch/devtools/inspect/table.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>

namespace executorch::devtools {
namespace {

// If the table of the longest common subsequence would have more cells, only the equal instructions
// at both ends are matched.
constexpr size_t kMaxCells = 16u << 20;
// Lists with more items are compared by their length only.
constexpr size_t kMaxItems = 256;

/// A name for a constant's bytes: a hash, which is equal for equal bytes in both files.
std::string hash_text(std::string_view bytes) {
  // FNV-1a over words of four independent hashes, which a core computes at the same time: as fast
  // as memory is read. The shift brings a word's upper bits, too, to all of the hash.
  constexpr size_t kHashes = 4;
  constexpr uint64_t kPrime = 0x100000001b3u;
  const auto add = [](uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * kPrime;
    return hash ^ hash >> 32;
  };
  uint64_t hashes[kHashes] = {1, 2, 3, 4}, words[kHashes];
  while (bytes.size() >= sizeof(words)) {
    std::memcpy(words, bytes.data(), sizeof(words));
    for (size_t i = 0; i < kHashes; ++i) hashes[i] = add(hashes[i], words[i]);
    bytes.remove_prefix(sizeof(words));
  }
  uint64_t hash = 0xcbf29ce484222325u;
  for (const uint64_t one : hashes) hash = add(hash, one);
  for (const char c : bytes) hash = add(hash, static_cast<uint8_t>(c));
  char text[32];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

/// A program's description, and what is in its segments.
class Side {
 public:
  explicit Side(const std::string& path)
      : program(describe_file(path)),
        loader_(path),
        texts_(path, kTextPerByte * (uint64_t{loader_.file_bytes()} + (1 << 20))) {
    left_ = kReadsPerByte * (uint64_t{loader_.file_bytes()} + (1 << 20));
    if (program["kind"] != "program") {
      throw InspectError{path + ": only programs can be compared, this is a data file"};
    }
    for (const Json& method : program["methods"]) methods_.try_emplace(method["name"], &method);
  }

  const Json* method(const std::string& name) const {
    const auto found = methods_.find(name);
    return found == methods_.end() ? nullptr : found->second;
  }

  /// Counts the text of an instruction against the budget: instructions may name the same long
  /// lists many times.
  void take(const std::string& text) { texts_.take(text.size()); }

  /// The text of a constant tensor: type, sizes, and a hash of its bytes.
  std::string constant_text(const Json& value) {
    std::string& known = constants_[value["constant"].get<size_t>()];
    if (known.empty()) known = constant_name(value);
    return value["dtype"].get<std::string>() + " " + value["sizes"].dump() + " " + known;
  }

  Json program;

 private:
  // Constants may share bytes, but not so that they are read without end.
  static constexpr uint64_t kReadsPerByte = 4;
  static constexpr uint64_t kTextPerByte = 64;

  std::string constant_name(const Json& value) {
    const Json& table = program["constants"];
    if (!table.contains("offsets")) return hash_text("inline " + value["constant"].dump());
    const Json& segment = program["segments"][table["segment"].get<size_t>()];
    const uint64_t at = program["segment_base"].get<uint64_t>() +
                        segment["offset"].get<uint64_t>() +
                        table["offsets"][value["constant"].get<size_t>()].get<uint64_t>();
    const auto n_bytes = value["bytes"].get<uint64_t>();
    if (n_bytes > left_) return hash_text("overlapping " + value["constant"].dump());
    left_ -= n_bytes;
    const auto bytes = loader_.load(
        at, n_bytes,
        runtime::DataLoader::SegmentInfo(runtime::DataLoader::SegmentInfo::Type::Constant));
    return hash_text(bytes.ok()
                         ? std::string_view(static_cast<const char*>(bytes->data()), bytes->size())
                         : "unreadable");
  }

  FileLoader loader_;
  Budget texts_;
  uint64_t left_ = 0;
  std::map<std::string, const Json*> methods_;
  std::map<size_t, std::string> constants_;
};

/// Instructions in words that do not depend on how values are numbered: an operand is a constant,
/// an input, or the result of the n-th last instruction.
class Normalizer {
 public:
  Normalizer(Side& side, const Json& method) : side_(side), method_(method) {
    for (size_t i = 0; i < method["inputs"].size(); ++i) {
      names_[method["inputs"][i].get<int64_t>()] = "input " + std::to_string(i);
    }
  }

  std::vector<std::string> lines() {
    std::vector<std::string> out;
    for (const Json& chain : method_["chains"]) {
      for (const Json& instruction : chain) out.push_back(line(instruction, out.size()));
    }
    return out;
  }

 private:
  std::string line(const Json& instruction, size_t number) {
    const std::string type = instruction["type"];
    if (type == "jump_if_false") return "jump to " + instruction["destination"].dump();
    if (type == "free") return "free";
    if (type == "move") return "move";
    const bool is_kernel = type == "kernel";
    std::string out = is_kernel ? instruction["operator"].get<std::string>()
                                : "delegate " + delegate_text(instruction["delegate"]);
    out += "(";
    std::string separator;
    for (const Json& arg : instruction["args"]) {
      const std::string text = operand(arg.get<int64_t>(), number);
      side_.take(text);
      out += separator + text;
      separator = ", ";
    }
    return out + ")";
  }

  std::string delegate_text(const Json& index) const {
    const Json& delegate = method_["delegates"][index.get<size_t>()];
    return delegate["id"].get<std::string>() + " " + delegate["bytes"].dump() + " bytes";
  }

  std::string operand(int64_t index, size_t number) {
    if (index < 0) return "None";
    const Json& value = method_["values"][static_cast<size_t>(index)];
    if (value["type"] == "Tensor") return tensor(index, value, number);
    for (const char* list : {"items", "value"}) {
      if (value.contains(list) && value[list].size() > kMaxItems) {
        return value["type"].get<std::string>() + " of " + std::to_string(value[list].size());
      }
    }
    if (value.contains("items")) {
      std::string out = "[";
      for (const Json& item : value["items"]) {
        out += (out.size() > 1 ? ", " : "") + operand(item.get<int64_t>(), number);
      }
      return out + "]";
    }
    return value.contains("value") ? value["value"].dump() : value["type"].get<std::string>();
  }

  // The first instruction that mentions a tensor makes it.
  std::string tensor(int64_t index, const Json& value, size_t number) {
    const std::string type = value["dtype"].get<std::string>() + " " + value["sizes"].dump();
    if (value.contains("constant")) return side_.constant_text(value);
    if (value.contains("external")) return "external " + value["external"].get<std::string>();
    if (names_.count(index) > 0) return names_[index] + " " + type;
    const auto [made, is_new] = made_.try_emplace(index, number);
    return is_new || made->second == number
               ? type
               : "-" + std::to_string(number - made->second) + " " + type;
  }

  Side& side_;
  const Json& method_;
  std::map<int64_t, std::string> names_;
  std::map<int64_t, size_t> made_;
};

/// "- line" and "+ line" for what is only in a or only in b, by a longest common subsequence of
/// what is left between equal beginnings and ends.
Json diff_lines(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  size_t head = 0, tail = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  while (tail < a.size() - head && tail < b.size() - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) {
    ++tail;
  }
  const size_t n = a.size() - head - tail, m = b.size() - head - tail;
  Json out = Json::array();
  if (n * m > kMaxCells) {
    out.push_back("- " + std::to_string(n) + " instructions from " + std::to_string(head));
    out.push_back("+ " + std::to_string(m) + " others");
    return out;
  }
  // Equal lines have equal numbers.
  std::map<std::string_view, uint32_t> numbers;
  const auto number = [&](const std::string& line) {
    return numbers.try_emplace(line, static_cast<uint32_t>(numbers.size())).first->second;
  };
  std::vector<uint32_t> in_a(n), in_b(m);
  for (size_t i = 0; i < n; ++i) in_a[i] = number(a[head + i]);
  for (size_t j = 0; j < m; ++j) in_b[j] = number(b[head + j]);
  // common[i][j]: the length of the longest common subsequence of in_a from i on and in_b from j
  // on.
  std::vector<std::vector<uint32_t>> common(n + 1, std::vector<uint32_t>(m + 1));
  for (size_t i = n; i-- > 0;) {
    for (size_t j = m; j-- > 0;) {
      common[i][j] = in_a[i] == in_b[j] ? common[i + 1][j + 1] + 1
                                        : std::max(common[i + 1][j], common[i][j + 1]);
    }
  }
  for (size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && in_a[i] == in_b[j]) {
      ++i, ++j;
    } else if (i < n && (j == m || common[i + 1][j] >= common[i][j + 1])) {
      out.push_back("- " + std::to_string(head + i) + ": " + a[head + i]);
      ++i;
    } else {
      out.push_back("+ " + std::to_string(head + j) + ": " + b[head + j]);
      ++j;
    }
  }
  return out;
}

std::map<std::string, int64_t> count_operators(const Json& method) {
  std::map<std::string, int64_t> counts;
  for (const Json& chain : method["chains"]) {
    for (const Json& instruction : chain) {
      const std::string type = instruction["type"];
      ++counts[type == "kernel" ? instruction["operator"].get<std::string>()
               : type == "delegate"
                   ? method["delegates"][instruction["delegate"].get<size_t>()]["id"]
                         .get<std::string>()
                   : type];
    }
  }
  return counts;
}

// Differences as [{"operator", "count": [a, b]}].
Json diff_counts(const std::map<std::string, int64_t>& a, const std::map<std::string, int64_t>& b) {
  std::map<std::string, std::pair<int64_t, int64_t>> both;
  for (const auto& [name, n] : a) both[name].first = n;
  for (const auto& [name, n] : b) both[name].second = n;
  Json out = Json::array();
  for (const auto& [name, n] : both) {
    if (n.first != n.second) out.push_back({{"operator", name}, {"count", {n.first, n.second}}});
  }
  return out;
}

std::string interface_text(const Json& method) {
  const auto list = [&](const char* key) {
    std::string out;
    for (const Json& index : method[key]) {
      const Json& value = method["values"][index.get<size_t>()];
      out += (out.empty() ? "" : ", ") + value["type"].get<std::string>();
      if (value["type"] == "Tensor") {
        out += " " + value["dtype"].get<std::string>() + " " + value["sizes"].dump() +
               (value["dynamism"] == "static" ? "" : " bounded");
      }
    }
    return "(" + out + ")";
  };
  return list("inputs") + " -> " + list("outputs");
}

Json arena_bytes(const Json& method) {
  Json out = Json::array();
  for (const Json& memory : method["memory"]) out.push_back(memory["bytes"]);
  return out;
}

uint64_t delegate_bytes(const Json& method) {
  uint64_t sum = 0;
  for (const Json& delegate : method["delegates"]) sum += delegate["bytes"].get<uint64_t>();
  return sum;
}

Json diff_methods(Side& a, const Json& in_a, Side& b, const Json& in_b) {
  Json out = {{"name", in_a["name"]}};
  const Json operators = diff_counts(count_operators(in_a), count_operators(in_b));
  const Json instructions = diff_lines(Normalizer(a, in_a).lines(), Normalizer(b, in_b).lines());
  out["equal"] = operators.empty() && instructions.empty() &&
                 arena_bytes(in_a) == arena_bytes(in_b) &&
                 interface_text(in_a) == interface_text(in_b);
  out["operators"] = operators;
  out["memory"] = {arena_bytes(in_a), arena_bytes(in_b)};
  out["delegate_bytes"] = {delegate_bytes(in_a), delegate_bytes(in_b)};
  out["interface"] = {interface_text(in_a), interface_text(in_b)};
  out["instructions"] = instructions;
  return out;
}

/// Constant tensors by what they are, each once, with their bytes.
std::map<std::string, uint64_t> constants_of(Side& side) {
  std::map<std::string, uint64_t> out;
  for (const Json& method : side.program["methods"]) {
    for (const Json& value : method["values"]) {
      if (value.contains("constant")) out[side.constant_text(value)] = value["bytes"];
    }
  }
  return out;
}

Json diff_constants(Side& a, Side& b) {
  const auto in_a = constants_of(a), in_b = constants_of(b);
  const auto total = [](const auto& constants) {
    uint64_t sum = 0;
    for (const auto& [name, bytes] : constants) sum += bytes;
    return sum;
  };
  const auto missing = [](const auto& from, const auto& in) {
    Json out = Json::array();
    for (const auto& [name, bytes] : from) {
      if (in.count(name) == 0) out.push_back(name);
    }
    return out;
  };
  return {{"count", {in_a.size(), in_b.size()}},
          {"bytes", {total(in_a), total(in_b)}},
          {"only_in", {missing(in_a, in_b), missing(in_b, in_a)}}};
}

std::string number_change(const Json& pair) {
  const auto a = pair[0].get<uint64_t>(), b = pair[1].get<uint64_t>();
  return std::to_string(a) + " -> " + std::to_string(b) + " (" +
         (b >= a ? (b > a ? "+" : "") + std::to_string(b - a) : "-" + std::to_string(a - b)) + ")";
}

std::string method_text(const Json& method) {
  std::string out = "method " + method["name"].get<std::string>() + "\n";
  const auto& interface = method["interface"];
  if (interface[0] != interface[1]) {
    out += "  - " + interface[0].get<std::string>() + "\n  + " + interface[1].get<std::string>() +
           "\n";
  }
  if (method["memory"][0] != method["memory"][1]) {
    out += "  planned memory: " + method["memory"][0].dump() + " -> " + method["memory"][1].dump() +
           " bytes\n";
  }
  if (method["delegate_bytes"][0] != method["delegate_bytes"][1]) {
    out += "  delegates: " + number_change(method["delegate_bytes"]) + " bytes\n";
  }
  for (const Json& entry : method["operators"]) {
    out +=
        "  " + entry["operator"].get<std::string>() + ": " + number_change(entry["count"]) + "\n";
  }
  for (const Json& line : method["instructions"]) out += "  " + line.get<std::string>() + "\n";
  return out;
}

}  // namespace

Json diff_programs(const std::string& path_a, const std::string& path_b) {
  Side a(path_a), b(path_b);
  Json out = {{"equal", true},
              {"file_bytes", {a.program["file_bytes"], b.program["file_bytes"]}},
              {"only_in", {Json::array(), Json::array()}},
              {"methods", Json::array()},
              {"constants", diff_constants(a, b)}};
  bool equal = out["constants"]["only_in"][0].empty() && out["constants"]["only_in"][1].empty();
  for (const Json& method : a.program["methods"]) {
    if (const Json* other = b.method(method["name"])) {
      out["methods"].push_back(diff_methods(a, method, b, *other));
      equal = equal && out["methods"].back()["equal"].get<bool>();
    } else {
      out["only_in"][0].push_back(method["name"]);
    }
  }
  for (const Json& method : b.program["methods"]) {
    if (a.method(method["name"]) == nullptr) out["only_in"][1].push_back(method["name"]);
  }
  out["equal"] = equal && out["only_in"][0].empty() && out["only_in"][1].empty();
  return out;
}

std::string diff_text(const Json& diff) {
  if (diff["equal"].get<bool>()) return "";
  std::string out = "file: " + number_change(diff["file_bytes"]) + " bytes\n";
  for (const size_t side : {0u, 1u}) {
    for (const Json& name : diff["only_in"][side]) {
      out += std::string(side == 0 ? "- " : "+ ") + "method " + name.get<std::string>() + "\n";
    }
  }
  const Json& constants = diff["constants"];
  if (constants["bytes"][0] != constants["bytes"][1] || !constants["only_in"][0].empty()) {
    out += "constants: " + number_change(constants["count"]) + ", " +
           number_change(constants["bytes"]) + " bytes\n";
  }
  for (const size_t side : {0u, 1u}) {
    for (const Json& name : constants["only_in"][side]) {
      out += std::string(side == 0 ? "  - " : "  + ") + name.get<std::string>() + "\n";
    }
  }
  for (const Json& method : diff["methods"]) {
    if (!method["equal"].get<bool>()) out += method_text(method);
  }
  return out;
}

}  // namespace executorch::devtools
