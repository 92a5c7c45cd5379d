// SPDX-License-Identifier: Apache-2.0
#include "record/recording.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "record/collective.hpp"

namespace gpudiag {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

struct Collected final : RecordSink {
  void add(const Record& record) override { records.push_back(record); }
  std::vector<Record> records;
};

Record kernel(std::int64_t at, NameId name) {
  Record made;
  made.kind = RecordKind::kKernel;
  made.start = TimePoint{at};
  made.end = TimePoint{at + 5};
  made.device = DeviceId{0};
  made.name = name;
  return made;
}

// A file in memory, with what was read back from it.
struct File {
  std::string bytes;
  std::vector<std::size_t> appended_at;  // where each append began

  RecordingWriter::Append append() {
    return [this](std::string_view more) {
      appended_at.push_back(bytes.size());
      bytes += more;
      return true;
    };
  }
  RecordingReader::Read read(std::size_t at_once = 1000) {
    return [this, at_once, at = std::size_t{0}](char* to, std::size_t size) mutable {
      const std::size_t count = std::min({size, at_once, bytes.size() - at});
      bytes.copy(to, count, at);
      at += count;
      return count;
    };
  }
};

// Three frames of ten kernels each, then the end.
File three_frames(NameTable& names) {
  File file;
  RecordingWriter writer{names, file.append()};
  writer.attribute("rank", "3");
  for (int frame = 0; frame < 3; ++frame) {
    for (int i = 0; i < 10; ++i)
      writer.add(kernel(frame * 1000 + i * 10, names.intern("kernel" + std::to_string(frame))));
    writer.flush();
  }
  writer.finish();
  return file;
}

struct ReadBack {
  NameTable names;
  Collected sink;
  std::uint64_t broken = 0;
  bool truncated = false;
  bool finished = false;

