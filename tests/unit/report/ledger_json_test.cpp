// SPDX-License-Identifier: Apache-2.0
#include "report/ledger_json.hpp"

#include <gtest/gtest.h>

#include "ledgers.hpp"

namespace gpudiag {
namespace {

using test::evidence;
using test::ledger;

TEST(IterationJson, HoldsEveryFieldOfTheLedgerInOneLine) {
  IterationLedger made = ledger(5, 700, {{Cause::kDataLoading, 200}, {Cause::kSync, 60}});
  made.label = "ProfilerStep#5";
  made.opened_by = MarkSource::kProfilerStep;
  made.start = TimePoint{1000};
  made.host_step = DurationNs{1010};
  made.communication = DurationNs{30};
  made.copy = DurationNs{10};
  made.wall = DurationNs{1000};
  made.replay_cost_communication = DurationNs{3};
  made.replay_cost_copy = DurationNs{2};
  made.replay_cost_all_host = DurationNs{261};
  made.communication_total = DurationNs{35};
  made.copy_total = DurationNs{15};
  made.own = DurationNs{4};
  made.launches = 8;
  made.operations = 9;
  made.evidence.push_back(evidence(Cause::kSync, SubCause::kItem, "aten::item", 60));
  made.what_if = {{{Removal::of(Cause::kDataLoading), Removal::of(Cause::kSync, SubCause::kItem)}, {250}}};
  EXPECT_EQ(
      iteration_json(made, 3),
      R"({"schema":"gpudiag.iteration/1","rank":3,"device":0,"index":5,"label":"ProfilerStep#5",)"
      R"("opened_by":"profiler_step","valid":true,"invalid_reasons":[],"invalid_counts":{},)"
      R"("partial":false,"empty":false,"phase":"train","start_ns":1000,"wall_ns":1000,)"
      R"("host_step_ns":1010,"compute_ns":700,"communication_ns":30,"copy_ns":10,"idle_ns":260,)"
      R"("idle":{"data_loading_ns":200,"communication_wait_ns":0,"launch_overhead_ns":0,)"
      R"("sync_ns":60,"allocation_ns":0,"checkpoint_ns":0,"host_ns":0,"dependency_ns":0,)"
      R"("unknown_ns":0},"replay_cost":{"data_loading_ns":200,"communication_wait_ns":0,)"
      R"("launch_overhead_ns":0,"sync_ns":60,"allocation_ns":0,"checkpoint_ns":0,"host_ns":0,)"
      R"("dependency_ns":0,"unknown_ns":0,"communication_ns":3,"copy_ns":2,"all_host_ns":261},)"
      R"("communication":{"total_ns":35,"straggler_wait_ns":null,"transfer_ns":null},)"
      R"("copy":{"total_ns":15},"own_ns":4,"launches":8,"operations":9,"opaque_graphs":0,)"
      R"("what_if":[{"without":["data_loading","sync:item"],"saved_ns":250}],)"
      R"("evidence":[{"cause":"sync","sub_cause":"item","what":"aten::item","thread":7,"count":1,)"
      R"("host_ns":60,"charged_ns":60,"longest_at_ns":0,"bytes":0}]})");
}

TEST(IterationJson, AnInvalidIterationSaysWhyAndHowOften) {
  IterationLedger bad = ledger(1, 5);
  bad.invalid[static_cast<std::size_t>(InvalidReason::kNegative)] = 2;
  const std::string line = iteration_json(bad, 0);
  EXPECT_NE(line.find(R"("valid":false,"invalid_reasons":["negative"],"invalid_counts":{"negative":2})"),
            std::string::npos)
      << line;
}

TEST(IterationJson, NamesOfAnyBytesStayOneValidLine) {
  IterationLedger made = ledger(1, 5);
  made.label = std::string("step\n\x01\"\xff", 8);
  const std::string line = iteration_json(made, 0);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find(R"("label":"step\n\u0001\")" "\uFFFD\""), std::string::npos) << line;
}

TEST(QualityJson, CountsEachDefectByName) {
  Quality quality;
  quality.records = 1000;
  quality[Defect::kOrphan] = 2;
  std::string out;
  JsonWriter json{out};
  write_quality(json, quality);
  EXPECT_EQ(out,
            R"({"grade":"fair","records":1000,"defects":{"untimed":0,"negative":0,)"
            R"("foreign_clock":0,"incomplete":0,"orphan":2,"no_operation":0,"dropped":0,"late":0,)"
            R"("duplicate":0,"broken_event":0,"repaired_text":0,"truncated":0}})");
}

TEST(SumJson, ASumSaysOfHowManyIterations) {
  LedgerSum sum;
  sum.add(ledger(1, 5));
  sum.add(ledger(2, 6));
  std::string out;
  JsonWriter json{out};
  write_sum(json, sum);
  EXPECT_EQ(out.substr(0, 49), R"({"iterations":2,"wall_ns":11,"host_step_ns":0,"co)");
}

TEST(SumJson, AnswersAreSummedByQuestion) {
  LedgerSum sum;
  for (std::uint64_t i = 0; i < 3; ++i) {
    IterationLedger made = ledger(i, 100);
    if (i > 0) made.what_if = {{{Removal::of(Cause::kHost), Removal{Removal::kCommunication}}, {30}}};
    sum.add(made);
  }
  std::string out;
  JsonWriter json{out};
  write_sum(json, sum);
  EXPECT_NE(out.find(R"("what_if":[{"without":["host","communication"],"iterations":2,"wall_ns":200,"saved_ns":60}])"),
            std::string::npos)
      << out;
}

}  // namespace
}  // namespace gpudiag
