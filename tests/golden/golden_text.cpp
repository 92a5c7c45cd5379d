// SPDX-License-Identifier: Apache-2.0
#include "golden_text.hpp"

#include <fmt/format.h>

#include <iterator>

#include "attribution/engine.hpp"

namespace gpudiag::golden {
namespace {

using Text = fmt::memory_buffer;

template <typename... Args>
void put(Text& text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

void put_causes(Text& text, std::string_view title, const CauseTimes& times) {
  put(text, "  {}:", title);
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (times[i].ns != 0) put(text, " {} {}", kCauseNames[i], times[i].ns);
  }
  put(text, "\n");
}

void put_quality(Text& text, const Quality& quality) {
  put(text, "records {}", quality.records);
  for (std::size_t i = 0; i < kDefectNames.size(); ++i) {
    if (quality.defects[i] != 0) put(text, " {} {}", kDefectNames[i], quality.defects[i]);
  }
  put(text, "\n");
}

void put_ledger(Text& text, const IterationLedger& ledger) {
  put(text, "device {} iteration {} '{}' {}{}{}\n", raw(ledger.device), ledger.index, ledger.label,
      kPhaseNames[static_cast<std::size_t>(ledger.phase)], ledger.partial ? " partial" : "",
      ledger.empty ? " empty" : "");
  for (std::size_t i = 0; i < ledger.invalid.size(); ++i) {
    if (ledger.invalid[i] != 0)
      put(text, "  invalid: {} {}\n", kInvalidReasonNames[i], ledger.invalid[i]);
  }
  put(text, "  start {} wall {} host_step {} operations {} launches {}\n", ledger.start.ns,
      ledger.wall.ns, ledger.host_step.ns, ledger.operations, ledger.launches);
  put(text, "  compute {} communication {} copy {} idle {}\n", ledger.compute.ns,
      ledger.communication.ns, ledger.copy.ns, ledger.idle.ns);
  put(text, "  in all: communication {} copy {}\n", ledger.communication_total.ns,
      ledger.copy_total.ns);
  put_causes(text, "idle", ledger.idle_by_cause);
  put_causes(text, "replay", ledger.replay_cost);
}

}  // namespace

std::vector<ProcessLedgers> analyse(const RecordedTrace& trace) {
  std::vector<ProcessLedgers> all;
  for (const RecordedProcess& process : trace.processes()) {
    if (!all.empty() && process.operations == 0) continue;
    ProcessLedgers one{process, {}, {}};
    Engine engine{{}, trace.names(), [&one](const IterationLedger& ledger) {
                    one.ledgers.push_back(ledger);
                  }};
    trace.deliver(process.id, engine);
    engine.finish();
    one.quality = engine.quality();
    for (std::size_t i = 0; i < kDefectNames.size(); ++i) {
      one.quality.defects[i] += trace.quality().defects[i];
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::string to_text(const std::vector<ProcessLedgers>& processes) {
  Text text;
  for (const ProcessLedgers& one : processes) {
    put(text, "process {}: ", one.process.pid);
    put_quality(text, one.quality);
    for (const IterationLedger& ledger : one.ledgers) put_ledger(text, ledger);
  }
  return fmt::to_string(text);
}

std::string golden_text(const std::filesystem::path& path) {
  const auto trace = read_kineto(path);
  if (!trace) return trace.error().message + "\n";
  return to_text(analyse(*trace));
}

}  // namespace gpudiag::golden