  explicit ReadBack(File file, std::size_t at_once = 1000) {
    RecordingReader reader{names, file.read(at_once)};
    EXPECT_FALSE(reader.open().has_value());
    while (reader.next(sink)) {
    }
    broken = reader.broken_frames();
    truncated = reader.truncated();
    finished = reader.finished();
  }
  std::uint64_t lost() const {
    std::uint64_t sum = 0;
    for (const Record& record : sink.records)
      if (record.kind == RecordKind::kLost) sum += record.value;
    return sum;
  }
  std::size_t kernels() const {
    return static_cast<std::size_t>(
        std::count_if(sink.records.begin(), sink.records.end(),
                      [](const Record& r) { return r.kind == RecordKind::kKernel; }));
  }
};

TEST(Recording, RecordsAndNamesComeBackInOrder) {
  NameTable names;
  const File file = three_frames(names);
  for (std::size_t at_once : {1, 7, 100'000}) {
    const ReadBack back{file, at_once};
    ASSERT_EQ(back.sink.records.size(), 30u);
    for (std::size_t i = 0; i < 30; ++i) {
      EXPECT_EQ(back.sink.records[i].start.ns, static_cast<std::int64_t>(i / 10 * 1000 + i % 10 * 10));
      EXPECT_EQ(back.names.text(back.sink.records[i].name), "kernel" + std::to_string(i / 10));
    }
    EXPECT_TRUE(back.finished);
    EXPECT_FALSE(back.truncated);
    EXPECT_EQ(back.broken, 0u);
  }
}

TEST(Recording, AttributesAreThereBeforeTheFirstRecord) {
  NameTable names;
  File file = three_frames(names);
  NameTable read_names;
  RecordingReader reader{read_names, file.read()};
  ASSERT_FALSE(reader.open().has_value());
  EXPECT_THAT(reader.attributes(), ElementsAre(Pair("rank", "3")));
  EXPECT_EQ(reader.attribute("rank"), "3");
  EXPECT_EQ(reader.attribute("host"), "");
}

TEST(Recording, CutAnywhereLosesAtMostTheFrameThatWasCut) {
  NameTable names;
  const File file = three_frames(names);
  const std::size_t preamble = file.appended_at[1];
  for (std::size_t size = preamble; size < file.bytes.size(); ++size) {
    File cut = file;
    cut.bytes.resize(size);
    std::size_t whole = 0;  // appends: preamble, attribute, (names, records) x 3, end
    for (std::size_t frame : {3u, 5u, 7u})
      if (file.appended_at[frame + 1] <= size) whole += 10;
    const ReadBack back{cut};
    EXPECT_EQ(back.kernels(), whole) << size;
    EXPECT_EQ(back.lost(), 0u) << size;
    EXPECT_FALSE(back.finished);
    const bool at_boundary = std::count(file.appended_at.begin(), file.appended_at.end(), size) > 0;
    EXPECT_EQ(back.truncated, !at_boundary) << size;
  }
}

TEST(Recording, ADamagedFrameCostsItselfAloneAndItsRecordsAreCountedLost) {
  NameTable names;
  const File file = three_frames(names);
  const std::size_t begin = file.appended_at[5];
  const std::size_t end = file.appended_at[6];
  for (std::size_t at = begin; at < end; ++at) {
    File damaged = file;
    damaged.bytes[at] = static_cast<char>(damaged.bytes[at] ^ 0x55);
    const ReadBack back{damaged};
    EXPECT_EQ(back.kernels(), 20u) << at - begin;
    EXPECT_EQ(back.lost(), 10u) << at - begin;
    EXPECT_TRUE(back.finished);
    EXPECT_EQ(back.broken, 1u);
  }
}

TEST(Recording, ALostNameLeavesItsRecordsWithoutOne) {
  NameTable names;
  File file = three_frames(names);
  file.bytes[file.appended_at[4] + 25] ^= 1;  // the names of the second frame
  const ReadBack back{file};
  EXPECT_EQ(back.kernels(), 30u);
  EXPECT_EQ(back.names.text(back.sink.records[15].name), "");
  EXPECT_EQ(back.names.text(back.sink.records[25].name), "kernel2");
}

TEST(Recording, ACollectivesDescriptionComesBackWhateverIdItGets) {
  NameTable names;
  File file;
  RecordingWriter writer{names, file.append()};
  Record made = kernel(0, names.intern("ncclDevKernel_AllReduce"));
  made.value2 = value2_of({names.intern("coll all_reduce bytes=8"), 41});
  writer.add(made);
  writer.finish();
  NameTable others;
  for (int i = 0; i < 10; ++i) others.intern("taken " + std::to_string(i));
  RecordingReader reader{others, file.read()};
  ASSERT_FALSE(reader.open());
  Collected sink;
  while (reader.next(sink)) {
  }
  ASSERT_EQ(sink.records.size(), 1u);
  const CollectiveTag tag = collective_tag_of(sink.records[0].value2);
  EXPECT_EQ(others.text(tag.about), "coll all_reduce bytes=8");
  EXPECT_EQ(tag.sequence, 41u);
}

TEST(Recording, AnotherFileIsRefusedWithAReason) {
  NameTable names;
  File file;
  for (const char* content : {"", "gpu", "{\"traceEvents\": []}"}) {
    file.bytes = content;
    RecordingReader reader{names, file.read()};
    const auto error = reader.open();
    ASSERT_TRUE(error.has_value());
    EXPECT_THAT(error->message, HasSubstr("not a recording"));
  }
}

TEST(Recording, ALaterFormatIsRefusedByItsName) {
  NameTable names;
  File file;
  file.bytes = "gpudiag.records/2\nwhatever";
  RecordingReader reader{names, file.read()};
  const auto error = reader.open();
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(error->message, HasSubstr("gpudiag.records/2"));
}

TEST(Recording, ManyRecordsAreWrittenInFramesThatBoundTheLoss) {
  NameTable names;
  File file;
  RecordingWriter writer{names, file.append()};
  for (int i = 0; i < 100'000; ++i) writer.add(kernel(i, kNoName));
  EXPECT_GT(file.appended_at.size(), 5u);
  EXPECT_GT(file.bytes.size(), 0u);
}

TEST(Recording, AFullDiskStopsWritingAndIsSaid) {
  NameTable names;
  int calls = 0;
  RecordingWriter writer{names, [&](std::string_view) { return ++calls < 2; }};
  EXPECT_TRUE(writer.ok());
  for (int i = 0; i < 3; ++i) {
    writer.add(kernel(i, kNoName));
    writer.flush();
  }
  EXPECT_FALSE(writer.ok());
  EXPECT_EQ(calls, 2);
}

TEST(Recording, DamageAnywhereIsSurvived) {
  NameTable names;
  const File file = three_frames(names);
  std::mt19937_64 random{99};
  for (int round = 0; round < 2000; ++round) {
    File damaged = file;
    for (int i = 0; i < 4; ++i)
      damaged.bytes[18 + random() % (damaged.bytes.size() - 18)] = static_cast<char>(random());
    const ReadBack back{damaged};
    EXPECT_LE(back.kernels(), 30u);
    EXPECT_LE(back.lost(), 30u);
  }
}

}  // namespace
}  // namespace gpudiag
