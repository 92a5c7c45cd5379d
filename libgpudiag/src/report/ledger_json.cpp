// SPDX-License-Identifier: Apache-2.0
#include "report/ledger_json.hpp"

#include <fmt/format.h>

namespace gpudiag {
namespace {

void write_causes(JsonWriter& json, const CauseTimes& times) {
  for (std::size_t i = 0; i < kCauseCount; ++i)
    json.field(fmt::format("{}_ns", kCauseNames[i]), times[i]);
}

// What an iteration and a sum have in common.
void write_times(JsonWriter& json, const LedgerSum& sum) {
  json.field("wall_ns", sum.wall).field("host_step_ns", sum.host_step);
  json.field("compute_ns", sum.compute);
  json.field("communication_ns", sum.communication).field("copy_ns", sum.copy);
  json.field("idle_ns", sum.idle).key("idle").begin_object();
  write_causes(json, sum.idle_by_cause);
  json.end_object().key("replay_cost").begin_object();
  write_causes(json, sum.replay_cost);
  json.field("communication_ns", sum.replay_cost_communication);
  json.field("copy_ns", sum.replay_cost_copy);
  json.field("all_host_ns", sum.replay_cost_all_host).end_object();
  json.key("communication").begin_object().field("total_ns", sum.communication_total);
  json.field("straggler_wait_ns", sum.straggler_wait).field("transfer_ns", sum.transfer);
  json.end_object();
  json.key("copy").begin_object().field("total_ns", sum.copy_total).end_object();
  json.field("own_ns", sum.own).field("launches", sum.launches);
  json.field("operations", sum.operations).field("opaque_graphs", sum.opaque_graphs);
}

void write_invalid(JsonWriter& json, const IterationLedger& ledger) {
  json.field("valid", ledger.valid()).key("invalid_reasons").begin_array();
  for (std::size_t i = 0; i < ledger.invalid.size(); ++i)
    if (ledger.invalid[i] != 0) json.value(kInvalidReasonNames[i]);
  json.end_array().key("invalid_counts").begin_object();
  for (std::size_t i = 0; i < ledger.invalid.size(); ++i)
    if (ledger.invalid[i] != 0) json.field(kInvalidReasonNames[i], ledger.invalid[i]);
  json.end_object();
}

void write_evidence(JsonWriter& json, const Evidence& evidence) {
  json.begin_object().field("cause", name_of(evidence.cause));
  json.field("sub_cause", name_of(evidence.sub_cause)).field("what", evidence.what);
  json.field("thread", raw(evidence.thread)).field("count", evidence.count);
  json.field("host_ns", evidence.host).field("charged_ns", evidence.charged);
  json.field("longest_at_ns", evidence.longest_at).field("bytes", evidence.bytes).end_object();
}

void write_without(JsonWriter& json, const Question& question) {
  json.key("without").begin_array();
  for (const Removal& removal : question)
    if (removal.what != Removal::kNothing) json.value(name_of(removal));
  json.end_array();
}

void write_answers(JsonWriter& json, const IterationLedger& ledger) {
  json.key("what_if").begin_array();
  for (const WhatIf& answer : ledger.what_if) {
    json.begin_object();
    write_without(json, answer.without);
    json.field("saved_ns", answer.saved).end_object();
  }
  json.end_array();
}

void write_answers(JsonWriter& json, const LedgerSum& sum) {
  json.key("what_if").begin_array();
  for (const WhatIfSum& answer : sum.what_if) {
    json.begin_object();
    write_without(json, answer.without);
    json.field("iterations", answer.iterations).field("wall_ns", answer.wall);
    json.field("saved_ns", answer.saved).end_object();
  }
  json.end_array();
}

void write_fields(JsonWriter& json, const IterationLedger& ledger) {
  json.field("index", ledger.index).field("label", ledger.label);
  json.field("opened_by", name_of(ledger.opened_by));
  write_invalid(json, ledger);
  json.field("partial", ledger.partial).field("empty", ledger.empty);
  json.field("phase", kPhaseNames[static_cast<std::size_t>(ledger.phase)]);
  json.field("start_ns", ledger.start);
  write_times(json, sum_of(ledger));
  write_answers(json, ledger);
  json.key("evidence").begin_array();
  for (const Evidence& evidence : ledger.evidence) write_evidence(json, evidence);
  json.end_array();
}

}  // namespace

std::string iteration_json(const IterationLedger& ledger, std::uint32_t rank) {
  std::string line;
  JsonWriter json{line};
  json.begin_object().field("schema", kIterationSchema).field("rank", rank);
  json.field("device", raw(ledger.device));
  write_fields(json, ledger);
  json.end_object();
  return line;
}

void write_iteration(JsonWriter& json, const IterationLedger& ledger) {
  json.begin_object();
  write_fields(json, ledger);
  json.end_object();
}

void write_sum(JsonWriter& json, const LedgerSum& sum) {
  json.begin_object().field("iterations", sum.iterations);
  write_times(json, sum);
  write_answers(json, sum);
  json.end_object();
}

void write_quality(JsonWriter& json, const Quality& quality) {
  json.begin_object().field("grade", name_of(quality.grade())).field("records", quality.records);
  json.key("defects").begin_object();
  for (std::size_t i = 0; i < quality.defects.size(); ++i)
    json.field(kDefectNames[i], quality.defects[i]);
  json.end_object().end_object();
}

}  // namespace gpudiag
