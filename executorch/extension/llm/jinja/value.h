/// Values of templates, with the meaning that they have in Python.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace executorch::extension::llm::jinja {

struct Macro;
class Value;

/// Thrown for an error in a template, when it is parsed or rendered; Template catches it.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
  /// The line of the template; 0: the line at which the parser or the evaluator is.
  uint32_t line = 0;
};
[[noreturn]] void fail(const std::string& what);
/// For features of Python's Jinja that are not implemented here.
[[noreturn]] void fail_unsupported(const std::string& what);

/// A view (as of a mapping's keys) has a length, but cannot be indexed. A generator has no length
/// either, is always true, and gives each element once.
enum class SequenceKind : uint8_t { List, Tuple, Range, View, Generator };
struct Sequence;
struct Mapping;
/// A function of the language, a method of `self`, or a macro.
struct Callable;

class Value {
 public:
  struct Undefined {
    /// What was looked for, or empty.
    std::shared_ptr<const std::string> name;
  };
  struct None {};
  using Text = std::shared_ptr<const std::string>;
  using SequencePtr = std::shared_ptr<const Sequence>;
  using MappingPtr = std::shared_ptr<const Mapping>;
  using CallablePtr = std::shared_ptr<const Callable>;
  /// A namespace, the only mutable value. The evaluator owns it, so that no namespace can own
  /// itself.
  using Space = Mapping*;

  Value() : data_(None{}) {}
  static Value undefined(std::string name = "");
  static Value boolean(bool value) { return Value(Data(value)); }
  static Value integer(int64_t value) { return Value(Data(value)); }
  static Value number(double value) { return Value(Data(value)); }
  static Value text(std::string value) {
    return Value(Data(std::make_shared<const std::string>(std::move(value))));
  }
  /// Fails where containers are nested too deeply.
  static Value sequence(std::vector<Value> items, SequenceKind kind = SequenceKind::List);
  /// See Sequence::failure.
  static Value generator(std::vector<Value> items, std::shared_ptr<const Failure> failure);
  /// The tuple (key, items), with names for them, that the filter groupby makes.
  static Value group(Value key, Value items);
  static Value mapping(std::vector<std::pair<Value, Value>> items);
  static Value space(Space space) { return Value(Data(space)); }
  static Value callable(Callable callable);

  template <typename T>
  const T* get() const {
    return std::get_if<T>(&data_);
  }
  bool is_undefined() const { return get<Undefined>() != nullptr; }
  bool is_none() const { return get<None>() != nullptr; }
  /// Null if it is something else.
  const std::string* as_text() const { return get<Text>() ? get<Text>()->get() : nullptr; }
  const Sequence* as_sequence() const {
    return get<SequencePtr>() ? get<SequencePtr>()->get() : nullptr;
  }
  const Mapping* as_mapping() const {
    return get<MappingPtr>() ? get<MappingPtr>()->get() : nullptr;
  }
  const Callable* as_callable() const {
    return get<CallablePtr>() ? get<CallablePtr>()->get() : nullptr;
  }
  /// A boolean is a whole number, as in Python.
  bool is_integer() const { return get<int64_t>() != nullptr || get<bool>() != nullptr; }
  bool is_number() const { return is_integer() || get<double>() != nullptr; }
  int64_t to_integer() const { return get<bool>() ? *get<bool>() : *get<int64_t>(); }
  double to_number() const {
    return get<double>() ? *get<double>() : static_cast<double>(to_integer());
  }
  /// The name of its type in Python, for error messages.
  const char* type_name() const;

 private:
  using Data = std::variant<None, Undefined, bool, int64_t, double, Text, SequencePtr, MappingPtr,
                            Space, CallablePtr>;
  explicit Value(Data data) : data_(std::move(data)) {}
  Data data_;
};

struct Sequence {
  SequenceKind kind = SequenceKind::List;
  std::vector<Value> items;
  bool is_group = false;
  /// How deep containers are nested, including this one.
  uint32_t depth = 1;
  /// For a generator: how many elements were taken.
  mutable size_t n_taken = 0;
  /// For a generator: the error that computing the element after the last one raised. Null if there
  /// was none.
  std::shared_ptr<const Failure> failure;
};

struct Mapping {
  /// In the order in which they were added.
  std::vector<std::pair<Value, Value>> items;
  uint32_t depth = 1;
};

struct Callable {
  std::string name;
  Value self;
  const Macro* macro = nullptr;
};

/// The steps and bytes that one rendering may use. Throws Failure when they are used up.
class Budget {
 public:
  Budget(uint64_t steps, uint64_t bytes) : steps_(steps), bytes_(bytes) {}
  void steps(uint64_t n) { take(steps_, n, "steps"); }
  /// Takes bytes for new values; an element of a container counts as kElement bytes.
  void bytes(uint64_t n) { take(bytes_, n, "bytes of values"); }
  static constexpr uint64_t kElement = 32;
  /// Takes steps for a copy or comparison of `n` bytes, and for a walk over the characters of `n`
  /// bytes.
  void copy(uint64_t n) { steps(n / 64); }
  void walk(uint64_t n) { steps(n / 8); }
  /// Takes steps for a search for `part` bytes in `n` bytes, in which `part` may have to be
  /// compared at each place.
  void search(uint64_t n, uint64_t part) { steps(n / 8 + n * part / 1024); }

 private:
  static void take(uint64_t& left, uint64_t n, const char* what);
  uint64_t steps_, bytes_;
};

bool is_true(const Value& value);
/// Python's ==. Takes steps for the elements it compares.
bool are_equal(const Value& a, const Value& b, Budget& budget);
/// Python's <; fails for types that have no order.
bool is_less(const Value& a, const Value& b, Budget& budget);
/// The value of a key; null if it is not there.
const Value* find(const Mapping& mapping, const Value& key, Budget& budget);
const Value* find(const Mapping& mapping, std::string_view key);
/// Adds or replaces.
void put(Mapping& mapping, Value key, Value value, Budget& budget);
/// The elements that a loop would see. Takes those that a generator has left. Fails for values that
/// cannot be iterated.
std::vector<Value> elements(const Value& value, Budget& budget);
/// Python's str().
std::string to_text(const Value& value, Budget& budget);
/// The number of characters, elements or members. Fails for values without a length.
int64_t length(const Value& value, Budget& budget);

}  // namespace executorch::extension::llm::jinja
