// SPDX-License-Identifier: Apache-2.0
// Writes a small recording: five iterations of ten kernels, a millisecond each. Argument: the file.
#include <cstdio>
#include <string>

#include "record/recording.hpp"

using namespace gpudiag;

namespace {

constexpr ThreadId kThread{1};

void add_launch(RecordingWriter& writer, NameTable& names, std::int64_t at, std::uint32_t number) {
  Record call;
  call.kind = RecordKind::kApiCall;
  call.api = ApiClass::kLaunch;
  call.start = TimePoint{at};
  call.end = TimePoint{at + 5'000};
  call.thread = kThread;
  call.correlation = CorrelationId{number};
  call.name = names.intern("cudaLaunchKernel");
  writer.add(call);

  Record kernel;
  kernel.kind = RecordKind::kKernel;
  kernel.start = TimePoint{at + 10'000};
  kernel.end = TimePoint{at + 90'000};
  kernel.device = DeviceId{0};
  kernel.context = ContextId{1};
  kernel.stream = StreamId{7};
  kernel.correlation = CorrelationId{number};
  kernel.name = names.intern("gemm");
  writer.add(kernel);
}

void add_mark(RecordingWriter& writer, std::int64_t at, std::uint64_t index) {
  Record mark;
  mark.kind = RecordKind::kMark;
  mark.start = mark.end = TimePoint{at};
  mark.thread = kThread;
  mark.value = index;
  writer.add(mark);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::FILE* file = std::fopen(argv[1], "wb");
  if (file == nullptr) return 1;
  NameTable names;
  {
    RecordingWriter writer{names, [&](std::string_view bytes) {
                             return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
                           }};
    writer.attribute("origin_unix_ns", "1736412345678901235");
    writer.attribute("rank", "3");
    writer.attribute("host", "node7");
    writer.attribute("device.0", "Recorded GPU");
    for (std::uint32_t i = 0; i < 5; ++i) {
      const std::int64_t start = 1'000'000 + std::int64_t{i} * 1'000'000;
      for (std::uint32_t k = 0; k < 10; ++k) add_launch(writer, names, start + std::int64_t{k} * 100'000, i * 10 + k + 1);
      add_mark(writer, start + 995'000, i);
      writer.flush();
    }
    writer.finish();
  }
  return std::fclose(file) == 0 ? 0 : 1;
}
