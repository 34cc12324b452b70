#include <executorch/extension/c_api/guarded_call.h>
#include <executorch/runtime/platform/runtime.h>

#include <gtest/gtest.h>
#include <string>

namespace executorch::extension::c_api {
namespace {

using runtime::Error;

executorch_status fail(const char* function, const char* message) {
  return guarded(function, [&] {
    ET_LOG(Error, "%s", message);
    return Error::NotFound;
  });
}

TEST(GuardedCall, ACallInsideACallLeavesItsMessagesAlone) {
  const auto outer = [](bool fails) {
    return guarded("outer", [&] {
      ET_LOG(Error, "before");
      EXPECT_EQ(fail("inner", "inside"), EXECUTORCH_NOT_FOUND);
      EXPECT_STREQ(last_error(), "inner: inside (NotFound)");
      ET_LOG(Error, "after");
      return fails ? Error::InvalidState : Error::Ok;
    });
  };
  EXPECT_EQ(outer(true), EXECUTORCH_INVALID_STATE);
  EXPECT_STREQ(last_error(), "outer: before; after (InvalidState)");
  EXPECT_EQ(outer(false), EXECUTORCH_OK);
  EXPECT_STREQ(last_error(), "inner: inside (NotFound)");
}

TEST(GuardedCall, TheStatusFollowsHoweverManyMessages) {
  for (const std::string character : {"x", "\u00e9", "\u20ac", "\U0001f600"}) {
    std::string message = "a";  // so that no character begins where the text is cut
    while (message.size() < 200) message += character;
    const executorch_status status = guarded("f", [&] {
      for (int i = 0; i < 100; ++i) ET_LOG(Error, "%s", message.c_str());
      return Error::OperatorMissing;
    });
    EXPECT_EQ(status, EXECUTORCH_OPERATOR_MISSING);
    const std::string text = last_error(), end = " (OperatorMissing)";
    ASSERT_GT(text.size(), 3900u);
    EXPECT_EQ(text.substr(text.size() - end.size()), end);
    // What precedes the status is a whole character.
    const std::string before = text.substr(0, text.size() - end.size());
    const size_t n = character.size();
    EXPECT_TRUE(before.substr(before.size() - n) == character || before.back() == ';' ||
                before.back() == ' ' || before.back() == 'a')
        << before.substr(before.size() - 8);
  }
}

}  // namespace
}  // namespace executorch::extension::c_api
