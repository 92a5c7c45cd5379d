// SPDX-License-Identifier: Apache-2.0
#include "session/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace gpudiag {
namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

struct Read {
  Settings settings;
  std::vector<std::string> complaints;
};

OptionSource source(const Variables& variables) {
  return [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

Read read(const Variables& environment, const Variables& overrides = {}) {
  Read result;
  result.settings = read_settings(overrides, source(environment), result.complaints);
  return result;
}

TEST(Options, DefaultsNeedNoVariable) {
  const Read result = read({});
  EXPECT_TRUE(result.settings.enabled);
  EXPECT_EQ(result.settings.log, LogMode::kPaced);
  EXPECT_EQ(result.settings.dir, "");
  EXPECT_FALSE(result.settings.record);
  EXPECT_EQ(result.settings.callbacks, Choice::kAuto);
  EXPECT_DOUBLE_EQ(result.settings.budget_percent, 2.0);
  EXPECT_FALSE(result.settings.rank.has_value());
  EXPECT_TRUE(result.complaints.empty());
}

TEST(Options, EnvironmentIsReadByTheNamesOfTheTable) {
  const Read result = read({{"GPUDIAG_ENABLED", "off"},
                            {"GPUDIAG_LOG", "every"},
                            {"GPUDIAG_DIR", "/runs/7"},
                            {"GPUDIAG_RECORD", "on"},
                            {"GPUDIAG_CALLBACKS", "off"},
                            {"GPUDIAG_NVTX", "off"},
                            {"GPUDIAG_NCCL", "on"},
                            {"GPUDIAG_WATCH", "off"},
                            {"GPUDIAG_PATTERN", "off"},
                            {"GPUDIAG_PEERS", "node-0:29600"},
                            {"GPUDIAG_STUCK", "2.5"},
                            {"GPUDIAG_RANGES", "load.*=data_loading;save=checkpoint"},
                            {"GPUDIAG_ITERATION", "step \\d+"},
                            {"GPUDIAG_CUPTI", "/opt/libcupti.so"},
                            {"GPUDIAG_BUDGET", "0.5"},
                            {"GPUDIAG_RANK", "12"}});
  EXPECT_FALSE(result.settings.enabled);
  EXPECT_EQ(result.settings.log, LogMode::kEvery);
  EXPECT_EQ(result.settings.dir, "/runs/7");
  EXPECT_TRUE(result.settings.record);
  EXPECT_EQ(result.settings.callbacks, Choice::kOff);
  EXPECT_FALSE(result.settings.nvtx);
  EXPECT_EQ(result.settings.nccl, Choice::kOn);
  EXPECT_FALSE(result.settings.watch);
  EXPECT_FALSE(result.settings.pattern);
  EXPECT_TRUE(result.settings.peers_wanted);
  EXPECT_EQ(result.settings.peers, "node-0:29600");
  EXPECT_EQ(result.settings.stuck_after, milliseconds(2500));
  EXPECT_EQ(result.settings.ranges, (std::vector<std::string>{"load.*=data_loading", "save=checkpoint"}));
  EXPECT_EQ(result.settings.iteration, "step \\d+");
  EXPECT_EQ(result.settings.cupti, "/opt/libcupti.so");
  EXPECT_DOUBLE_EQ(result.settings.budget_percent, 0.5);
  EXPECT_EQ(result.settings.rank, 12u);
  EXPECT_TRUE(result.complaints.empty());
  EXPECT_EQ(result.settings.given.size(), option_table().size());
}

TEST(Options, PeersAreOnOffOrAnAddress) {
  EXPECT_TRUE(read({}).settings.peers_wanted);
  EXPECT_EQ(read({}).settings.peers, "");
  EXPECT_FALSE(read({{"GPUDIAG_PEERS", "off"}}).settings.peers_wanted);
  EXPECT_EQ(read({{"GPUDIAG_PEERS", "yes"}}).complaints.size(), 1u);
  EXPECT_EQ(read({{"GPUDIAG_STUCK", "0"}}).complaints.size(), 1u);
}

TEST(Options, TheApiComesBeforeTheEnvironment) {
  const Read result = read({{"GPUDIAG_LOG", "every"}, {"GPUDIAG_RANK", "1"}}, {{"GPUDIAG_LOG", "off"}});
  EXPECT_EQ(result.settings.log, LogMode::kOff);
  EXPECT_EQ(result.settings.rank, 1u);
}

TEST(Options, LogTakesAFileName) {
  const Read result = read({{"GPUDIAG_LOG", "/var/log/ledger.txt"}});
  EXPECT_EQ(result.settings.log, LogMode::kPaced);
  EXPECT_EQ(result.settings.log_file, "/var/log/ledger.txt");
}

TEST(Options, AWrongValueIsOneMessageWithWhatIsAllowedAndTheDefaultTaken) {
  const Read result = read({{"GPUDIAG_CALLBACKS", "maybe"}});
  EXPECT_EQ(result.settings.callbacks, Choice::kAuto);
  EXPECT_THAT(result.complaints,
              ::testing::ElementsAre("GPUDIAG_CALLBACKS=maybe: not understood; allowed: auto|on|off; using auto"));
}

TEST(Options, NumbersOutOfRangeAreWrongValues) {
  const Read result = read({{"GPUDIAG_BUDGET", "200"}, {"GPUDIAG_RANK", "-1"}});
  EXPECT_DOUBLE_EQ(result.settings.budget_percent, 2.0);
  EXPECT_FALSE(result.settings.rank.has_value());
  EXPECT_THAT(result.complaints,
              ::testing::ElementsAre("GPUDIAG_BUDGET=200: not understood; allowed: a number from 0.1 to 100; using 2",
                                   "GPUDIAG_RANK=-1: not understood; allowed: a whole number from 0 on; it is ignored"));
}

TEST(Options, AValueThatWillBeRefusedIsNotSaidToBeReplaced) {
  std::vector<std::string> complaints;
  read_settings({{"GPUDIAG_BUDGET", "never"}, {"GPUDIAG_RANK", "x"}}, source({}), complaints, OnWrongValue::kRefuse);
  EXPECT_THAT(complaints,
              ::testing::ElementsAre("GPUDIAG_BUDGET=never: not understood; allowed: a number from 0.1 to 100",
                                     "GPUDIAG_RANK=x: not understood; allowed: a whole number from 0 on"));
}

TEST(Options, RecordingWithoutAFolderIsSaidAndLeftOut) {
  const Read result = read({{"GPUDIAG_RECORD", "on"}});
  EXPECT_FALSE(result.settings.record);
  EXPECT_THAT(result.complaints, ::testing::ElementsAre(::testing::HasSubstr("GPUDIAG_DIR")));
}

TEST(Options, AnEmptyVariableIsAsGoodAsNone) {
  EXPECT_TRUE(read({{"GPUDIAG_LOG", ""}, {"GPUDIAG_ENABLED", ""}}).settings.enabled);
}

/// One row of the table in docs/configuration.md.
std::string row_of(const OptionSpec& spec) {
  const auto code = [](std::string_view text) {
    std::string escaped;
    for (const char c : text) {
      if (c == '|') escaped += '\\';
      escaped += c;
    }
    return escaped.empty() ? escaped : "`" + escaped + "`";
  };
  return "| " + code(spec.name) + " | " + code(spec.values) + " | " + code(spec.default_value) + " | " +
         std::string{spec.help} + " |";
}

TEST(Options, DocumentationHoldsEveryRowOfTheTableAndNoOther) {
  std::ifstream file{GPUDIAG_DOCS "/configuration.md"};
  ASSERT_TRUE(file.is_open());
  std::vector<std::string> documented;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("| `GPUDIAG_")) documented.push_back(line);
  std::vector<std::string> expected;
  for (const OptionSpec& spec : option_table()) expected.push_back(row_of(spec));
  EXPECT_EQ(documented, expected);
}

TEST(Options, RankComesFromTheLaunchersVariables) {
  EXPECT_EQ(rank_of_launcher(source({})), 0u);
  EXPECT_EQ(rank_of_launcher(source({{"RANK", "3"}, {"SLURM_PROCID", "9"}})), 3u);
  EXPECT_EQ(rank_of_launcher(source({{"OMPI_COMM_WORLD_RANK", "4"}})), 4u);
  EXPECT_EQ(rank_of_launcher(source({{"SLURM_PROCID", "5"}})), 5u);
  EXPECT_EQ(rank_of_launcher(source({{"PMI_RANK", "6"}})), 6u);
  EXPECT_EQ(rank_of_launcher(source({{"RANK", "none"}, {"PMI_RANK", "6"}})), 6u);
}

}  // namespace
}  // namespace gpudiag
