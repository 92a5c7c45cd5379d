// SPDX-License-Identifier: Apache-2.0
// The replay with nothing removed must give the trace back. No record makes it fail, so these tests
// reach in and move the host in that world alone, as a fault of the replay's would.
#include "attribution/device_ledger.hpp"
#include "attribution/intake.hpp"
#include "attribution/replay.hpp"
#include "engine_case.hpp"

namespace gpudiag::testing {
namespace {

struct NullReplay : EngineCase {
  Intake in{options, names};
  Replay replay{options, in.store, in.ties, in.labels, in.samples};
  DeviceLedger ledger{0, device(0)};

  /// Three kernels that wait for their launches.
  void SetUp() override {
    for (int i = 0; i < 3; ++i) {
      const TimePoint at = 0_us + microseconds(100 * i);
      run_kernel(at, at + microseconds(10), at + microseconds(50));
    }
    for (const Record& record : records) in.add(record);
    in.store.prepare();
    for (const Operation& operation : in.store.operations)
      in.ties.launched(in.store.calls[operation.call].thread, operation.stream,
                       (operation.end - operation.start).ns, true);
    replay.prepare();
  }
  std::uint64_t mismatches_of_window() {
    return invalid(ledger.end_host_iteration(replay, in.ties, in.store).ledger,
                   InvalidReason::kReplayMismatch);
  }
};

TEST_F(NullReplay, GivesTheTraceBack) {
  for (Index call = 0; call < 3; ++call) replay.replay_call(call);
  EXPECT_EQ(replay.mismatches(), 0u);
  EXPECT_EQ(mismatches_of_window(), 0u);
}

TEST_F(NullReplay, OperationThatStartsAtAnotherTimeIsCounted) {
  replay.replay_call(0);
  replay.line(in.ties.line_of(0)).shift[kNullWorld] = -1;
  replay.replay_call(1);
  EXPECT_EQ(replay.mismatches(), 1u);
}

TEST_F(NullReplay, WaitThatEndsAtAnotherTimeMovesWhatIsLaunchedBehindIt) {
  replay.replay_call(0);
  replay.line(in.ties.line_of(0)).shift[kNullWorld] = 5;
  replay.replay_call(1);
  replay.replay_call(2);
  EXPECT_EQ(replay.mismatches(), 2u);
}

TEST_F(NullReplay, WindowOfAnotherLengthIsInvalid) {
  replay.replay_call(0);
  EXPECT_EQ(mismatches_of_window(), 0u);
  replay.line(in.ties.line_of(0)).shift[kNullWorld] = -1;
  replay.replay_call(1);
  EXPECT_EQ(mismatches_of_window(), 1u);
}

}  // namespace
}  // namespace gpudiag::testing
