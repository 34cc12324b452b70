#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace tokenizers::detail {

/// Strings to numbers and back; immutable. `TInteger` is the number's type.
template <typename TInteger = uint64_t>
class StringIntegerMap {
 public:
  StringIntegerMap() = default;
  /// Of pairs whose strings or numbers are equal the first counts.
  template <typename TContainer>
  explicit StringIntegerMap(const TContainer& pairs)
      : StringIntegerMap(
            pairs, [](const auto& pair) -> const auto& { return pair.first; },
            [](const auto& pair) { return pair.second; }) {}
  /// `string_of` and `integer_of` take an element of `elements`.
  template <typename TContainer, typename TStringOf, typename TIntegerOf>
  StringIntegerMap(const TContainer& elements, TStringOf string_of, TIntegerOf integer_of) {
    for (const auto& element : elements) {
      const auto [at, added] = integers_.emplace(std::string(string_of(element)),
                                                 static_cast<TInteger>(integer_of(element)));
      // Strings of a map stay where they are.
      if (added) strings_.emplace(at->second, &at->first);
    }
  }
  StringIntegerMap(StringIntegerMap&&) = default;
  StringIntegerMap& operator=(StringIntegerMap&&) = default;
  StringIntegerMap(const StringIntegerMap& other) : StringIntegerMap(other.integers_) {}
  StringIntegerMap& operator=(const StringIntegerMap& other) {
    return *this = StringIntegerMap(other);
  }

  std::optional<TInteger> tryGetInteger(std::string_view text) const {
    const auto found = integers_.find(std::string(text));
    return found == integers_.end() ? std::nullopt : std::optional<TInteger>(found->second);
  }
  std::optional<std::string_view> tryGetString(TInteger integer) const {
    const auto found = strings_.find(integer);
    return found == strings_.end() ? std::nullopt : std::optional<std::string_view>(*found->second);
  }
  size_t size() const { return integers_.size(); }

  using const_iterator = typename std::unordered_map<std::string, TInteger>::const_iterator;
  const_iterator begin() const { return integers_.begin(); }
  const_iterator end() const { return integers_.end(); }

 private:
  std::unordered_map<std::string, TInteger> integers_;
  std::unordered_map<TInteger, const std::string*> strings_;
};

}  // namespace tokenizers::detail
