#include <executorch/extension/llm/jinja/syntax.h>
#include <executorch/extension/llm/jinja/text.h>
#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>

namespace executorch::extension::llm::jinja {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name(char c) {
  return is_name_start(c) || is_digit(c);
}

/// Every end of a line becomes one line feed, and the last one goes.
std::string normalized(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += source[i] == '\r' ? '\n' : source[i];
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    try {
      while (at_ < source_.size()) read_data();
      add(TokenKind::End, "");
    } catch (Failure& failure) {
      if (failure.line == 0) failure.line = line_;
      throw;
    }
    return std::move(tokens_);
  }

 private:
  char peek(size_t offset = 0) const {
    return at_ + offset < source_.size() ? source_[at_ + offset] : '\0';
  }
  bool starts_with(std::string_view text) const {
    return std::string_view(source_).substr(at_, text.size()) == text;
  }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  /// Goes on to `end`, and notes whether a line begins there.
  void move_to(size_t end) {
    line_ +=
        static_cast<uint32_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    if (end > at_) begins_line_ = source_[end - 1] == '\n';
    at_ = end;
  }

  size_t behind_space(size_t at) const {
    const std::string_view rest = std::string_view(source_).substr(at);
    return at + rest.size() - strip(rest, Side::Left).size();
  }

  /// Behind `-%}`, `+%}` or `%}` at `at`, with the white space that goes with it; npos if there is
  /// none. `trims` says whether a line feed behind a plain end goes, too.
  size_t behind_end(size_t at, std::string_view end, bool trims, bool allows_plus) const {
    const std::string_view rest = std::string_view(source_).substr(at);
    if (rest.substr(0, end.size()) == end) {
      at += end.size();
      return trims && at < source_.size() && source_[at] == '\n' ? at + 1 : at;
    }
    if (rest.size() <= end.size() || rest.substr(1, end.size()) != end) return source_.npos;
    if (rest[0] == '-') return behind_space(at + 1 + end.size());
    return allows_plus && rest[0] == '+' ? at + 1 + end.size() : source_.npos;
  }

  /// Behind `{% word %}` at `at`, or npos.
  size_t behind_word_block(size_t at, std::string_view word, bool trims, bool allows_plus) const {
    at += 2;
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
    at = behind_space(at);
    if (std::string_view(source_).substr(at, word.size()) != word) return source_.npos;
    return behind_end(behind_space(at + word.size()), "%}", trims, allows_plus);
  }

  /// The text up to a mark at `mark`, without the white space that the mark takes away.
  std::string text_before(size_t mark, bool is_output) const {
    std::string_view text = std::string_view(source_).substr(at_, mark - at_);
    const char sign = mark + 2 < source_.size() ? source_[mark + 2] : '\0';
    if (sign == '-') {
      text = strip(text, Side::Right);
    } else if (sign != '+' && !is_output) {
      const size_t begin = text.rfind('\n') + 1;
      if ((begin > 0 || begins_line_) && is_all_space(text.substr(begin))) {
        text = text.substr(0, begin);
      }
    }
    return std::string(text);
  }

  void add_data(std::string text) {
    if (!text.empty()) add(TokenKind::Data, std::move(text));
  }

  void read_data() {
    size_t mark = at_;
    while ((mark = source_.find('{', mark)) != source_.npos) {
      const char kind = mark + 1 < source_.size() ? source_[mark + 1] : '\0';
      if (kind == '%' || kind == '{' || kind == '#') break;
      ++mark;
    }
    if (mark == source_.npos) {
      add_data(source_.substr(at_));
      move_to(source_.size());
      return;
    }
    const char kind = source_[mark + 1];
    add_data(text_before(mark, kind == '{'));
    const bool has_sign =
        mark + 2 < source_.size() && (source_[mark + 2] == '-' || source_[mark + 2] == '+');
    const size_t raw = kind == '%' ? behind_word_block(mark, "raw", false, false) : source_.npos;
    move_to(raw != source_.npos ? raw : mark + (has_sign ? 3 : 2));
    if (raw != source_.npos) {
      read_raw();
    } else if (kind == '#') {
      read_comment();
    } else {
      read_code(kind == '{');
    }
  }

  void read_raw() {
    for (size_t mark = at_; (mark = source_.find("{%", mark)) != source_.npos; ++mark) {
      const size_t end = behind_word_block(mark, "endraw", true, true);
      if (end == source_.npos) continue;
      add_data(text_before(mark, false));
      move_to(end);
      return;
    }
    fail("a raw block has no end; expected {% endraw %}");
  }

  void read_comment() {
    size_t end = source_.npos;
    for (size_t at = at_; at < source_.size() && end == source_.npos; ++at) {
      end = behind_end(at, "#}", true, true);
    }
    if (end == source_.npos) fail("a comment has no end; expected #}");
    move_to(end);
  }

  void read_code(bool is_output) {
    add(is_output ? TokenKind::OutputBegin : TokenKind::BlockBegin, "");
    std::string open;
    for (;;) {
      const size_t end = open.empty()
                             ? behind_end(at_, is_output ? "}}" : "%}", !is_output, !is_output)
                             : source_.npos;
      if (end != source_.npos) {
        add(is_output ? TokenKind::OutputEnd : TokenKind::BlockEnd, "");
        move_to(end);
        return;
      }
      const size_t next = behind_space(at_);
      if (next != at_) {
        move_to(next);
        continue;
      }
      if (at_ == source_.size()) {
        fail(std::string("the template ends in a tag; expected ") + (is_output ? "}}" : "%}"));
      }
      read_token(open);
    }
  }

