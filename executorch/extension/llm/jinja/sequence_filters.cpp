// Filters of lists, texts and mappings by their elements.
#include <executorch/extension/llm/jinja/evaluator.h>
#include <executorch/extension/llm/jinja/text.h>

#include <algorithm>
#include <utility>

namespace executorch::extension::llm::jinja {
namespace {

std::vector<Value> items_of(const Call& call) {
  return elements(call.self, call.evaluator.budget());
}

/// Of what `fill` puts into the list that it is given. What it throws is kept: Python's generators
/// compute an element when it is asked for, so nobody learns of what goes wrong further on.
template <typename Fill>
Value generator(const Call& call, const Fill& fill) {
  std::vector<Value> items;
  std::shared_ptr<const Failure> failure;
  try {
    fill(items);
  } catch (const Failure& found) {
    failure = std::make_shared<const Failure>(found);
  }
  call.evaluator.budget().bytes(items.size() * Budget::kElement);
  return Value::generator(std::move(items), std::move(failure));
}

/// `a.b.0` of an element: items first, then attributes. `otherwise` stands for each part that is not
/// there; null: nothing does.
Value member(const Call& call, Value value, const Value& path, const Value* otherwise = nullptr) {
  const auto item = [&](const Value& key) {
    Value found = call.evaluator.item(value, key);
    return found.is_undefined() && otherwise != nullptr ? *otherwise : found;
  };
  if (path.is_integer()) return item(path);
  const std::string text = call.evaluator.to_text(path);
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const bool is_number =
        !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
    value = item(is_number ? Value::integer(std::stoll(part)) : Value::text(part));
    begin = end + 1;
  }
  return value;
}

Value to_list(const Call& call) {
  return call.evaluator.list(items_of(call));
}

Value first(const Call& call) {
  const Sequence* const sequence = call.self.as_sequence();
  if (sequence != nullptr && sequence->kind == SequenceKind::Generator) {
    if (sequence->n_taken == sequence->items.size()) {
      if (sequence->failure != nullptr) throw Failure(*sequence->failure);
      return Value::undefined();
    }
    return sequence->items[sequence->n_taken++];
  }
  const std::vector<Value> items = items_of(call);
  return items.empty() ? Value::undefined() : items.front();
}

Value last(const Call& call) {
  const Sequence* const sequence = call.self.as_sequence();
  if (sequence != nullptr && sequence->kind == SequenceKind::Generator) {
    fail("last is given a generator; expected a list");
  }
  const std::vector<Value> items = items_of(call);
  return items.empty() ? Value::undefined() : items.back();
}

Value join(const Call& call) {
  std::string joined;
  bool is_first = true;
  const std::string between = call.at[0].has_value() ? call.evaluator.to_text(*call.at[0]) : "";
  for (const Value& item : items_of(call)) {
    if (!is_first) joined += between;
    is_first = false;
    call.evaluator.budget().bytes(between.size());
    joined += call.evaluator.to_text(call.has(1) ? member(call, item, *call.at[1]) : item);
  }
  return Value::text(std::move(joined));
}

Value sum(const Call& call) {
  Value total = call.at[1].has_value() ? *call.at[1] : Value::integer(0);
  if (total.as_text() != nullptr) fail("sum is given the start str; expected a number or a list");
  for (const Value& item : items_of(call)) {
    total = arithmetic("+", total, call.has(0) ? member(call, item, *call.at[0]) : item,
                       call.evaluator);
  }
  return total;
}

Value items(const Call& call) {
  return generator(call, [&](std::vector<Value>& pairs) {
    if (call.self.is_undefined()) return;
    const Mapping* const mapping = call.self.as_mapping();
    if (mapping == nullptr) {
      fail(std::string("items is given ") + call.self.type_name() + "; expected a mapping");
    }
    for (const auto& [key, value] : mapping->items) {
      pairs.push_back(call.evaluator.list({key, value}, SequenceKind::Tuple));
    }
  });
}

Value reverse(const Call& call) {
  std::vector<Value> items = items_of(call);
  std::reverse(items.begin(), items.end());
  if (call.self.as_text() != nullptr) {
    std::string text;
    for (const Value& item : items) text += *item.as_text();
    return call.evaluator.text(std::move(text));
  }
  // What has no order by itself becomes a list first.
  const Sequence* const sequence = call.self.as_sequence();
  const bool is_generator = sequence != nullptr && sequence->kind == SequenceKind::Generator;
  if (is_generator) return call.evaluator.list(std::move(items));
  return generator(call, [&](std::vector<Value>& reversed) { reversed = std::move(items); });
}

/// Texts without regard to case unless asked for.
Value sort_key(const Call& call, const Value& value, bool case_sensitive) {
  if (case_sensitive || value.as_text() == nullptr) return value;
  return call.evaluator.text(lower(*value.as_text()));
}

Value sorted(const Call& call, std::vector<Value> items, std::vector<Value> keys, bool reversed) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  Budget& budget = call.evaluator.budget();
  const auto less = [&](size_t a, size_t b) { return is_less(keys[a], keys[b], budget); };
  // Equal ones keep their order in either direction.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return reversed ? less(b, a) : less(a, b); });
  std::vector<Value> result;
  for (const size_t i : order) result.push_back(items[i]);
  return call.evaluator.list(std::move(result));
}

