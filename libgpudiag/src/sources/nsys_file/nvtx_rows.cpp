// SPDX-License-Identifier: Apache-2.0
#include "sources/nsys_file/nvtx_rows.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "sources/text.hpp"

namespace gpudiag::nsys_file {
namespace {

constexpr std::size_t kLongestName = 4096;  // bytes

enum ColumnAt { kStart, kEnd, kType, kText, kTextId, kThread, kJson, kJsonId, kBinary };

struct RangeName {
  NameId id = kNoName;
  RangeSource source = RangeSource::kNvtx;
};

class NvtxReader {
 public:
  explicit NvtxReader(Builder& builder) : builder_{builder}, schemas_{builder.database, builder.reading} {}

  std::vector<NcclCall> read() {
    RowReader rows{builder_.database, builder_.reading, "NVTX_EVENTS",
                   {{"start"}, {"end", "how long ranges are is not known"}, {"eventType"}, {"text"}, {"textId"},
                    {"globalTid", "which thread a range is of is not known"},
                    {"jsonText"}, {"jsonTextId"}, {"binaryData"}}};
    while (rows.next()) add(rows);
    // Without a payload they say no more than the kernels' names do.
    if (std::ranges::all_of(calls_, [](const NcclCall& call) { return call.payload.empty(); })) calls_.clear();
    return std::move(calls_);
  }

 private:
  void add(const RowReader& row) {
    const auto type = row.integer(kType);
    const NvtxKind kind = type ? builder_.enumerations.nvtx(*type) : NvtxKind::kRange;
    if (kind == NvtxKind::kOther) return;
    Record record;
    record.kind = RecordKind::kRange;
    // Of a mark the end is no part.
    const auto end = kind == NvtxKind::kMark ? row.integer(kStart) : row.integer(kEnd);
    if (!builder_.set_times(record, row.integer(kStart), end)) return;
    const auto thread = row.integer(kThread);
    const auto process = builder_.process_of(thread);
    if (!process) {
      builder_.count_broken();
      return;
    }
    const RangeName name = name_of(row);
    record.process = *process;
    record.thread = GlobalId{*thread}.thread();
    record.name = name.id;
    record.range = name.source;
    builder_.add(record);
    const std::string_view text = builder_.contents.names.text(name.id);
    if (text.starts_with("nccl"))
      calls_.push_back({record.process, record.thread, record.start, record.end, std::string{text}, payload_of(row)});
  }

  RangeName name_of(const RowReader& row) {
    if (!row.is_null(kText)) return named(row.bytes(kText));
    const auto id = row.integer(kTextId);
    if (!id) return {};  // a range may have no name
    if (const auto known = by_id_.find(*id); known != by_id_.end()) return known->second;
    const auto text = builder_.strings.text(*id);
    if (!text) {
      ++builder_.contents.quality[Defect::kRepairedText];
      return {};
    }
    return by_id_.emplace(*id, named(*text)).first->second;
  }

  RangeName named(std::string_view text) {
    text = text.substr(0, kLongestName);
    const std::string_view name = torch_operator(text);
    RangeName result;
    if (name.size() != text.size()) {
      builder_.contents.info.torch = true;
      // Its record_function() ranges come among them; torch's own bear a '#', no operator does.
      result.source = name.find('#') == name.npos ? RangeSource::kOperator : RangeSource::kAnnotation;
    }
    result.id = intern_clean(builder_.contents.names, name, builder_.contents.quality);
    return result;
  }

  NcclPayload payload_of(const RowReader& row) {
    if (const std::string_view json = row.bytes(kJson); !json.empty()) return payload_of_json(json);
    if (const auto id = row.integer(kJsonId))
      if (const auto json = builder_.strings.text(*id)) return payload_of_json(*json);
    return schemas_.decode(row.bytes(kBinary));
  }

  Builder& builder_;
  PayloadSchemas schemas_;
  std::unordered_map<std::int64_t, RangeName> by_id_;
  std::vector<NcclCall> calls_;
};

}  // namespace

std::vector<NcclCall> read_nvtx(Builder& builder) {
  return NvtxReader{builder}.read();
}

std::string_view torch_operator(std::string_view text) {
  std::size_t end = text.npos;
  for (const std::string_view tail : {", seq = ", ", op_id = "}) end = std::min(end, text.find(tail));
  return text.substr(0, end);
}

}  // namespace gpudiag::nsys_file
