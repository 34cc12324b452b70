// Limits and messages; what templates mean is compared with the Python package in tests/chat_templates.
#include <executorch/extension/llm/jinja/from_json.h>
#include <executorch/extension/llm/jinja/template.h>
#include <gtest/gtest.h>

#include <ctime>

using namespace executorch::extension::llm::jinja;

namespace {

/// The text, or what is wrong.
std::string rendered(const std::string& source, const Limits& limits = Limits()) {
  std::string cause;
  const auto read = Template::parse(source, cause);
  if (!read) return "unread: " + cause;
  const auto text = read->render(Mapping{}, cause, limits);
  return text.has_value() ? *text : cause;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST(Template, ErrorsSayLineFoundAndExpected) {
  EXPECT_EQ(rendered("a\n{% if x %}\nb"),
            "unread: line 3: found the template's end; expected {% endif %}");
  EXPECT_EQ(rendered("\n\n{{ 1 + }}"), "unread: line 3: found }}; expected an expression");
  EXPECT_EQ(rendered("{{ 'a' + \n 1 }}"), "line 2: found str + int, which has no meaning");
  EXPECT_EQ(rendered("{{ (1 }}"), "unread: line 1: found }; expected )");
  EXPECT_EQ(rendered("{% include 'x' %}"), "unread: line 1: not supported: the block include");
  EXPECT_EQ(rendered("{{ 1 | nonsense }}"), "line 1: not supported: the filter nonsense");
  EXPECT_EQ(rendered("\n{{ x.y }}"), "line 2: 'x' is undefined and has no 'y'");
  EXPECT_EQ(rendered("{% set x = 1 %}{{ raise_exception('roles ' ~ x) }}"), "line 1: roles 1");
}

TEST(Template, IntegersOfJsonKeepTheirSign) {
  std::string cause;
  const auto read = Template::parse("{{ x }} {{ x > 0 }}", cause);
  ASSERT_TRUE(read.has_value()) << cause;
  const auto with = [&](const std::string& number) {
    const Value variables = value_of(tokenizers::Json::parse("{\"x\": " + number + "}"));
    return read->render(*variables.as_mapping(), cause).value_or(cause);
  };
  EXPECT_EQ(with("9223372036854775807"), "9223372036854775807 True");
  EXPECT_EQ(with("-9223372036854775808"), "-9223372036854775808 False");
  EXPECT_EQ(with("9223372036854775808"), "9.223372036854776e+18 True");
  EXPECT_EQ(with("18446744073709551615"), "1.8446744073709552e+19 True");
  EXPECT_EQ(with("18446744073709551616"), "1.8446744073709552e+19 True");
}

TEST(Template, NestingIsBounded) {
  const auto repeated = [](const std::string& text, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  EXPECT_TRUE(
      has(rendered("{{ " + repeated("(", 100000) + "1" + repeated(")", 100000) + " }}"), "deep"));
  EXPECT_TRUE(has(rendered("{{ " + repeated("not ", 100000) + "1 }}"), "deep"));
  EXPECT_TRUE(has(rendered("{{ " + repeated("-", 100000) + "1 }}"), "deep"));
  EXPECT_TRUE(has(rendered("{{ 1" + repeated("+1", 100000) + " }}"), "deep"));
  EXPECT_TRUE(has(rendered("{{ x" + repeated(".y", 100000) + " }}"), "deep"));
  EXPECT_TRUE(has(rendered(repeated("{% if 1 %}", 100000)), "deep"));
  EXPECT_TRUE(has(rendered("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "too deep"));
  EXPECT_TRUE(has(rendered("{% set n = namespace(x=[]) %}{% for i in range(1000) %}"
                           "{% set n.x = [n.x] %}{% endfor %}"),
                  "nested more than"));
  EXPECT_EQ(rendered("{% set n = namespace() %}{% set n.n = [n] %}ok"), "ok");
}

TEST(Template, WorkIsBounded) {
  const std::string many =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
      "{% endfor %}";
  EXPECT_TRUE(has(rendered(many), "than it may"));
  const std::string doubled =
      "{% set n = namespace(x='xxxxxxxx') %}{% for i in range(60) %}"
      "{% set n.x = n.x + n.x %}{% endfor %}";
  EXPECT_TRUE(has(rendered(doubled), "more bytes"));
  EXPECT_TRUE(has(rendered("{{ 'x' * 9223372036854775807 }}"), "more bytes"));
  EXPECT_TRUE(has(rendered("{{ [1] * 9223372036854775807 }}"), "more bytes"));
  Limits limits;
  limits.output_bytes = 10;
  EXPECT_EQ(rendered("0123456789", limits), "0123456789");
  EXPECT_TRUE(has(rendered("0123456789a", limits), "more than 10 bytes"));
  EXPECT_TRUE(has(rendered(std::string(2 << 20, 'x')), "unread"));
}

// However long a text is, what looks at all of it takes its time from the budget.
TEST(Template, WorkOnTextsIsBounded) {
  const auto repeated = [](const std::string& condition) {
    return "{% set s = 'a' * 1000000 %}{% set b = 'a' * 500000 ~ 'b' %}{% for i in range(99999) %}"
           "{% if " +
           condition + " %}{% endif %}{% endfor %}";
  };
  Limits limits;
  limits.steps = 1'000'000;
  for (const char* condition : {"s|length",        "s|count",
                                "b in s",          "s.find(b)",
                                "s.rfind(b)",      "s.count(b)",
                                "s.count('')",     "s.split(b)",
                                "s.rsplit(b)",     "s.replace(b, '')",
                                "s.startswith(s)", "s.endswith(s)",
                                "'a'.find(s)",     "s.strip('b')",
                                "s.split()",       "s.rsplit()",
                                "s.splitlines()",  "s[0]",
                                "s[:1]",           "('1' * 1000000).isdigit()",
                                "s is in s",       "s == s ~ ''",
                                "s < s ~ ''",      "s|trim",
                                "s|trim('b')",     "s.removeprefix('b' ~ s)"}) {
    const std::clock_t start = std::clock();  // processor time: others may keep the machine busy
    EXPECT_TRUE(has(rendered(repeated(condition), limits), "than it may")) << condition;
    EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC) << condition;
  }
}

TEST(Template, TextsAreSplitInOneWalk) {
  EXPECT_EQ(rendered("{{ ('ab ' * 200000).split()|length }}"), "200000");
  EXPECT_EQ(rendered("{{ ('ab ' * 200000).rsplit()|length }}"), "200000");
  EXPECT_EQ(rendered("{{ ' \u00e9 b\u3000c '.split() }}"), "['\u00e9', 'b', 'c']");
  EXPECT_EQ(rendered("{{ ' \u00e9 b\u3000c '.rsplit(none, 1) }}"), "[' \u00e9 b', 'c']");
  EXPECT_EQ(rendered("{{ 'xyaxyb'.strip('yxz') }}"), "axyb");
  EXPECT_EQ(rendered("{{ '\u00e9\u00e8a\u00e9'.strip('\u00e9') }}"), "\u00e8a");
}

TEST(Template, PartsAreCountedBeforeTheyAreMade) {
  EXPECT_TRUE(has(rendered("{{ (',' * 100000000).split(',')|length }}"), "more bytes"));
  EXPECT_TRUE(has(rendered("{{ ('\n' * 100000000).splitlines()|length }}"), "more bytes"));
  EXPECT_TRUE(has(rendered("{{ ('a' * 100000000)[::2]|length }}"), "more bytes"));
  EXPECT_TRUE(has(rendered("{{ strftime_now('a' * 100000000) }}"), "1000 characters"));
  std::string keywords = "{{ dict(";
  for (int i = 0; i < 60000; ++i) keywords += "a" + std::to_string(i) + "=1,";
  EXPECT_TRUE(has(rendered(keywords + "a=1) }}"), "more steps"));
}

TEST(Template, FormatsAreBounded) {
  EXPECT_TRUE(has(rendered("{{ '%999999999d'|format(1) }}"), "more bytes"));
  EXPECT_TRUE(has(rendered("{{ '%.999999999f'|format(1) }}"), "more bytes"));
  EXPECT_TRUE(has(rendered("{{ '%*d'|format(2000000000, 1) }}"), "more bytes"));
  EXPECT_TRUE(has(rendered("{{ '%99999999999999999999d'|format(1) }}"), "too large"));
  std::string places, values;
  for (int i = 0; i < 1000; ++i) places += "%s", values += ", s";
  EXPECT_TRUE(has(rendered("{% set s = 'a' * 1000000 %}{{ '" + places + "'|format(" +
                           values.substr(2) + ") }}"),
                  "more bytes"));
  EXPECT_TRUE(
      has(rendered("{% set l = [['x' * 9]] * 9999 %}{{ l|sum(start=[])|length }}"), "more bytes"));
}

TEST(Template, CallersEndWithTheirCall) {
  EXPECT_EQ(rendered("{% set n = namespace() %}{% macro f() %}{% set n.c = caller %}{{ caller() }}"
                     "{% endmacro %}{% call f() %}x{% endcall %}{{ n.c() }}"),
            "line 1: not supported: caller as a value");
  EXPECT_TRUE(has(rendered("{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{{ caller() }}"
                           "{% endmacro %}{% call f() %}x{% endcall %}"),
                  "too deep"));
  EXPECT_TRUE(has(rendered("{% call(caller) f() %}x{% endcall %}"), "name caller"));
}

TEST(Template, NumbersThatDoNotFit) {
  EXPECT_TRUE(has(rendered("{{ 9223372036854775808 }}"), "not supported"));
  EXPECT_TRUE(has(rendered("{{ 9223372036854775807 + 1 }}"), "not supported"));
  EXPECT_TRUE(has(rendered("{{ (-9223372036854775807 - 1) // -1 }}"), "not supported"));
  EXPECT_TRUE(has(rendered("{{ (-9223372036854775807 - 1) % -1 }}"), "not supported"));
  EXPECT_EQ(rendered("{{ 1 // 0 }}"), "line 1: found a division by zero");
}

TEST(Template, TimeOfTheRendering) {
  EXPECT_EQ(rendered("{{ strftime_now('%Y')|length }}{{ strftime_now('%%') }}"), "4%");
}
