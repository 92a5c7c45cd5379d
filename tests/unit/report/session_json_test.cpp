// SPDX-License-Identifier: Apache-2.0
#include "report/session_json.hpp"

#include <gtest/gtest.h>

namespace gpudiag {
namespace {

TEST(SessionJson, TheFirstLineSaysWhoWrites) {
  SessionInfo info;
  info.origin_unix_ns = 1736412345678901235;
  info.rank = 3;
  info.host = "node7";
  info.pid = 4711;
  info.source = "live";
  info.version = "0.1.0";
  info.devices = {{DeviceId{0}, "NVIDIA H100"}};
  info.options = {{"GPUDIAG_LOG", "every"}};
  EXPECT_EQ(session_start_json(info),
            R"({"schema":"gpudiag.session/1","event":"start","rank":3,)"
            R"("origin_unix_ns":"1736412345678901235","host":"node7","pid":4711,"source":"live",)"
            R"("version":"0.1.0","torch":false,"devices":[{"device":0,"name":"NVIDIA H100"}],)"
            R"("options":{"GPUDIAG_LOG":"every"}})");
}

TEST(SessionJson, ANoteSaysWhatChangedAndWhen) {
  EXPECT_EQ(session_note_json(1, {TimePoint{99}, "callbacks_off", "callbacks off: 39"}),
            R"({"schema":"gpudiag.session/1","event":"note","rank":1,"at_ns":99,)"
            R"("code":"callbacks_off","text":"callbacks off: 39"})");
}

TEST(SessionJson, ADeviceFoundLaterHasItsOwnLine) {
  EXPECT_EQ(session_device_json(1, {DeviceId{2}, "A100"}),
            R"({"schema":"gpudiag.session/1","event":"device","rank":1,"device":2,"name":"A100"})");
}

TEST(SessionJson, TheLastLineSaysHowItEnded) {
  SessionEnd end;
  end.at = TimePoint{500};
  end.iterations = 12;
  end.own = DurationNs{7};
  end.own_drain = DurationNs{8};
  const std::string line = session_end_json(2, end);
  EXPECT_EQ(line.substr(0, line.find(R"(,"quality")")),
            R"({"schema":"gpudiag.session/1","event":"end","rank":2,"at_ns":500,"iterations":12,)"
            R"("own_ns":7,"own_drain_ns":8)");
}

}  // namespace
}  // namespace gpudiag
