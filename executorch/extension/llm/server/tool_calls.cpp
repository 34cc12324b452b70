#include <executorch/extension/llm/sampler/constraint/json_shape.h>
#include <executorch/extension/llm/server/request_fields.h>
#include <executorch/extension/llm/server/tool_calls.h>

#include <algorithm>
#include <random>
#include <utility>

namespace executorch::extension::llm::server {
namespace {

constexpr std::string_view kBegin = "<tool_call>", kEnd = "</tool_call>";
constexpr std::string_view kListMark = "[TOOL_CALLS]", kObjectMark = "<|python_tag|>";
constexpr std::string_view kSpace = " \t\r\n";

std::string_view strip(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

bool is_beginning_of(std::string_view text, std::string_view whole) {
  return whole.substr(0, text.size()) == text;
}

/// Whether the text, which begins with no space, may turn out to be calls and nothing else.
bool may_be_whole(std::string_view text) {
  for (const std::string_view mark : {kListMark, kObjectMark}) {
    if (is_beginning_of(text, mark) || is_beginning_of(mark, text)) return true;
  }
  if (text.empty() || (text[0] != '{' && text[0] != '[')) return text.empty();
  const size_t next = text.find_first_not_of(kSpace, 1);
  return next == text.npos || text[next] == (text[0] == '{' ? '"' : '{');
}

/// How much of the end of the text may be the beginning of a marked call, or space before one.
size_t undecided(std::string_view text) {
  size_t mark = std::min(text.size(), kBegin.size() - 1);
  while (!is_beginning_of(text.substr(text.size() - mark), kBegin)) --mark;
  const size_t last = text.substr(0, text.size() - mark).find_last_not_of(kSpace);
  return text.size() - (last == text.npos ? 0 : last + 1);
}

OrderedJson parse(std::string_view text) {
  if (constraint::json_shape(text, kMaxDepth).depth > kMaxDepth) return OrderedJson();
  return OrderedJson::parse(text, nullptr, false);
}

std::string text_of(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string new_id() {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::uniform_int_distribution<size_t> letter(0, kLetters.size() - 1);
  std::string id;
  for (int i = 0; i < 9; ++i) id += kLetters[letter(random)];
  return id;
}

}  // namespace

ToolCallReader::ToolCallReader(const std::string& tools) {
  for (const OrderedJson& tool : OrderedJson::parse(tools)) {
    names_.insert(::tokenizers::string_at(::tokenizers::at(tool, "function"), "name"));
  }
}

std::string ToolCallReader::add(std::string_view piece) {
  waiting_ += piece;
  if (!begun_ && may_be_whole(strip(waiting_))) return "";
  begun_ = true;
  return read_marked();
}

std::string ToolCallReader::finish() {
  std::string text;
  if (begun_ || !read_whole(strip(waiting_))) {
    begun_ = true;
    text = read_marked();
    // A text may end before the mark of the end.
    const std::string_view rest = strip(waiting_);
    const bool is_call =
        rest.substr(0, kBegin.size()) == kBegin && add_call(rest.substr(kBegin.size()), false);
    const bool is_space = rest.empty() && count_ > 0;
    if (!is_call && !is_space) text += waiting_;
  }
  waiting_.clear();
  return text;
}

std::vector<ToolCall> ToolCallReader::take_calls() {
  return std::exchange(calls_, {});
}

/// Takes from waiting_ what is decided: text, which is returned, and calls between marks.
std::string ToolCallReader::read_marked() {
  std::string text;
  while (true) {
    const size_t begin = waiting_.find(kBegin);
    if (begin == waiting_.npos) {
      const size_t n_decided = waiting_.size() - undecided(waiting_);
      text += waiting_.substr(0, n_decided);
      waiting_.erase(0, n_decided);
      return text;
    }
    const size_t first = begin + kBegin.size(), end = waiting_.find(kEnd, first);
    const std::string_view before = std::string_view(waiting_).substr(0, begin);
    const size_t n_text = before.size() - undecided(before);
    if (end == waiting_.npos) {
      text += waiting_.substr(0, n_text);
      waiting_.erase(0, n_text);
      return text;
    }
    const size_t behind = end + kEnd.size();
    const bool is_call = add_call(std::string_view(waiting_).substr(first, end - first), false);
    text += waiting_.substr(0, is_call ? n_text : behind);
    waiting_.erase(0, behind);
  }
}

/// Reads a text that is nothing but calls. Returns whether it is such a text.
bool ToolCallReader::read_whole(std::string_view text) {
  bool is_marked = false;
  for (const std::string_view mark : {kListMark, kObjectMark}) {
    if (text.substr(0, mark.size()) != mark) continue;
    text = strip(text.substr(mark.size()));
    is_marked = true;
  }
  const OrderedJson json = parse(text);
  if (!json.is_array()) return add_call(text, !is_marked);
  const size_t n_before = calls_.size();
  for (const OrderedJson& one : json) {
    if (add_call(text_of(one), !is_marked)) continue;
    count_ -= calls_.size() - n_before;
    calls_.resize(n_before);
    return false;
  }
  return !json.empty();
}

/// Adds the call that `json` is. Returns whether it is one.
bool ToolCallReader::add_call(std::string_view json, bool must_be_known) {
  const OrderedJson call = parse(json);
  const std::string name = ::tokenizers::string_at(call, "name");
  if (name.empty() || (must_be_known && names_.count(name) == 0)) return false;
  OrderedJson arguments = ::tokenizers::at(call, "arguments");
  if (arguments.is_null()) arguments = ::tokenizers::at(call, "parameters");
  if (arguments.is_string()) arguments = parse(arguments.get<std::string>());  // as clients send it
  if (!arguments.is_object() && !arguments.is_null()) return false;
  calls_.push_back({new_id(), name, arguments.is_null() ? "{}" : text_of(arguments)});
  ++count_;
  return true;
}

}  // namespace executorch::extension::llm::server
