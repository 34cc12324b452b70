#include <executorch/extension/llm/jinja/value.h>

#include <executorch/extension/llm/jinja/text.h>

#include <algorithm>

namespace executorch::extension::llm::jinja {
namespace {

constexpr uint32_t kMostDepth = 64;

/// Of one more container around what is in it.
uint32_t depth_around(uint32_t depth, const Value& item) {
  if (const Sequence* const inner = item.as_sequence()) depth = std::max(depth, inner->depth + 1);
  if (const Mapping* const inner = item.as_mapping()) depth = std::max(depth, inner->depth + 1);
  if (depth > kMostDepth) {
    fail("lists and mappings are nested more than " + std::to_string(kMostDepth) + " deep");
  }
  return depth;
}

std::shared_ptr<Sequence> sequence_of(std::vector<Value> items, SequenceKind kind) {
  auto made = std::make_shared<Sequence>();
  for (const Value& item : items) made->depth = depth_around(made->depth, item);
  made->kind = kind;
  made->items = std::move(items);
  return made;
}

std::string representation(const Value& value, Budget& budget);

std::string list_text(const Sequence& list, Budget& budget) {
  if (list.kind != SequenceKind::List && list.kind != SequenceKind::Tuple) {
    fail_unsupported("the text of a range, view or generator; the filter list makes a list of it");
  }
  const bool is_tuple = list.kind == SequenceKind::Tuple;
  std::string text(1, is_tuple ? '(' : '[');
  for (size_t i = 0; i < list.items.size(); ++i) {
    text += (i == 0 ? "" : ", ") + representation(list.items[i], budget);
  }
  if (is_tuple && list.items.size() == 1) text += ',';
  return text + (is_tuple ? ')' : ']');
}

std::string mapping_text(const Mapping& mapping, Budget& budget) {
  std::string text = "{";
  for (const auto& [key, value] : mapping.items) {
    text += text.size() == 1 ? "" : ", ";
    text += representation(key, budget) + ": " + representation(value, budget);
  }
  return text + "}";
}

/// Python's repr().
std::string representation(const Value& value, Budget& budget) {
  if (value.is_undefined()) return "Undefined";
  if (value.as_text() == nullptr) return to_text(value, budget);
  std::string text = quoted(*value.as_text());
  budget.bytes(text.size());
  return text;
}

bool are_equal(const Sequence& a, const Sequence& b, Budget& budget) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  if (a.kind != SequenceKind::List && a.kind != SequenceKind::Tuple) {
    fail_unsupported("comparing ranges, views or generators");
  }
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!are_equal(a.items[i], b.items[i], budget)) return false;
  }
  return true;
}

bool are_equal(const Mapping& a, const Mapping& b, Budget& budget) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* const other = find(b, key, budget);
    if (other == nullptr || !are_equal(value, *other, budget)) return false;
  }
  return true;
}

}  // namespace

void fail(const std::string& what) {
  throw Failure(what);
}

void fail_unsupported(const std::string& what) {
  throw Failure("not supported: " + what);
}

void Budget::take(uint64_t& left, uint64_t n, const char* what) {
  if (n > left) fail(std::string("the template needs more ") + what + " than it may");
  left -= n;
}

Value Value::undefined(std::string name) {
  return Value(Data(Undefined{std::make_shared<const std::string>(std::move(name))}));
}

Value Value::sequence(std::vector<Value> items, SequenceKind kind) {
  return Value(Data(SequencePtr(sequence_of(std::move(items), kind))));
}

Value Value::generator(std::vector<Value> items, std::shared_ptr<const Failure> failure) {
  auto made = sequence_of(std::move(items), SequenceKind::Generator);
  made->failure = std::move(failure);
  return Value(Data(SequencePtr(std::move(made))));
}

Value Value::group(Value key, Value items) {
  auto made = sequence_of({std::move(key), std::move(items)}, SequenceKind::Tuple);
  made->is_group = true;
  return Value(Data(SequencePtr(std::move(made))));
}

Value Value::mapping(std::vector<std::pair<Value, Value>> items) {
  auto made = std::make_shared<Mapping>();
  for (const auto& [key, value] : items) {
    made->depth = depth_around(depth_around(made->depth, key), value);
  }
  made->items = std::move(items);
  return Value(Data(MappingPtr(std::move(made))));
}

Value Value::callable(Callable callable) {
  // A method of a method would be one more level without end.
  if (callable.self.as_callable() != nullptr) fail_unsupported("methods of functions");
  return Value(Data(CallablePtr(std::make_shared<const Callable>(std::move(callable)))));
}

const char* Value::type_name() const {
  if (const Sequence* const sequence = as_sequence()) {
    constexpr const char* kNames[] = {"list", "tuple", "range", "view", "generator"};
    return kNames[static_cast<size_t>(sequence->kind)];
  }
  constexpr const char* kNames[] = {
      "None",    "an undefined value", "bool",    "int", "float", "str", "list",
      "mapping", "namespace",          "function"};
  return kNames[data_.index()];
}

bool is_true(const Value& value) {
  if (value.is_none() || value.is_undefined()) return false;
  if (value.is_number()) return value.to_number() != 0;
  if (const std::string* const text = value.as_text()) return !text->empty();
  if (const Sequence* const sequence = value.as_sequence()) {
    return sequence->kind == SequenceKind::Generator || !sequence->items.empty();
  }
  if (const Mapping* const mapping = value.as_mapping()) return !mapping->items.empty();
  return true;
}

