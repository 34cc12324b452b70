#include <executorch/devtools/inspect/describe.h>

namespace executorch::devtools {
namespace {

std::string value_name(int64_t index) {
  return "%" + std::to_string(index);
}

template <typename F>
std::string join(const Json& list, F format) {
  std::string out;
  for (const Json& item : list) out += (out.empty() ? "" : ", ") + format(item);
  return out;
}

std::string shape(const Json& sizes) {
  return "[" + join(sizes, [](const Json& n) { return n.dump(); }) + "]";
}

// Nothing for a contiguous order.
std::string order(const Json& dim_order) {
  for (size_t i = 0; i < dim_order.size(); ++i) {
    if (dim_order[i] != i) return " order " + shape(dim_order);
  }
  return "";
}

std::string tensor_text(const Json& value) {
  std::string out = "Tensor " + value["dtype"].get<std::string>() + " " + shape(value["sizes"]) +
                    order(value["dim_order"]);
  if (value["dynamism"] != "static") out += " " + value["dynamism"].get<std::string>();
  if (value.contains("memory")) {
    out += " memory " + value["memory"].dump() + " @" + value["offset"].dump();
  }
  for (const char* key : {"constant", "initial_state", "external", "name", "device"}) {
    if (value.contains(key)) out += " " + std::string(key) + " " + value[key].dump();
  }
  return out;
}

std::string items_text(const Json& items) {
  return "[" +
         join(items,
              [](const Json& item) {
                const auto index = item.get<int64_t>();
                return index < 0 ? std::string("None") : value_name(index);
              }) +
         "]";
}

std::string value_text(const Json& value) {
  const auto type = value["type"].get<std::string>();
  if (type == "Tensor") return tensor_text(value);
  if (value.contains("items")) return type + " " + items_text(value["items"]);
  return value.contains("value") ? type + " " + value["value"].dump() : type;
}

// Longer lists are written out where they are defined.
constexpr size_t kMostItems = 100;

// An argument: its index, and what it holds unless it is a tensor.
std::string argument_text(const Json& values, const Json& index) {
  const auto at = index.get<int64_t>();
  if (at < 0 || static_cast<size_t>(at) >= values.size()) return "None";
  const Json& value = values[static_cast<size_t>(at)];
  const std::string name = value_name(at);
  if (value["type"] == "Tensor") return name;
  if (value.contains("items") && value["items"].size() > kMostItems) {
    return name + "=[" + std::to_string(value["items"].size()) + " items]";
  }
  if (value.contains("items")) {
    return name + "=[" +
           join(value["items"], [&](const Json& item) { return argument_text(values, item); }) +
           "]";
  }
  if (value.contains("value") && value["value"].size() > kMostItems) {
    return name + "=[" + std::to_string(value["value"].size()) + " items]";
  }
  return name + "=" + (value.contains("value") ? value["value"].dump() : "None");
}

std::string instruction_text(const Json& method, const Json& instruction) {
  const auto type = instruction["type"].get<std::string>();
  const Json& values = method["values"];
  const auto arguments = [&] {
    return "(" +
           join(instruction["args"],
                [&](const Json& index) { return argument_text(values, index); }) +
           ")";
  };
  const auto name = [&](const char* key) { return argument_text(values, instruction[key]); };
  if (type == "kernel") return instruction["operator"].get<std::string>() + arguments();
  if (type == "delegate") {
    const auto index = instruction["delegate"].get<size_t>();
    return "delegate " + std::to_string(index) + " " +
           method["delegates"][index]["id"].get<std::string>() + arguments();
  }
  if (type == "move") return "move " + name("from") + " -> " + name("to");
  if (type == "jump_if_false") {
    return "jump if not " + name("condition") + " -> " + instruction["destination"].dump();
  }
  return "free " + name("value");
}

std::string method_text(const Json& method) {
  // "%0 tokens, %1 mask".
  const auto indices = [&](const char* key, const char* names_key) {
    const Json names = method.value(names_key, Json::array());
    size_t i = 0;
    return join(method[key], [&](const Json& n) {
      const std::string name = i < names.size() ? names[i].get<std::string>() : "";
      ++i;
      return value_name(n.get<int64_t>()) + (name.empty() ? "" : " " + name);
    });
  };
  std::string out = "method " + method["name"].get<std::string>() + "(" +
                    indices("inputs", "input_names") + ") -> (" +
                    indices("outputs", "output_names") + ")\n";
  for (const Json& memory : method["memory"]) {
    out += "  memory " + memory["id"].dump() + ": " + memory["bytes"].dump() + " bytes" +
           (memory.contains("device") ? " on " + memory["device"].get<std::string>() : "") + "\n";
  }
  for (size_t i = 0; i < method["values"].size(); ++i) {
    out +=
        "  " + value_name(static_cast<int64_t>(i)) + ": " + value_text(method["values"][i]) + "\n";
  }
  for (size_t i = 0; i < method["delegates"].size(); ++i) {
    const Json& delegate = method["delegates"][i];
    const char* where = delegate.contains("segment") ? "segment" : "inline";
    out += "  delegate " + std::to_string(i) + ": " + delegate["id"].get<std::string>() + ", " +
           where + " " + delegate[where].dump() + ", " + delegate["bytes"].dump() + " bytes\n";
    for (const Json& spec : delegate["compile_specs"]) {
      out += "    " + spec["key"].dump() + " = " + shape(spec["value"]) + "\n";
    }
  }
  for (size_t c = 0; c < method["chains"].size(); ++c) {
    if (method["chains"].size() > 1) {
      out += "  chain " + std::to_string(c) + "\n";
    }
    for (size_t i = 0; i < method["chains"][c].size(); ++i) {
      out +=
          "  " + std::to_string(i) + ": " + instruction_text(method, method["chains"][c][i]) + "\n";
    }
  }
  return out;
}

std::string blobs_text(const char* what, const Json& table) {
  if (table.contains("inline_bytes")) {
    return std::string(what) + ": inline, bytes " + shape(table["inline_bytes"]) + "\n";
  }
  // Entry 0 is reserved.
  if (table["offsets"].size() <= 1) return "";
  return std::string(what) + ": segment " + table["segment"].dump() + ", offsets " +
         shape(table["offsets"]) + "\n";
}

std::string data_text(const Json& entry) {
  std::string out = "data " + entry["key"].dump() + ": segment " + entry["segment"].dump() + ", " +
                    entry["bytes"].dump() + " bytes";
  if (entry.contains("dtype")) {
    out += ", " + entry["dtype"].get<std::string>() + " " + shape(entry["sizes"]) +
           order(entry["dim_order"]);
  }
  return out + "\n";
}

}  // namespace

std::string to_text(const Json& description) {
  const bool is_program = description["kind"] == "program";
  std::string out = description["kind"].get<std::string>() + " version " +
                    description["version"].dump() + ", " + description["file_bytes"].dump() +
                    " bytes, segments: " + description["segment_bytes"].dump() + " bytes @" +
                    description["segment_base"].dump() + "\n";
  for (size_t i = 0; i < description["segments"].size(); ++i) {
    const Json& segment = description["segments"][i];
    out += "segment " + std::to_string(i) + ": " + segment["bytes"].dump() + " bytes @" +
           segment["offset"].dump() + "\n";
  }
  if (is_program) {
    out += blobs_text("constants", description["constants"]);
    out += blobs_text("initial states", description["initial_states"]);
  }
  for (const Json& entry : description["named_data"]) out += data_text(entry);
  for (size_t i = 0; is_program && i < description["methods"].size(); ++i) {
    out += "\n" + method_text(description["methods"][i]);
  }
  return out;
}

}  // namespace executorch::devtools