  void read_token(std::string& open) {
    const char c = peek();
    if (is_name_start(c)) {
      const size_t begin = at_;
      size_t end = at_;
      while (end < source_.size() && is_name(source_[end])) ++end;
      add(TokenKind::Name, source_.substr(begin, end - begin));
      move_to(end);
    } else if (is_digit(c)) {
      read_number();
    } else if (c == '\'' || c == '"') {
      read_string();
    } else {
      read_operator(open);
    }
  }

  /// Behind digits with single underscores between them, in `base`.
  size_t behind_digits(size_t at, int base) const {
    const auto is_one = [&](size_t i) {
      if (i >= source_.size()) return false;
      const char c = source_[i];
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : 99;
      return digit < base;
    };
    while (is_one(at)) {
      ++at;
      if (at < source_.size() && source_[at] == '_' && is_one(at + 1)) ++at;
    }
    return at;
  }

  void read_number() {
    size_t end = behind_digits(at_, 10);
    const bool is_behind_dot = at_ > 0 && source_[at_ - 1] == '.';
    bool is_float = false;
    if (!is_behind_dot && end < source_.size() && source_[end] == '.' &&
        behind_digits(end + 1, 10) > end + 1) {
      end = behind_digits(end + 1, 10);
      is_float = true;
    }
    if (!is_behind_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) {
        ++exponent;
      }
      if (behind_digits(exponent, 10) > exponent) {
        end = behind_digits(exponent, 10);
        is_float = true;
      }
    }
    const char mark = static_cast<char>(peek(1) | 0x20);
    if (!is_float && peek() == '0' && (mark == 'x' || mark == 'o' || mark == 'b')) {
      fail_unsupported("numbers in other bases than ten");
    }
    if (!is_float && peek() == '0' && end > at_ + 1) {
      const auto other = source_.find_first_not_of("0_", at_);
      if (other < end) fail("found a number that begins with 0");
    }
    std::string digits = source_.substr(at_, end - at_);
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    add(is_float ? TokenKind::Float : TokenKind::Integer, std::move(digits));
    move_to(end);
  }

  uint32_t hexadecimal(size_t at, size_t n) const {
    if (at + n > source_.size() || behind_digits(at, 16) < at + n ||
        source_.substr(at, n).find('_') != source_.npos) {
      fail("found an escape without its " + std::to_string(n) + " hexadecimal digits");
    }
    return static_cast<uint32_t>(std::stoul(source_.substr(at, n), nullptr, 16));
  }

  /// Appends what the escape at the backslash `at` stands for, and returns what is behind it.
  size_t read_escape(size_t at, std::string& text) const {
    const char c = at + 1 < source_.size() ? source_[at + 1] : '\0';
    const std::string_view letters = "abfnrtv\\'\"";
    const size_t letter = letters.find(c);
    if (c != '\0' && letter != letters.npos) {
      text += "\a\b\f\n\r\t\v\\'\""[letter];
      return at + 2;
    }
    if (c == 'x' || c == 'u' || c == 'U') {
      const size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const uint32_t code = hexadecimal(at + 2, n);
      if (code > 0x10ffff) fail("found an escape beyond the last character");
      if (code >= 0xd800 && code < 0xe000) fail_unsupported("half of a pair of surrogates");
      ::tokenizers::utf8::append(text, code);
      return at + 2 + n;
    }
    if (c == '\n') return at + 2;
    if (c == 'N' || (c >= '0' && c <= '7')) {
      fail_unsupported(std::string("the escape \\") + c);
    }
    text += '\\';
    return at + 1;
  }

  void read_string() {
    const char quote = peek();
    std::string text;
    size_t at = at_ + 1;
    while (at < source_.size() && source_[at] != quote) {
      if (source_[at] == '\\') {
        at = read_escape(at, text);
      } else {
        text += source_[at++];
      }
    }
    if (at >= source_.size()) fail(std::string("a text has no end; expected ") + quote);
    add(TokenKind::Text, std::move(text));
    move_to(at + 1);
  }

  void read_operator(std::string& open) {
    constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                               "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                               ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto* const found =
        std::find_if(std::begin(kOperators), std::end(kOperators),
                     [&](std::string_view text) { return starts_with(text); });
    if (found == std::end(kOperators)) {
      const auto c = ::tokenizers::utf8::decode(&source_[at_], source_.data() + source_.size());
      if (c.valid && c.length > 1) fail_unsupported("names with characters beyond ASCII");
      fail("found '" + source_.substr(at_, c.length) + "', which no expression has");
    }
    const char c = (*found)[0];
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) {
        fail("found " + std::string(1, c) +
             (open.empty() ? ", which closes nothing"
                           : "; expected " + open.substr(open.size() - 1)));
      }
      open.pop_back();
    }
    add(TokenKind::Operator, std::string(*found));
    move_to(at_ + found->size());
  }

  const std::string source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool begins_line_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) {
  return Lexer(normalized(source)).run();
}

}  // namespace executorch::extension::llm::jinja