/// `a,b.c`: several attributes.
std::vector<Value> paths_of(const Call& call, const Value& given) {
  if (given.is_integer()) return {given};
  const std::string text = call.evaluator.to_text(given);
  std::vector<Value> paths;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    paths.push_back(call.evaluator.text(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return paths;
}

Value sort(const Call& call) {
  std::vector<Value> items = items_of(call);
  std::vector<Value> paths;
  if (call.has(2)) paths = paths_of(call, *call.at[2]);
  std::vector<Value> keys;
  for (const Value& item : items) {
    // Jinja compares lists of attributes, so equal values need no order.
    std::vector<Value> key;
    for (const Value& path : paths) {
      key.push_back(sort_key(call, member(call, item, path), call.boolean(1, false)));
    }
    if (paths.empty()) key.push_back(sort_key(call, item, call.boolean(1, false)));
    keys.push_back(call.evaluator.list(std::move(key)));
  }
  return sorted(call, std::move(items), std::move(keys), call.boolean(0, false));
}

Value dictsort(const Call& call) {
  const Mapping* const mapping = call.self.as_mapping();
  if (mapping == nullptr) {
    fail(std::string("dictsort is given ") + call.self.type_name() + "; expected a mapping");
  }
  const std::string by = call.text(1, "key");
  if (by != "key" && by != "value") fail("dictsort is by '" + by + "'; expected key or value");
  std::vector<Value> pairs, keys;
  for (const auto& [key, value] : mapping->items) {
    pairs.push_back(call.evaluator.list({key, value}, SequenceKind::Tuple));
    keys.push_back(sort_key(call, by == "key" ? key : value, call.boolean(0, false)));
  }
  return sorted(call, std::move(pairs), std::move(keys), call.boolean(2, false));
}

Value unique(const Call& call) {
  return generator(call, [&](std::vector<Value>& kept) {
    std::vector<Value> keys;
    for (Value& item : items_of(call)) {
      Value key = sort_key(call, call.has(1) ? member(call, item, *call.at[1]) : item,
                           call.boolean(0, false));
      if (key.as_mapping() ||
          (key.as_sequence() && key.as_sequence()->kind != SequenceKind::Tuple)) {
        fail(std::string("unique is given ") + key.type_name() + "; expected texts or numbers");
      }
      const bool is_known = std::any_of(keys.begin(), keys.end(), [&](const Value& other) {
        return are_equal(other, key, call.evaluator.budget());
      });
      if (is_known) continue;
      kept.push_back(std::move(item));
      keys.push_back(std::move(key));
    }
  });
}

/// The first of the smallest elements, or of the largest.
template <bool is_largest>
Value extreme(const Call& call) {
  const std::vector<Value> items = items_of(call);
  if (items.empty()) return Value::undefined();
  const auto key_of = [&](const Value& item) {
    return sort_key(call, call.has(1) ? member(call, item, *call.at[1]) : item,
                    call.boolean(0, false));
  };
  size_t best = 0;
  Value best_key = key_of(items[0]);
  for (size_t i = 1; i < items.size(); ++i) {
    Value key = key_of(items[i]);
    const bool is_better = is_largest ? is_less(best_key, key, call.evaluator.budget())
                                      : is_less(key, best_key, call.evaluator.budget());
    if (!is_better) continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

/// Lists of `n` elements each; the last is filled up if something is given for that.
Value batch(const Call& call) {
  return generator(call, [&](std::vector<Value>& batches) {
    const int64_t n = call.integer(0, 0);
    std::vector<Value> one;
    const auto is_full = [&] { return static_cast<int64_t>(one.size()) == n; };
    for (Value& item : items_of(call)) {
      if (is_full()) batches.push_back(call.evaluator.list(std::exchange(one, {})));
      one.push_back(std::move(item));
    }
    if (one.empty()) return;
    while (call.has(1) && static_cast<int64_t>(one.size()) < n) {
      call.evaluator.budget().bytes(Budget::kElement);
      one.push_back(*call.at[1]);
    }
    batches.push_back(call.evaluator.list(std::move(one)));
  });
}

/// `n` lists, the first of which have one element more where they cannot have equally many; the
/// others are filled up if something is given for that.
Value slices(const Call& call) {
  return generator(call, [&](std::vector<Value>& lists) {
    const std::vector<Value> items = items_of(call);
    const int64_t n = call.integer(0, 0);
    if (n == 0) fail("slice is given 0 as the number of lists");
    auto at = items.begin();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t size = static_cast<int64_t>(items.size());
      const auto end = at + size / n + (i < size % n ? 1 : 0);
      std::vector<Value> one(at, end);
      if (call.has(1) && i >= size % n) one.push_back(*call.at[1]);
      at = end;
      call.evaluator.budget().bytes(Budget::kElement);
      lists.push_back(call.evaluator.list(std::move(one)));
    }
  });
}

/// Pairs of what elements have in common and a list of them, in the order of the former.
Value groupby(const Call& call) {
  const bool case_sensitive = call.boolean(2, false);
  const Value* const otherwise = call.has(1) ? &*call.at[1] : nullptr;
  const auto value_of = [&](const Value& item) {
    return call.has(0) ? member(call, item, *call.at[0], otherwise) : item;
  };
  std::vector<Value> items = items_of(call), keys;
  for (const Value& item : items) keys.push_back(sort_key(call, value_of(item), case_sensitive));
  const Value in_order = sorted(call, std::move(items), std::move(keys), false);
  std::vector<Value> groups, group;
  Value key;
  const auto finish = [&] {
    if (group.empty()) return;
    Value common = value_of(group[0]);
    Value list = call.evaluator.list(std::exchange(group, {}));
    groups.push_back(Value::group(std::move(common), std::move(list)));
  };
  for (const Value& item : in_order.as_sequence()->items) {
    Value other = sort_key(call, value_of(item), case_sensitive);
    if (!group.empty() && !are_equal(key, other, call.evaluator.budget())) finish();
    if (group.empty()) key = std::move(other);
    group.push_back(item);
  }
  finish();
  return call.evaluator.list(std::move(groups));
}

Arguments behind(const Arguments& given, size_t n) {
  Arguments rest;
  for (size_t i = n; i < given.values.size(); ++i) rest.values.push_back(given.values[i]);
  rest.named = given.named;
  return rest;
}

void map_attribute(const Call& call, std::vector<Value>& results) {
  const Value* path = nullptr;
  const Value* otherwise = nullptr;
  for (const auto& [name, value] : call.given.named) {
    if (name != "attribute" && name != "default") fail("map has no parameter '" + name + "'");
    (name == "attribute" ? path : otherwise) = &value;
  }
  if (otherwise != nullptr && otherwise->is_none()) otherwise = nullptr;
  if (path == nullptr) fail("map is given neither a filter nor an attribute");
  for (const Value& item : items_of(call)) results.push_back(member(call, item, *path, otherwise));
}

Value map(const Call& call) {
  return generator(call, [&](std::vector<Value>& results) {
    if (!is_true(call.self)) return;
    if (call.given.values.empty()) return map_attribute(call, results);
    const std::string* const name = call.given.values[0].as_text();
    if (name == nullptr) fail("map is given no name of a filter");
    const Arguments rest = behind(call.given, 1);
    for (const Value& item : items_of(call)) {
      results.push_back(call.evaluator.filter(*name, item, rest));
    }
  });
}

/// select, reject and those with attr.
template <bool by_attribute, bool keeps>
Value select(const Call& call) {
  return generator(call, [&](std::vector<Value>& kept) {
    if (!is_true(call.self)) return;
    const size_t n_before = by_attribute ? 1 : 0;
    if (call.given.values.size() < n_before) fail("selectattr is given no attribute");
    const Value* const name =
        call.given.values.size() > n_before ? &call.given.values[n_before] : nullptr;
    if (name != nullptr && name->as_text() == nullptr) fail("the name of a test is no text");
    const Arguments rest = behind(call.given, n_before + 1);
    for (Value& item : items_of(call)) {
      const Value value = by_attribute ? member(call, item, call.given.values[0]) : item;
      const bool holds =
          name == nullptr ? is_true(value) : call.evaluator.test(*name->as_text(), value, rest);
      if (holds == keeps) kept.push_back(std::move(item));
    }
  });
}

}  // namespace

const std::vector<Function>& sequence_filters() {
  static const std::vector<Function> table = {
      {"list", {}, 0, to_list},
      {"first", {}, 0, first},
      {"last", {}, 0, last},
      {"join", {"d", "attribute"}, 0, join},
      {"sum", {"attribute", "start"}, 0, sum},
      {"items", {}, 0, items},
      {"reverse", {}, 0, reverse},
      {"sort", {"reverse", "case_sensitive", "attribute"}, 0, sort},
      {"dictsort", {"case_sensitive", "by", "reverse"}, 0, dictsort},
      {"unique", {"case_sensitive", "attribute"}, 0, unique},
      {"min", {"case_sensitive", "attribute"}, 0, extreme<false>},
      {"max", {"case_sensitive", "attribute"}, 0, extreme<true>},
      {"batch", {"linecount", "fill_with"}, 1, batch},
      {"slice", {"slices", "fill_with"}, 1, slices},
      {"groupby", {"attribute", "default", "case_sensitive"}, 1, groupby},
      {"map", {"*"}, 0, map},
      {"select", {"*"}, 0, select<false, true>},
      {"reject", {"*"}, 0, select<false, false>},
      {"selectattr", {"*"}, 0, select<true, true>},
      {"rejectattr", {"*"}, 0, select<true, false>},
  };
  return table;
}

}  // namespace executorch::extension::llm::jinja
