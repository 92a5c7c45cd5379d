// SPDX-License-Identifier: Apache-2.0
// Genuine MARKER records in a buffer, through the decoder.
#include "sources/cupti/markers.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "sources/cupti/decode.hpp"

namespace gpudiag {
namespace {

CUptiResult CUPTIAPI next_marker(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  std::uint8_t* at = *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + sizeof(CUpti_ActivityMarker2);
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}

struct NoRecords final : RecordSink {
  void add(const Record&) override { ADD_FAILURE() << "a marker is no record by itself"; }
};

struct Range {
  std::string text;
  std::int64_t start;
  std::int64_t end;
  std::uint32_t thread;

  bool operator==(const Range&) const = default;
};

void PrintTo(const Range& range, std::ostream* out) {
  *out << range.text << " [" << range.start << ", " << range.end << ") on " << range.thread;
}

constexpr std::uint64_t kEpoch = 1'700'000'000'000'000'000;

class Markers : public ::testing::Test {
 protected:
  Markers() {
    cupti_.next_record = next_marker;
    clock_.add({static_cast<std::int64_t>(kEpoch), {0}, {0}});
    decoder_.set_range_sink([this](const HostMessage& message, std::string_view text) {
      EXPECT_EQ(message.kind, RecordKind::kRange);
      EXPECT_EQ(message.range, RangeSource::kNvtx);
      ranges_.push_back({std::string{text}, message.start.ns, message.end.ns, message.thread});
    });
  }

  void append(CUpti_ActivityFlag flag, std::uint32_t id, std::uint64_t at, const char* name = nullptr,
              std::uint32_t thread = 11, const char* domain = nullptr) {
    CUpti_ActivityMarker2 marker;
    std::memset(static_cast<void*>(&marker), 0, sizeof marker);
    marker.kind = CUPTI_ACTIVITY_KIND_MARKER;
    marker.flags = flag;
    marker.timestamp = kEpoch + at;
    marker.id = id;
    marker.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    marker.objectId.pt.processId = 1;
    marker.objectId.pt.threadId = thread;
    marker.name = name;
    marker.domain = domain;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&marker);
    buffer_.insert(buffer_.end(), bytes, bytes + sizeof marker);
  }
  const std::vector<Range>& decode() {
    EXPECT_TRUE(decoder_.decode({buffer_.data(), buffer_.size()}, clock_, none_));
    buffer_.clear();
    decoder_.finish_round(none_);
    return ranges_;
  }

  static constexpr auto kStart = CUPTI_ACTIVITY_FLAG_MARKER_START;
  static constexpr auto kEnd = CUPTI_ACTIVITY_FLAG_MARKER_END;
  static constexpr auto kInstant = CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS;

  CuptiTable cupti_;
  NameTable names_;
  ClockMap clock_;
  ActivityDecoder decoder_{cupti_, names_};
  NoRecords none_;
  std::vector<std::uint8_t> buffer_;
  std::vector<Range> ranges_;
};

TEST_F(Markers, AStartAndAnEndOfOneIdAreARangeOfTheThreadThatBeganIt) {
  append(kStart, 5, 1000, "outer");
  append(kStart, 6, 1200, "inner");
  append(kEnd, 6, 1500);
  append(kEnd, 5, 1900, nullptr, 22);
  EXPECT_EQ(decode(), (std::vector<Range>{{"inner", 1200, 1500, 11}, {"outer", 1000, 1900, 11}}));
}

TEST_F(Markers, AnInstantIsARangeWithoutLength) {
  append(kInstant, 9, 700, "epoch 3");
  EXPECT_EQ(decode(), (std::vector<Range>{{"epoch 3", 700, 700, 11}}));
}

TEST_F(Markers, ARangeMayEndInALaterBuffer) {
  append(kStart, 5, 1000, "long");
  EXPECT_TRUE(decode().empty());
  decode();
  append(kEnd, 5, 9000);
  EXPECT_EQ(decode(), (std::vector<Range>{{"long", 1000, 9000, 11}}));
}

TEST_F(Markers, AnEndMayComeBeforeItsStartFromAnotherThreadsBuffer) {
  append(kEnd, 5, 2000, nullptr, 22);
  EXPECT_TRUE(decode().empty());
  append(kStart, 5, 1000, "handed over", 11);
  EXPECT_EQ(decode(), (std::vector<Range>{{"handed over", 1000, 2000, 11}}));
}

TEST_F(Markers, AnEndWhoseStartWasNeverSeenIsForgottenAfterARound) {
  append(kEnd, 5, 2000);
  decode();
  decode();
  append(kStart, 5, 3000, "another one");  // ids count on; this shows that nothing was kept
  EXPECT_TRUE(decode().empty());
  append(kEnd, 5, 4000);
  EXPECT_EQ(decode(), (std::vector<Range>{{"another one", 3000, 4000, 11}}));
}

// As by the injection: domains keep pushes apart, which the ids do here, and none is left out.
TEST_F(Markers, EachDomainIsTakenAndNoneDisturbsAnother) {
  append(kStart, 5, 1000, "step", 11, "trainer");
  append(kStart, 6, 1100, "all-reduce", 11, "NCCL");
  append(kEnd, 5, 1200, nullptr, 11, "trainer");
  append(kEnd, 6, 1300, nullptr, 11, "NCCL");
  EXPECT_EQ(decode(), (std::vector<Range>{{"step", 1000, 1200, 11}, {"all-reduce", 1100, 1300, 11}}));
}

TEST_F(Markers, SynchronisationObjectsAreNoRanges) {
  append(CUPTI_ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE, 5, 1000, "lock");
  append(CUPTI_ACTIVITY_FLAG_MARKER_SYNC_RELEASE, 5, 1500, "lock");
  EXPECT_TRUE(decode().empty());
}

TEST_F(Markers, NobodyAskedForThemNobodyGetsThem) {
  decoder_.set_range_sink(nullptr);
  append(kStart, 5, 1000, "step");
  append(kEnd, 5, 1200);
  EXPECT_TRUE(decode().empty());
  EXPECT_EQ(decoder_.counts().others, 2u);
}

TEST_F(Markers, WhatWasOpenBeforeAnotherProfilersTurnIsForgotten) {
  append(kStart, 5, 1000, "step");
  decode();
  decoder_.forget_open_ranges();
  append(kEnd, 5, 9000);
  EXPECT_TRUE(decode().empty());
}

TEST_F(Markers, ALongOrMissingNameIsCutOrEmpty) {
  const std::string name(3 * kRangeTextKept, 'x');
  append(kStart, 1, 10, name.c_str());
  append(kEnd, 1, 20);
  append(kInstant, 2, 30, nullptr);
  const auto& ranges = decode();
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].text.size(), kRangeTextKept);
  EXPECT_EQ(ranges[1].text, "");
}

}  // namespace
}  // namespace gpudiag
