#include <executorch/extension/llm/tokenizers/unicode_regex.h>

#include <executorch/extension/llm/tokenizers/utf8.h>

#include <algorithm>
#include <utility>

namespace tokenizers {
namespace {

using regex::Instruction;
using regex::Op;

constexpr size_t kStepsPerByte = 400;
constexpr size_t kLeastSteps = 200000;
constexpr size_t kMostFrames = size_t{1} << 22;

class Matcher {
 public:
  Matcher(const regex::Program& program, std::string_view text)
      : program_(program),
        begin_(text.data()),
        end_(begin_ + text.size()),
        steps_(kLeastSteps + kStepsPerByte * text.size()),
        registers_(program.registers) {}

  /// Runs the program from `pc` on. Returns the end of the match that begins at `at`, or null.
  const char* run(uint32_t pc, const char* at) {
    const size_t base = frames_.size();
    for (;;) {
      if (steps_-- == 0 || frames_.size() > kMostFrames) {
        exhausted = true;
        frames_.resize(base);
        return nullptr;
      }
      const Instruction& i = program_.code[pc];
      if (i.op == Op::kMatch) {
        frames_.resize(base);
        return at;
      }
      if (!step(i, pc, at) && (exhausted || !back(base, pc, at))) {
        frames_.resize(base);
        return nullptr;
      }
    }
  }

  bool exhausted = false;

 private:
  struct Frame {
    uint32_t pc;
    /// The register to restore, or kNone; kShrink for a greedy loop that can give back characters.
    uint32_t reg;
    const char* at;
    const char* least;
  };
  static constexpr uint32_t kNone = 0xffffffff;
  static constexpr uint32_t kShrink = 0xfffffffe;

  bool step(const Instruction& i, uint32_t& pc, const char*& at) {
    switch (i.op) {
      case Op::kSet: {
        if (at == end_) return false;
        const utf8::Character c = utf8::decode(at, end_);
        at += c.length;
        ++pc;
        return program_.sets[i.a].has(c.code_point);
      }
      case Op::kSplit:
        frames_.push_back({i.b, kNone, at, nullptr});
        pc = i.a;
        return true;
      case Op::kJump:
        pc = i.a;
        return true;
      case Op::kGreedySet:
        return greedy(i, pc, at);
      case Op::kAtomic: {
        const char* const after = run(pc + 1, at);
        pc = i.a;
        at = after == nullptr ? at : after;
        return after != nullptr;
      }
      case Op::kLook: {
        const bool found = look(i, pc, at);
        pc = i.a;
        return !exhausted && found != (i.b == 1);
      }
      case Op::kRemember:
        frames_.push_back({0, i.a, registers_[i.a], nullptr});
        registers_[i.a] = at;
        ++pc;
        return true;
      case Op::kProgress:
        pc = registers_[i.a] == at ? i.b : pc + 1;
        return true;
      default:
        ++pc;
        return anchored(i, at);
    }
  }

  bool greedy(const Instruction& i, uint32_t& pc, const char*& at) {
    const regex::CharacterSet& set = program_.sets[i.a];
    const char* least = i.b == 0 ? at : nullptr;
    size_t count = 0;
    while (count < i.c && at < end_) {
      const utf8::Character c = utf8::decode(at, end_);
      if (!set.has(c.code_point)) break;
      at += c.length;
      ++count;
      least = count == i.b ? at : least;
    }
    steps_ -= std::min(steps_, count / 16);
    if (count < i.b) return false;
    ++pc;
    if (at != least) frames_.push_back({pc, kShrink, at, least});
    return true;
  }

  bool look(const Instruction& i, uint32_t pc, const char* at) {
    const char* start = at;
    if (i.c != kNone) {
      for (uint32_t n = 0; n < i.c; ++n) {
        if (start == begin_) return false;
        start = before(start);
      }
    }
    const char* const after = run(pc + 1, start);
    return after != nullptr && (i.c == kNone || after == at);
  }

  bool back(size_t base, uint32_t& pc, const char*& at) {
    while (frames_.size() > base) {
      Frame& frame = frames_.back();
      if (frame.reg == kShrink) {
        frame.at = before(frame.at);
        pc = frame.pc;
        at = frame.at;
        if (frame.at == frame.least) frames_.pop_back();
        return true;
      }
      if (frame.reg != kNone) {
        registers_[frame.reg] = frame.at;
        frames_.pop_back();
        continue;
      }
      pc = frame.pc;
      at = frame.at;
      frames_.pop_back();
      return true;
    }
    return false;
  }