bool are_equal(const Value& a, const Value& b, Budget& budget) {
  budget.steps(1);
  if (a.is_number() && b.is_number()) {
    return a.is_integer() && b.is_integer() ? a.to_integer() == b.to_integer()
                                            : a.to_number() == b.to_number();
  }
  if (a.as_text() && b.as_text()) {
    budget.copy(std::min(a.as_text()->size(), b.as_text()->size()));
    return *a.as_text() == *b.as_text();
  }
  if (a.as_sequence() && b.as_sequence()) {
    return are_equal(*a.as_sequence(), *b.as_sequence(), budget);
  }
  if (a.as_mapping() && b.as_mapping()) return are_equal(*a.as_mapping(), *b.as_mapping(), budget);
  if (a.get<Value::Space>() && b.get<Value::Space>()) {
    return *a.get<Value::Space>() == *b.get<Value::Space>();
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

bool is_less(const Value& a, const Value& b, Budget& budget) {
  budget.steps(1);
  if (a.is_number() && b.is_number()) {
    return a.is_integer() && b.is_integer() ? a.to_integer() < b.to_integer()
                                            : a.to_number() < b.to_number();
  }
  // UTF-8 is ordered like the code points that it stands for.
  if (a.as_text() && b.as_text()) {
    budget.copy(std::min(a.as_text()->size(), b.as_text()->size()));
    return *a.as_text() < *b.as_text();
  }
  const Sequence* const left = a.as_sequence();
  const Sequence* const right = b.as_sequence();
  if (left == nullptr || right == nullptr || left->kind != right->kind ||
      (left->kind != SequenceKind::List && left->kind != SequenceKind::Tuple)) {
    fail(std::string("there is no order between ") + a.type_name() + " and " + b.type_name());
  }
  const size_t n = std::min(left->items.size(), right->items.size());
  for (size_t i = 0; i < n; ++i) {
    if (!are_equal(left->items[i], right->items[i], budget)) {
      return is_less(left->items[i], right->items[i], budget);
    }
  }
  return left->items.size() < right->items.size();
}

const Value* find(const Mapping& mapping, const Value& key, Budget& budget) {
  if (key.as_mapping() || (key.as_sequence() && key.as_sequence()->kind == SequenceKind::List)) {
    fail(std::string("a key is a ") + key.type_name() + "; expected a text or number");
  }
  for (const auto& [name, value] : mapping.items) {
    if (are_equal(name, key, budget)) return &value;
  }
  return nullptr;
}

const Value* find(const Mapping& mapping, std::string_view key) {
  for (const auto& [name, value] : mapping.items) {
    if (name.as_text() && *name.as_text() == key) return &value;
  }
  return nullptr;
}

void put(Mapping& mapping, Value key, Value value, Budget& budget) {
  // Only namespaces and mappings that are being made are written to.
  if (const Value* const found = find(mapping, key, budget)) {
    const_cast<Value&>(*found) = std::move(value);
    return;
  }
  budget.bytes(2 * Budget::kElement);
  mapping.items.emplace_back(std::move(key), std::move(value));
}

std::vector<Value> elements(const Value& value, Budget& budget) {
  std::vector<Value> found;
  if (value.is_undefined()) return found;
  if (const std::string* const text = value.as_text()) {
    budget.bytes(n_characters(*text) * Budget::kElement);
    for (const std::string_view c : characters(*text)) found.push_back(Value::text(std::string(c)));
  } else if (const Mapping* const mapping = value.as_mapping()) {
    budget.bytes(mapping->items.size() * Budget::kElement);
    for (const auto& item : mapping->items) found.push_back(item.first);
  } else if (const Sequence* const sequence = value.as_sequence()) {
    const auto first = sequence->items.begin() + static_cast<std::ptrdiff_t>(sequence->n_taken);
    budget.bytes(static_cast<uint64_t>(sequence->items.end() - first) * Budget::kElement);
    found.assign(first, sequence->items.end());
    if (sequence->kind == SequenceKind::Generator) sequence->n_taken = sequence->items.size();
    if (sequence->failure != nullptr) throw Failure(*sequence->failure);
  } else {
    fail(std::string("found ") + value.type_name() + "; expected something with elements");
  }
  return found;
}

std::string to_text(const Value& value, Budget& budget) {
  budget.steps(1);
  std::string text;
  if (value.is_undefined()) return text;
  if (value.as_text() != nullptr) {
    text = *value.as_text();
  } else if (value.is_none()) {
    text = "None";
  } else if (const bool* const boolean = value.get<bool>()) {
    text = *boolean ? "True" : "False";
  } else if (const int64_t* const integer = value.get<int64_t>()) {
    text = std::to_string(*integer);
  } else if (const double* const number = value.get<double>()) {
    text = float_text(*number);
  } else if (const Sequence* const sequence = value.as_sequence()) {
    text = list_text(*sequence, budget);
  } else if (const Mapping* const mapping = value.as_mapping()) {
    text = mapping_text(*mapping, budget);
  } else {
    fail_unsupported(std::string("the text of a ") + value.type_name());
  }
  budget.bytes(text.size());
  return text;
}

int64_t length(const Value& value, Budget& budget) {
  if (value.is_undefined()) return 0;
  if (const std::string* const text = value.as_text()) {
    budget.walk(text->size());
    return static_cast<int64_t>(n_characters(*text));
  }
  if (const Mapping* const mapping = value.as_mapping()) {
    return static_cast<int64_t>(mapping->items.size());
  }
  const Sequence* const sequence = value.as_sequence();
  if (sequence == nullptr || sequence->kind == SequenceKind::Generator) {
    fail(std::string("found ") + value.type_name() + "; expected something with a length");
  }
  return static_cast<int64_t>(sequence->items.size());
}

}  // namespace executorch::extension::llm::jinja
