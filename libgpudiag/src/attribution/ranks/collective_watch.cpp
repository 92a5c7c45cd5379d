// SPDX-License-Identifier: Apache-2.0
#include "attribution/ranks/collective_watch.hpp"

#include <algorithm>
#include <tuple>

namespace gpudiag {
namespace {

/// Sorted, without overlaps, joined where they touch.
void unite(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end(), [](Interval a, Interval b) { return a.start < b.start; });
  std::size_t kept = 0;
  for (const Interval& next : intervals) {
    if (kept > 0 && next.start <= intervals[kept - 1].end)
      intervals[kept - 1].end = std::max(intervals[kept - 1].end, next.end);
    else
      intervals[kept++] = next;
  }
  intervals.resize(kept);
}

/// How much of `of` lies in `united`.
DurationNs covered(const std::vector<Interval>& united, Interval of) {
  DurationNs sum;
  auto at = std::lower_bound(united.begin(), united.end(), of.start,
                             [](const Interval& busy, TimePoint t) { return busy.end <= t; });
  for (; at != united.end() && at->start < of.end; ++at) sum += at->clipped_to(of).length();
  return sum;
}

// United in place when it has grown to this, so that a long window costs little.
constexpr std::size_t kUniteAt = 1u << 16;

}  // namespace

CollectiveWatch::CollectiveWatch(const NameTable& names, const std::vector<std::string>& rules)
    : names_{names}, table_{rules} {}

const std::optional<CollectiveInfo>& CollectiveWatch::kernel_info(NameId name) {
  const std::string_view text = names_.text(name);
  Known& known = kernels_[raw(name)];
  if (known.name != text || text.empty()) known = {std::string{text}, table_.look_up(text)};
  return known.info;
}

std::uint32_t CollectiveWatch::intern(const CollectiveInfo& info) {
  const auto [found, fresh] = about_ids_.try_emplace(text_of(info), static_cast<std::uint32_t>(abouts_.size()));
  if (fresh) abouts_.push_back(info);
  return found->second;
}

// A communicator has a stream of its own in most frameworks: where nothing names the group, the
// stream tells operations of different groups apart.
std::uint32_t CollectiveWatch::about_of(const Record& record, Lane& lane) {
  const CollectiveTag tag = collective_tag_of(record.value2);
  const auto stream = lane.streams.try_emplace({record.context, record.stream},
                                               static_cast<std::uint32_t>(lane.streams.size())).first->second;
  const std::uint64_t bytes = record.kind == RecordKind::kMemcpy ? record.value : 0;
  const std::tuple key{record.name, tag.about, bytes, stream};
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  CollectiveInfo info;
  if (record.kind == RecordKind::kKernel) info = kernel_info(record.name).value_or(info);
  if (record.kind == RecordKind::kMemcpy) {
    info.kind = CollectiveKind::kSendRecv;
    info.bytes = bytes;
  }
  if (auto said = collective_of_text(names_.text(tag.about)); tag.known() && said) {
    if (said->algorithm.empty()) said->algorithm = info.algorithm;
    if (said->protocol.empty()) said->protocol = info.protocol;
    if (said->reduction.empty()) said->reduction = info.reduction;
    if (said->kind == CollectiveKind::kUnknown) said->kind = info.kind;
    info = *std::move(said);
  }
  if (info.group.empty()) info.group = "stream#" + std::to_string(stream);
  const std::uint32_t about = intern(info);
  known_.emplace(key, about);
  return about;
}

void CollectiveWatch::add(const Record& record) {
  if (record.has(record_flag::kDefective) || record.end <= record.start) return;
  const bool kernel = record.kind == RecordKind::kKernel;
  if (!kernel && record.kind != RecordKind::kGraph && record.kind != RecordKind::kMemcpy) return;
  const bool communicates = kernel ? collective_tag_of(record.value2).known() || kernel_info(record.name).has_value()
                                   : record.kind == RecordKind::kMemcpy && record.copy == CopyKind::kPeer;
  if (!communicates) {
    if (record.kind == RecordKind::kMemcpy) return;
    std::vector<Interval>& compute = lanes_[record.device].compute;
    // Most kernels follow each other on one stream.
    if (!compute.empty() && record.start >= compute.back().start && record.start <= compute.back().end) {
      compute.back().end = std::max(compute.back().end, record.end);
      return;
    }
    compute.push_back(record.interval());
    if (compute.size() % kUniteAt == 0) unite(compute);
    return;
  }
  Lane& lane = lanes_[record.device];
  CollectiveUse use;
  use.about = about_of(record, lane);
  use.sequence = collective_tag_of(record.value2).sequence;
  use.arrival = use.start = record.start;
  use.end = record.end;
  lane.waiting.push_back(use);
}

std::vector<CollectiveUse> CollectiveWatch::take(DeviceId device, Interval window) {
  const auto found = lanes_.find(device);
  if (found == lanes_.end()) return {};
  Lane& lane = found->second;
  const auto later = std::stable_partition(lane.waiting.begin(), lane.waiting.end(),
                                           [&](const CollectiveUse& use) { return use.start < window.end; });
  std::vector<CollectiveUse> taken(lane.waiting.begin(), later);
  lane.waiting.erase(lane.waiting.begin(), later);
  std::stable_sort(taken.begin(), taken.end(), [](const CollectiveUse& a, const CollectiveUse& b) {
    return std::tie(a.arrival, a.end) < std::tie(b.arrival, b.end);
  });
  unite(lane.compute);
  for (CollectiveUse& use : taken)
    use.exposed = (use.end - use.start) - covered(lane.compute, {use.start, use.end});
  trim(lane, window.end);
  return taken;
}

void CollectiveWatch::trim(Lane& lane, TimePoint until) {
  for (const CollectiveUse& use : lane.waiting) until = std::min(until, use.start);
  std::erase_if(lane.compute, [&](const Interval& busy) { return busy.end <= until; });
}

}  // namespace gpudiag
