// SPDX-License-Identifier: Apache-2.0
#include "session/live_names.hpp"

#include <gtest/gtest.h>

#include <set>

namespace gpudiag {
namespace {

TEST(LiveNames, GiveOneIdToOneText) {
  NameTable names;
  LiveNames live{names, true};
  const NameId first = live.intern("forward");
  EXPECT_EQ(live.intern("forward"), first);
  EXPECT_NE(live.intern("backward"), first);
  EXPECT_EQ(names.text(first), "forward");
}

TEST(LiveNames, DoNotGrowWithTheNumberOfIterations) {
  NameTable names;
  LiveNames live{names, true};
  for (int i = 0; i < 50'000; ++i) {
    const std::string text = "iter " + std::to_string(i);
    EXPECT_EQ(names.text(live.intern(text)), text);
  }
  EXPECT_LE(names.size(), LiveNames::kKept + 1);
}

TEST(LiveNames, KeepTheNewestTextsOfAShapeApart) {
  NameTable names;
  LiveNames live{names, true};
  for (int i = 0; i < 10'000; ++i) live.intern("iter " + std::to_string(i));
  std::set<NameId> ids;
  for (int i = 9'000; i < 10'000; ++i) ids.insert(live.intern("iter " + std::to_string(i)));
  EXPECT_EQ(ids.size(), 1000u);
}

TEST(LiveNames, KeepEveryTextOfARunThatIsRecorded) {
  NameTable names;
  LiveNames live{names, false};
  const NameId first = live.intern("iter 0");
  for (int i = 1; i < 10'000; ++i) live.intern("iter " + std::to_string(i));
  EXPECT_EQ(names.text(first), "iter 0");
  EXPECT_EQ(names.size(), 10'001u);
}

TEST(LiveNames, RepairTextThatIsNotClean) {
  NameTable names;
  LiveNames live{names, true};
  EXPECT_EQ(names.text(live.intern("a\x01" "b")), "a\xef\xbf\xbd" "b");
}

}  // namespace
}  // namespace gpudiag
