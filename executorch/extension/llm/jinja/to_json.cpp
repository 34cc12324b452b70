// The filter tojson as transformers defines it: Python's json.dumps, without changes for HTML.
#include <executorch/extension/llm/jinja/evaluator.h>
#include <executorch/extension/llm/jinja/text.h>

#include <algorithm>
#include <cmath>

namespace executorch::extension::llm::jinja {
namespace {

class Writer {
 public:
  explicit Writer(const Call& call) : call_(call), ascii_only_(call.boolean(0, false)) {
    if (call.has(1)) {
      has_lines_ = true;
      if (call.at[1]->as_text() != nullptr) {
        indent_ = *call.at[1]->as_text();
      } else {
        const int64_t n = call.integer(1, 0);
        if (n > 100)
          fail("the indent of tojson is " + std::to_string(n) + "; expected at most 100");
        indent_.assign(static_cast<size_t>(std::max<int64_t>(n, 0)), ' ');
      }
      comma_ = ",";
    }
    if (call.has(2)) {
      const std::vector<Value> both = elements(*call.at[2], call.evaluator.budget());
      if (both.size() != 2 || !both[0].as_text() || !both[1].as_text()) {
        fail("the separators of tojson are no two texts");
      }
      comma_ = *both[0].as_text();
      colon_ = *both[1].as_text();
    }
    sorts_ = call.boolean(3, false);
  }

  std::string run(const Value& value) {
    write(value, 0);
    return std::move(text_);
  }

 private:
  void add(std::string_view part) {
    call_.evaluator.budget().bytes(part.size());
    text_ += part;
  }

  void break_line(size_t depth) {
    if (!has_lines_) return;
    add("\n");
    for (size_t i = 0; i < depth; ++i) add(indent_);
  }

  /// Null, booleans and numbers, or empty.
  std::string scalar(const Value& value) const {
    if (value.is_none()) return "null";
    if (value.get<bool>()) return is_true(value) ? "true" : "false";
    if (value.is_integer()) return std::to_string(value.to_integer());
    if (!value.is_number()) return "";
    const double number = value.to_number();
    if (std::isnan(number)) return "NaN";
    if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
    return float_text(number);
  }

  void write(const Value& value, size_t depth) {
    call_.evaluator.budget().steps(1);
    const Sequence* const sequence = value.as_sequence();
    if (const std::string* const text = value.as_text()) {
      add(json_quoted(*text, ascii_only_));
    } else if (sequence != nullptr && sequence->kind <= SequenceKind::Tuple) {
      write_list(sequence->items, depth);
    } else if (const Mapping* const mapping = value.as_mapping()) {
      write_mapping(*mapping, depth);
    } else {
      const std::string text = scalar(value);
      if (text.empty()) fail(std::string("tojson is given ") + value.type_name());
      add(text);
    }
  }

  void write_list(const std::vector<Value>& items, size_t depth) {
    if (items.empty()) return add("[]");
    add("[");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) add(comma_);
      break_line(depth + 1);
      write(items[i], depth + 1);
    }
    break_line(depth);
    add("]");
  }

  void write_mapping(const Mapping& mapping, size_t depth) {
    if (mapping.items.empty()) return add("{}");
    std::vector<const std::pair<Value, Value>*> members;
    for (const auto& member : mapping.items) members.push_back(&member);
    if (sorts_) {
      std::stable_sort(members.begin(), members.end(), [&](const auto* a, const auto* b) {
        return is_less(a->first, b->first, call_.evaluator.budget());
      });
    }
    add("{");
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) add(comma_);
      break_line(depth + 1);
      const Value& key = members[i]->first;
      const std::string name = key.as_text() ? *key.as_text() : scalar(key);
      if (!key.as_text() && name.empty()) {
        fail(std::string("a key of a mapping for tojson is ") + key.type_name());
      }
      add(json_quoted(name, ascii_only_));
      add(colon_);
      write(members[i]->second, depth + 1);
    }
    break_line(depth);
    add("}");
  }

  const Call& call_;
  const bool ascii_only_;
  bool has_lines_ = false;
  bool sorts_ = false;
  std::string indent_, comma_ = ", ", colon_ = ": ";
  std::string text_;
};

}  // namespace

std::string json_text(const Value& value, const Call& call) {
  return Writer(call).run(value);
}

}  // namespace executorch::extension::llm::jinja