  /// The beginning of the character that ends at `at`. Any bytes are divided as decode() divides
  /// them.
  const char* before(const char* at) const {
    const auto continues = [](char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; };
    const char* start = at - 1;
    while (start > begin_ && at - start < 4 && continues(*start)) --start;
    // Only the first byte of a character decodes to more than one byte.
    const bool ends_here = start + utf8::decode(start, end_).length == at;
    return ends_here ? start : at - 1;
  }

  bool anchored(const Instruction& i, const char* at) const {
    switch (i.op) {
      case Op::kTextStart:
        return at == begin_;
      case Op::kTextEnd:
        return at == end_;
      case Op::kLastLineEnd:
        return at == end_ || (at + 1 == end_ && *at == '\n');
      case Op::kLineStart:
        // No line starts after a line break at the end of the text.
        return at == begin_ || (at < end_ && at[-1] == '\n');
      case Op::kLineEnd:
        return at == end_ || *at == '\n';
      default: {
        const regex::CharacterSet& words = program_.sets[i.a];
        const bool left = at > begin_ && words.has(utf8::decode(before(at), end_).code_point);
        const bool right = at < end_ && words.has(utf8::decode(at, end_).code_point);
        return (left != right) == (i.op == Op::kWordBoundary);
      }
    }
  }

  const regex::Program& program_;
  const char* begin_;
  const char* end_;
  size_t steps_;
  std::vector<const char*> registers_;
  std::vector<Frame> frames_;
};

std::string& failure() {
  static thread_local std::string text;
  return text;
}

FallbackRegexFn& fallback() {
  static FallbackRegexFn fn = nullptr;
  return fn;
}

}  // namespace

Error UnicodeRegex::compile(const std::string& pattern, regex::Dialect dialect) {
  message_.clear();
  pattern_ = pattern;
  return regex::compile(pattern, dialect, program_, message_) ? Error::Ok : Error::RegexFailure;
}

std::string UnicodeRegex::take_failure() {
  return std::exchange(failure(), "");
}

bool UnicodeRegex::find_all(std::string_view text, std::vector<Match>& matches) const {
  if (program_.code.empty()) return true;
  Matcher matcher(program_, text);
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* last = nullptr;
  for (const char* at = begin; at <= end;) {
    const char* const after = matcher.run(0, at);
    if (matcher.exhausted) {
      constexpr size_t kShown = 40;
      const auto where = static_cast<size_t>(at - begin);
      failure() = "the pattern " + pattern_.substr(0, 400) + " takes too many steps at byte " +
                  std::to_string(where) + " of " + std::to_string(text.size()) + ", before \"" +
                  utf8::valid(text.substr(where, kShown)) + "\"";
      TK_LOG(Error, "%s", failure().c_str());
      return false;
    }
    // An empty match directly after the last match does not count.
    if (after != nullptr && after != last) {
      matches.push_back({static_cast<size_t>(at - begin), static_cast<size_t>(after - begin)});
      last = after;
    }
    if (after != nullptr && after > at) {
      at = after;
    } else if (at == end) {
      break;
    } else {
      at += utf8::decode(at, end).length;
    }
  }
  return true;
}

std::vector<Match> UnicodeRegex::find_all(const std::string& text) const {
  std::vector<Match> matches;
  find_all(std::string_view(text), matches);
  return matches;
}

std::string IRegex::escape(const std::string& input) {
  std::string pattern;
  for (const char c : input) {
    if (std::string_view("\\^$.|?*+()[]{}-&~#").find(c) != std::string_view::npos) {
      pattern += '\\';
    }
    pattern += c;
  }
  return pattern;
}

Result<std::unique_ptr<IRegex>> create_regex(const std::string& pattern) {
  auto made = std::make_unique<UnicodeRegex>();
  if (made->compile(pattern) == Error::Ok) return std::unique_ptr<IRegex>(std::move(made));
  if (fallback() != nullptr) return fallback()(pattern);
  TK_LOG(Error, "regular expression: %s", made->message().c_str());
  return Error::RegexFailure;
}

bool register_override_fallback_regex(FallbackRegexFn fn) {
  fallback() = fn;
  return true;
}

FallbackRegexFn get_fallback_regex() {
  return fallback();
}

}  // namespace tokenizers
