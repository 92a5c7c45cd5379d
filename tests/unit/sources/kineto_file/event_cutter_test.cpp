// SPDX-License-Identifier: Apache-2.0
#include "sources/kineto_file/event_cutter.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sources/kineto_file/object_end.hpp"

namespace gpudiag::kineto_file {
namespace {

using Strings = std::vector<std::string>;

struct CutText {
  Strings events;
  std::uint64_t broken = 0;
  bool truncated = false;
  bool is_trace = false;
  Strings members;
};

/// Feeds `text` in pieces of `step` bytes, as blocks of a file would come.
CutText cut(const std::string& text, std::size_t step = 1'000'000) {
  EventCutter cutter;
  CutText result;
  std::string rest;
  for (std::size_t at = 0; at < text.size() || at == 0; at += step) {
    const bool last = at + step >= text.size();
    rest += text.substr(at, step);
    const std::string padded = rest + std::string(kScanPadding, '}');
    std::vector<Cut> events;
    const std::size_t done =
        cutter.cut(std::string_view{padded}.substr(0, rest.size()), last, events);
    for (const Cut& event : events)
      result.events.push_back(rest.substr(event.offset, event.length));
    rest.erase(0, done);
  }
  result.broken = cutter.broken();
  result.truncated = cutter.truncated();
  result.is_trace = cutter.is_trace() && cutter.found_events();
  for (const auto& [key, value] : cutter.members()) result.members.push_back(key + "=" + value);
  return result;
}

TEST(EventCutter, CutsABareArray) {
  const CutText got = cut(R"([{"ph":"X"}, {"ph":"i"} ])");
  EXPECT_EQ(got.events, (Strings{R"({"ph":"X"})", R"({"ph":"i"})"}));
  EXPECT_FALSE(got.truncated);
  EXPECT_TRUE(got.is_trace);
}

TEST(EventCutter, CutsTheEventsOfAnObjectAndKeepsWhatStandsBesideThem) {
  const CutText got = cut(R"({"a": [1, {"x": "]"}], "traceEvents": [ {"ph":"X"}
  ], "b": "c", "baseTimeNanoseconds": 5})");
  EXPECT_EQ(got.events, Strings{R"({"ph":"X"})"});
  EXPECT_EQ(got.members, (Strings{R"(a=[1, {"x": "]"}])", R"(b="c")", "baseTimeNanoseconds=5"}));
  EXPECT_FALSE(got.truncated);
}

TEST(EventCutter, SkipsAByteOrderMark) {
  EXPECT_EQ(cut("\xEF\xBB\xBF [{\"ph\":\"X\"}]").events.size(), 1u);
}

TEST(EventCutter, AnEmptyListOfEventsIsATrace) {
  EXPECT_TRUE(cut("[]").is_trace);
  EXPECT_TRUE(cut(R"({"traceEvents": []})").is_trace);
  EXPECT_FALSE(cut(R"({"traceEvents": []})").truncated);
}

TEST(EventCutter, OtherTextIsNoTrace) {
  EXPECT_FALSE(cut("hello").is_trace);
  EXPECT_FALSE(cut("").is_trace);
  EXPECT_FALSE(cut("   ").is_trace);
  EXPECT_FALSE(cut(R"({"a": 1})").is_trace);
}

TEST(EventCutter, TheSizeOfBlocksDoesNotMatter) {
  const std::string text = R"({"z": {"q": ["]"]}, "traceEvents": [{"ph":"X","name":"a\"}"},
  {"ph":"B","args":{"n":[1,2]}} , {"name": "lost, "ts": 1}, {"ph":"E"}], "b": 7})";
  const CutText whole = cut(text);
  EXPECT_EQ(whole.events.size(), 3u);
  EXPECT_EQ(whole.broken, 1u);
  for (std::size_t step = 1; step < text.size(); ++step) {
    const CutText pieces = cut(text, step);
    EXPECT_EQ(pieces.events, whole.events) << step;
    EXPECT_EQ(pieces.broken, whole.broken) << step;
    EXPECT_EQ(pieces.members, whole.members) << step;
    EXPECT_EQ(pieces.truncated, whole.truncated) << step;
  }
}

TEST(EventCutter, KeepsEverythingBeforeATruncation) {
  const CutText got = cut(R"({"traceEvents": [{"ph":"X","ts":1}, {"ph":"X","name":"cut of)");
  EXPECT_EQ(got.events, Strings{R"({"ph":"X","ts":1})"});
  EXPECT_TRUE(got.truncated);
  EXPECT_EQ(got.broken, 0u);
  EXPECT_TRUE(cut(R"({"traceEvents": [{"ph":"X","ts":1})").truncated);
  EXPECT_TRUE(cut(R"({"traceEvents": [{"ph":"X"}], "a": [1,)").truncated);
}

TEST(EventCutter, AnEventWithALostQuoteCostsItselfAlone) {
  const CutText got = cut(R"([{"ph":"X","ts":1}, {"name":"a, "ts":2}, {"ph":"X","ts":3}])");
  EXPECT_EQ(got.events, (Strings{R"({"ph":"X","ts":1})", R"({"ph":"X","ts":3})"}));
  EXPECT_EQ(got.broken, 1u);
  EXPECT_FALSE(got.truncated);
}

TEST(EventCutter, AnEventWithALostBraceCostsItselfAlone) {
  const CutText got = cut(R"([{"ph":"X","args":{"a":1}, {"ph":"X","ts":3}, {"ph":"X","ts":4}])");
  EXPECT_EQ(got.events, (Strings{R"({"ph":"X","ts":3})", R"({"ph":"X","ts":4})"}));
  EXPECT_EQ(got.broken, 1u);
}

TEST(EventCutter, ABrokenLastEventDoesNotHideWhatFollowsTheEvents) {
  const CutText got =
      cut(R"({"traceEvents": [{"ph":"X","ts":1}, {"name":"a, "args":{"d":[1,2], "e":[]}}],
  "baseTimeNanoseconds": 9})");
  EXPECT_EQ(got.events.size(), 1u);
  EXPECT_EQ(got.broken, 1u);
  EXPECT_EQ(got.members, Strings{"baseTimeNanoseconds=9"});
  EXPECT_FALSE(got.truncated);
}

TEST(EventCutter, TextBetweenEventsCostsNoEvent) {
  const CutText got = cut(R"([{"ph":"X","ts":1} garbage, {"ph":"X","ts":2}, , {"ph":"X","ts":3}])");
  EXPECT_EQ(got.events.size(), 3u);
  EXPECT_EQ(got.broken, 1u);
}

TEST(EventCutter, AnInnerListOfObjectsIsPartOfItsEvent) {
  const std::string event = R"({"ph":"X","args":{"list":[{"name":"a"},{"name":"b"}]}})";
  EXPECT_EQ(cut("[" + event + "," + event + "]").events, (Strings{event, event}));
}

}  // namespace
}  // namespace gpudiag::kineto_file
