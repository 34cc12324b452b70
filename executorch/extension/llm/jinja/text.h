/// Texts as Python sees them: UTF-8 by characters; a byte that is no UTF-8 is one by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace executorch::extension::llm::jinja {

std::vector<std::string_view> characters(std::string_view text);
size_t n_characters(std::string_view text);
/// Of a text that is not empty.
std::string_view first_character(std::string_view text);
std::string_view last_character(std::string_view text);

/// What str.isspace() and \s mean.
bool is_space(uint32_t c);
bool is_all_space(std::string_view text);

enum class Side : uint8_t { Left = 1, Right = 2, Both = 3 };
/// Without white space at its sides.
std::string_view strip(std::string_view text, Side side = Side::Both);
/// Without any of the characters in `set` at its sides.
std::string_view strip(std::string_view text, std::string_view set, Side side);

/// Lower or upper case. Fails for letters whose mapping is not known here: upper case beyond ASCII,
/// and the capital sigma, whose lower case depends on its place.
std::string lower(std::string_view text);
std::string upper(std::string_view text);

/// Calls `each` for the lines of str.splitlines(); with their ends if `keep_ends`.
void for_each_line(std::string_view text, bool keep_ends,
                   const std::function<void(std::string_view)>& each);

/// Python's repr of a string and of a float.
std::string quoted(std::string_view text);
std::string float_text(double value);
/// A JSON string.
std::string json_quoted(std::string_view text, bool ascii_only);

}  // namespace executorch::extension::llm::jinja
