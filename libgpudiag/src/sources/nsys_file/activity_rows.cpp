// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/activity_rows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sources/launch_shape.hpp"
#include "sources/recorded/record_order.hpp"

namespace gpudiag::nsys_file {
namespace {

constexpr std::int64_t kNotReady = 600;  // cudaErrorNotReady: an answer, no failure

// The columns that all operations have, in this order in front of the others.
constexpr Column kStart{"start", "when an operation ran is not known"};
constexpr Column kEnd{"end", "when an operation ended is not known"};
constexpr Column kDevice{"deviceId", "which device an operation ran on is not known"};
constexpr Column kContext{"contextId"};
constexpr Column kStream{"streamId", "the order of operations is not known"};
constexpr Column kCorrelation{"correlationId", "which call launched an operation is not known"};
constexpr Column kProcess{"globalPid", "whose an operation is, is guessed from who launches on its device"};
constexpr int kOwnColumns = 7;  // where a table's own columns begin

/// Nothing where the row cannot be a record, which is counted.
std::optional<Record> operation_of(Builder& builder, const RowReader& row, RecordKind kind) {
  Record record;
  record.kind = kind;
  if (!builder.set_times(record, row.integer(0), row.integer(1))) return std::nullopt;
  record.device = id_or(row.integer(2), kNoDevice);
  record.context = id_or(row.integer(3), ContextId{});
  record.stream = id_or(row.integer(4), kNoStream);
  record.correlation = id_or(row.integer(5), kNoCorrelation);
  const auto process = builder.process_of(row.integer(6));
  record.process = process.value_or(recorded::kDeviceProcess);
  if (process) builder.set_device(*process, record.context, record.device);
  return record;
}

/// A node of a graph is told by its number, which holds the graph's in its upper half.
GraphId graph_of(std::optional<std::int64_t> node, std::optional<std::int64_t> graph) {
  if (graph.value_or(0) != 0) return GraphId{fold_id(*graph)};
  if (node.value_or(0) == 0) return GraphId{};
  const auto upper = static_cast<std::uint32_t>(static_cast<std::uint64_t>(*node) >> 32);
  return GraphId{std::max(upper, 1u)};
}

std::uint64_t bytes_of(std::optional<std::int64_t> bytes) {
  return bytes.value_or(0) > 0 ? static_cast<std::uint64_t>(*bytes) : 0;
}

std::uint64_t shape_of(const RowReader& row, int first) {
  Dimensions grid{};
  Dimensions block{};
  for (int i = 0; i < 3; ++i) {
    const auto size = row.integer(first + i);
    const auto threads = row.integer(first + 3 + i);
    if (!size || !threads) return 0;
    grid[static_cast<std::size_t>(i)] = fold_id(*size);
    block[static_cast<std::size_t>(i)] = fold_id(*threads);
  }
  return launch_shape(grid, block);
}

void read_calls_of(Builder& builder, std::string_view table) {
  RowReader rows{builder.database, builder.reading, table,
                 {{"start", "when a call was made is not known"},
                  {"end", "how long a call took is not known"},
                  {"globalTid", "which thread made a call is not known"},
                  {"correlationId", "what a call launched is not known"},
                  {"nameId", "which function was called is not known"},
                  {"returnValue"}}};
  while (rows.next()) {
    Record record;
    record.kind = RecordKind::kApiCall;
    if (!builder.set_times(record, rows.integer(0), rows.integer(1))) continue;
    const auto thread = rows.integer(2);
    const auto process = builder.process_of(thread);
    if (!process) {  // a call of nobody joins nothing
      builder.count_broken();
      continue;
    }
    const ApiName& api = builder.api_of(rows.integer(4));
    record.process = *process;
    record.thread = GlobalId{*thread}.thread();
    record.correlation = id_or(rows.integer(3), kNoCorrelation);
    record.name = api.name;
    record.api = api.traits.api;
    record.flags |= api.traits.flags;
    const std::int64_t result = rows.integer(5).value_or(0);
    if (result != 0 && result != kNotReady) record.flags |= record_flag::kFailed;
    builder.add(record);
  }
}

}  // namespace

void read_kernels(Builder& builder) {
  RowReader rows{builder.database, builder.reading, "CUPTI_ACTIVITY_KIND_KERNEL",
                 {kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess,
                  {"demangledName"}, {"shortName", "what a kernel is called may not be known"}, {"mangledName"},
                  {"gridX", "launches of one shape cannot be told from others"}, {"gridY"}, {"gridZ"},
                  {"blockX"}, {"blockY"}, {"blockZ"}, {"graphNodeId"}, {"graphId"}}};
  while (rows.next()) {
    auto record = operation_of(builder, rows, RecordKind::kKernel);
    if (!record) continue;
    record->name = builder.name_of({rows.integer(kOwnColumns), rows.integer(kOwnColumns + 1),
                                    rows.integer(kOwnColumns + 2)});
    record->value = shape_of(rows, kOwnColumns + 3);
    record->graph = graph_of(rows.integer(kOwnColumns + 9), rows.integer(kOwnColumns + 10));
    builder.add(*record);
  }
}

void read_copies(Builder& builder) {
  RowReader rows{builder.database, builder.reading, "CUPTI_ACTIVITY_KIND_MEMCPY",
                 {kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess,
                  {"bytes", "how much a copy copied is not known"},
                  {"copyKind", "where a copy went is not known"}, {"srcKind"}, {"dstKind"},
                  {"srcDeviceId"}, {"dstDeviceId"}, {"graphNodeId"}}};
  std::uint64_t unified = 0;
  while (rows.next()) {
    const auto kind = rows.integer(kOwnColumns + 1);
    const CopyOperation copy = kind ? builder.enumerations.copy(*kind) : CopyOperation{};
    if (copy.unified_memory) {
      ++unified;
      continue;
    }
    auto record = operation_of(builder, rows, RecordKind::kMemcpy);
    if (!record) continue;
    record->value = bytes_of(rows.integer(kOwnColumns));
    record->copy = copy.kind;
    const auto from = rows.integer(kOwnColumns + 4);
    const auto to = rows.integer(kOwnColumns + 5);
    if (copy.kind == CopyKind::kDeviceToDevice && from && to && *from != *to) record->copy = CopyKind::kPeer;
    for (const int memory : {kOwnColumns + 2, kOwnColumns + 3})
      if (const auto of = rows.integer(memory); of && builder.enumerations.is_pageable(*of))
        record->flags |= record_flag::kPageable;
    record->graph = graph_of(rows.integer(kOwnColumns + 6), std::nullopt);
    builder.add(*record);
  }
  if (unified > 0)
    builder.reading.unknown.push_back(fmt::format(
        "{} copies of unified memory are not in the ledger: the driver made them of its own accord", unified));
}

void read_memsets(Builder& builder) {
  RowReader rows{builder.database, builder.reading, "CUPTI_ACTIVITY_KIND_MEMSET",
                 {kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, {"bytes"}, {"graphNodeId"}}};
  while (rows.next()) {
    auto record = operation_of(builder, rows, RecordKind::kMemset);
    if (!record) continue;
    record->value = bytes_of(rows.integer(kOwnColumns));
    record->graph = graph_of(rows.integer(kOwnColumns + 1), std::nullopt);
    builder.add(*record);
  }
}

void read_graphs(Builder& builder) {
  RowReader rows{builder.database, builder.reading, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                 {kStart, kEnd, kDevice, kContext, kStream, kCorrelation, kProcess, {"graphId"}, {"graphExecId"}}};
  bool any = false;
  while (rows.next()) {
    auto record = operation_of(builder, rows, RecordKind::kGraph);
    if (!record) continue;
    const auto executable = rows.integer(kOwnColumns + 1);
    record->graph = graph_of(std::nullopt, executable.value_or(0) != 0 ? executable : rows.integer(kOwnColumns));
    if (record->graph == GraphId{}) record->graph = GraphId{1};
    builder.add(*record);
    any = true;
  }
  if (any)
    builder.reading.unknown.push_back(
        "CUDA graphs were recorded as a whole: what ran inside them is not known and counts as compute "
        "(nsys profile --cuda-graph-trace=node tells)");
}

void read_calls(Builder& builder) {
  read_calls_of(builder, "CUPTI_ACTIVITY_KIND_RUNTIME");
  read_calls_of(builder, "CUPTI_ACTIVITY_KIND_DRIVER");  // of exporters that keep them apart
}

}  // namespace gpudiag::nsys_file
