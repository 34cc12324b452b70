#include <executorch/extension/llm/server/tool_calls.h>

#include <gtest/gtest.h>

#include <cctype>

using namespace executorch::extension::llm::server;

namespace {

constexpr const char* kTools = R"([{"type":"function","function":{"name":"add"}},
                                   {"type":"function","function":{"name":"now"}}])";

struct Read {
  std::string text;
  std::vector<std::string> calls;  // name and arguments
  bool operator==(const Read&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Read& read) {
  out << "'" << read.text << "'";
  for (const std::string& call : read.calls) out << " " << call;
  return out;
}

/// What is found in a text that comes in pieces of `size` characters.
Read read(const std::string& text, size_t size) {
  ToolCallReader reader(kTools);
  Read found;
  const auto take = [&] {
    for (const ToolCall& call : reader.take_calls()) {
      EXPECT_EQ(call.id.size(), 9u);
      for (const char c : call.id) EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)));
      found.calls.push_back(call.name + call.arguments);
    }
    EXPECT_EQ(reader.count(), found.calls.size());
  };
  for (size_t i = 0; i < text.size(); i += size) {
    found.text += reader.add(text.substr(i, size));
    take();
  }
  found.text += reader.finish();
  take();
  return found;
}

Read read(const std::string& text) {
  const Read found = read(text, text.size() + 1);
  for (const size_t size : {size_t{1}, size_t{3}, size_t{7}}) EXPECT_EQ(read(text, size), found);
  return found;
}

std::string marked(const std::string& call) {
  return "<tool_call>\n" + call + "\n</tool_call>";
}

const std::string kAdd = R"({"name": "add", "arguments": {"z": 1, "a": [2.5, "x"]}})";
const std::string kAdded = R"(add{"z":1,"a":[2.5,"x"]})";

}  // namespace

TEST(ToolCalls, BetweenMarksWithTextAround) {
  EXPECT_EQ(read(marked(kAdd)), (Read{"", {kAdded}}));
  EXPECT_EQ(read("Let me see.\n\n" + marked(kAdd) + "\n" + marked(R"({"name":"now"})")),
            (Read{"Let me see.", {kAdded, "now{}"}}));
  EXPECT_EQ(read(marked(kAdd) + " done"), (Read{" done", {kAdded}}));
  // A name that was not given is a call, too: the mark says so. The text may end before the mark.
  EXPECT_EQ(read(marked(R"({"name":"other","arguments":{}})")), (Read{"", {"other{}"}}));
  EXPECT_EQ(read("<tool_call>" + kAdd), (Read{"", {kAdded}}));
}

TEST(ToolCalls, AsTheWholeText) {
  EXPECT_EQ(read(" " + kAdd + "\n"), (Read{"", {kAdded}}));
  EXPECT_EQ(read(R"({"name": "add", "parameters": {"a": 1}})"), (Read{"", {R"(add{"a":1})"}}));
  EXPECT_EQ(read("[" + kAdd + R"(, {"name":"now","arguments":"{\"in\":\"UTC\"}"}])"),
            (Read{"", {kAdded, R"(now{"in":"UTC"})"}}));
  EXPECT_EQ(read("[TOOL_CALLS][" + kAdd + "]"), (Read{"", {kAdded}}));
  EXPECT_EQ(read(R"(<|python_tag|>{"name":"other","parameters":{}})"), (Read{"", {"other{}"}}));
}

TEST(ToolCalls, OtherTextStaysAsItIs) {
  const std::string deep(1000000, '[');
  for (const std::string& text :
       std::vector<std::string>{"",
                                " ",
                                "Hello\n",
                                "a < b",
                                "<tool",
                                "<tool_calls>",
                                "[1] is",
                                "{x}",
                                "[TOOL",
                                R"({"name": "other", "arguments": {}})",
                                R"({"name": "add", "arguments": 3})",
                                R"([{"name": "add"}, 3])",
                                "[]",
                                R"({"a": 1})",
                                R"({"name": "add", )",
                                marked("{"),
                                marked(R"({"name":3})"),
                                marked(R"({"arguments":{}})"),
                                "<tool_call>",
                                deep,
                                "<tool_call>" + deep,
                                R"({"name":"add","arguments":{"x":)" + deep}) {
    EXPECT_EQ(read(text, text.size() + 1), (Read{text, {}})) << text.substr(0, 80);
    const size_t step = text.size() < 1000 ? 1 : 100000;
    EXPECT_EQ(read(text, step), (Read{text, {}})) << text.substr(0, 80);
  }
}

TEST(ToolCalls, TextIsHandedOnAsSoonAsItIsCertain) {
  ToolCallReader reader(kTools);
  EXPECT_EQ(reader.add("See"), "See");
  EXPECT_EQ(reader.add(" it <"), " it");
  EXPECT_EQ(reader.add("b> "), " <b>");
  EXPECT_EQ(reader.add("<tool_"), "");
  EXPECT_EQ(reader.add("call>" + kAdd), "");
  EXPECT_TRUE(reader.take_calls().empty());
  EXPECT_EQ(reader.add("</tool_call>"), "");
  EXPECT_EQ(reader.take_calls().size(), 1u);
  EXPECT_EQ(reader.finish(), "");
}
