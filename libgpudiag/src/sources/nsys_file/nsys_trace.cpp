// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/nsys_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "sources/nsys_file/activity_rows.hpp"
#include "sources/nsys_file/collectives.hpp"
#include "sources/nsys_file/event_rows.hpp"
#include "sources/nsys_file/nvtx_rows.hpp"
#include "sources/nsys_file/trace_facts.hpp"
#include "sources/nsys_file/unfinished_launches.hpp"

namespace gpudiag {

using namespace nsys_file;

namespace {

constexpr std::uint64_t kBytesOfARow = 4;  // at the least, with its place in the page
constexpr std::uint64_t kRowsAStep = 10'000;

/// The tables with as many rows as there are events.
constexpr auto kLongTables = std::to_array<std::string_view>(
    {"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER",
     "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
     "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "NVTX_EVENTS"});

/// Tells how far the rows are, as a share of the file's bytes.
std::function<void()> progress_over(Database& database, const Reading& reading, std::uint64_t file_bytes,
                                    const ReadOptions& options) {
  if (!options.on_progress) return {};
  std::uint64_t all = 1;
  for (const std::string_view table : kLongTables) all += database.rows_about(table);
  return [&reading, &options, all, file_bytes] {
    if (reading.rows % kRowsAStep != 0) return;
    const double share = std::min(1.0, static_cast<double>(reading.rows) / static_cast<double>(all));
    options.on_progress(static_cast<std::uint64_t>(share * static_cast<double>(file_bytes)), file_bytes);
  };
}

std::vector<NcclCall> read_tables(Builder& builder) {
  CallIndex calls;
  EventRows events;
  read_calls(builder);
  read_kernels(builder);
  read_copies(builder);
  read_memsets(builder);
  read_graphs(builder);
  read_contexts(builder);
  events.read(builder, calls);
  read_syncs(builder, events);
  read_overhead(builder);
  std::vector<NcclCall> nccl = read_nvtx(builder);
  want_launches(builder, nccl, calls);
  calls.find_in(builder.contents.records);
  events.add_to(builder, calls);
  describe_collectives(builder, nccl, calls);
  return nccl;
}

/// Processes with operations first, by their lowest device: so ranks are mostly numbered on a machine.
void order_processes(recorded::Contents& contents) {
  std::map<ProcessId, std::uint32_t> lowest;
  contents.records.for_each([&](const Record& record) {
    if (!record.is_operation()) return;
    const auto [found, added] = lowest.try_emplace(record.process, raw(record.device));
    if (!added) found->second = std::min(found->second, raw(record.device));
  });
  std::ranges::stable_sort(contents.processes, {}, [&](const RecordedProcess& process) {
    const auto device = lowest.find(process.id);
    const std::uint64_t place =
        device == lowest.end() ? std::numeric_limits<std::uint64_t>::max() : device->second;
    return std::tuple{place, place == std::numeric_limits<std::uint64_t>::max() ? 0 : process.pid};
  });
}

void set_ranks(recorded::Contents& contents, const std::vector<NcclCall>& nccl) {
  const auto ranks = ranks_of(nccl);
  for (RecordedProcess& process : contents.processes) {
    const auto found = ranks.find(raw(process.id));
    if (found == ranks.end()) continue;
    process.rank = found->second.rank;
    contents.info.world_size = std::max(contents.info.world_size.value_or(0), found->second.world_size);
    contents.info.backend = "nccl";
  }
}

}  // namespace

Result<RecordedTrace> read_nsys(const std::filesystem::path& path, const ReadOptions& options) {
  auto database = Database::open(path);
  if (!database) return database.error();
  if (!is_nsys_export(*database))
    return Error{"is a database, but no export of Nsight Systems: it has none of its tables"};
  auto contents = std::make_unique<recorded::Contents>();
  std::error_code ignored;
  const auto file_bytes = std::filesystem::file_size(path, ignored);
  contents->info.file_bytes = ignored ? 0 : file_bytes;

  Reading reading{contents->quality, contents->info.unknown,
                  std::max<std::uint64_t>(contents->info.file_bytes / kBytesOfARow, 64), {}};
  reading.cut = database->is_cut();
  reading.on_row = progress_over(*database, reading, contents->info.file_bytes, options);
  Builder builder{*database, reading, *contents};
  const std::vector<NcclCall> nccl = read_tables(builder);
  read_facts(builder);
  const std::int64_t zero = unix_time_of_zero(builder);
  contents->info.events = reading.rows;
  contents->quality[Defect::kTruncated] = reading.cut ? 1 : 0;
  contents->processes = recorded::assign_processes(contents->records, builder.pids());
  order_processes(*contents);
  if (const std::uint64_t unfinished = settle_unfinished_launches(contents->records); unfinished > 0)
    contents->info.unknown.push_back(fmt::format(
        "the recording ended before the work of the last {} launches had run: the ledger ends there", unfinished));
  set_ranks(*contents, nccl);
  contents->put_in_order(zero);
  if (options.on_progress) options.on_progress(contents->info.file_bytes, contents->info.file_bytes);
  return RecordedTrace{std::move(contents)};
}

}  // namespace gpudiag
