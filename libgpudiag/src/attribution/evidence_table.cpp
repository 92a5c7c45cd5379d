// SPDX-License-Identifier: Apache-2.0
#include "attribution/evidence_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace gpudiag {
namespace {

std::string_view direction_of(CopyKind copy) {
  switch (copy) {
    case CopyKind::kHostToDevice: return "to the GPU";
    case CopyKind::kDeviceToHost: return "from the GPU";
    case CopyKind::kHostToHost: return "within the host";
    default: return "between GPUs";
  }
}

std::string text_of(const EvidenceKey& key, const NameTable& names) {
  if (key.name == kOwnCode) return std::string{kOwnCodeText};
  std::string text{names.text(key.name)};
  if (key.copy != CopyKind::kUnknown)
    text = fmt::format("copy {}{} ({})", key.pageable ? "of pageable memory " : "", direction_of(key.copy), text);
  if (text.empty() && key.sub_cause != SubCause::kNone) text = name_of(key.sub_cause);
  if (text.empty()) text = name_of(key.cause);
  const auto inside = names.text(key.inside);
  return inside.empty() ? text : text + " in " + std::string(inside);
}

}  // namespace

EvidenceTable::Entry& EvidenceTable::entry(EvidenceKey key) {
  if (last_ < entries_.size() && entries_[last_].key == key) return entries_[last_];
  const auto find = [&] {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const Entry& known) { return known.key == key; });
  };
  auto found = find();
  if (found == entries_.end() && entries_.size() >= kKinds) {
    key.name = key.inside = kNoName;
    key.thread = ThreadId{};
    found = find();
  }
  if (found == entries_.end()) {
    entries_.push_back({key, 0, {}, {}, {}, {}, 0});
    found = entries_.end() - 1;
  }
  last_ = static_cast<std::size_t>(found - entries_.begin());
  return *found;
}

void EvidenceTable::add_host(const EvidenceKey& key, TimePoint start, DurationNs length,
                             std::uint64_t count) {
  Entry& kind = entry(key);
  kind.count += count;
  kind.host += length;
  if (length > kind.longest) {
    kind.longest = length;
    kind.longest_at = start;
  }
}

void EvidenceTable::add_charge(const EvidenceKey& key, DurationNs charged) {
  if (charged > DurationNs{}) entry(key).charged += charged;
}

void EvidenceTable::merge(const EvidenceTable& other) {
  for (const Entry& from : other.entries_) {
    Entry& to = entry(from.key);
    to.count += from.count;
    to.host += from.host;
    to.charged += from.charged;
    to.bytes += from.bytes;
    if (from.longest > to.longest) {
      to.longest = from.longest;
      to.longest_at = from.longest_at;
    }
  }
}

std::vector<Evidence> EvidenceTable::top(const NameTable& names) const {
  std::vector<const Entry*> order;
  for (const Entry& kind : entries_) order.push_back(&kind);
  // The text of names comes last, so that the order does not hang on how records were delivered.
  std::sort(order.begin(), order.end(), [&](const Entry* a, const Entry* b) {
    const auto rank = [](const Entry& e) {
      return std::tuple(-e.charged.ns, -e.host.ns, e.longest_at.ns, e.key.cause, e.key.sub_cause);
    };
    if (rank(*a) != rank(*b)) return rank(*a) < rank(*b);
    return std::pair(names.text(a->key.name), names.text(a->key.inside)) <
           std::pair(names.text(b->key.name), names.text(b->key.inside));
  });
  if (order.size() > kEvidenceKept) order.resize(kEvidenceKept);
  std::vector<Evidence> result;
  for (const Entry* kind : order)
    result.push_back({kind->key.cause, kind->key.sub_cause, text_of(kind->key, names),
                      kind->key.thread, kind->count, kind->host, kind->charged, kind->longest_at,
                      kind->bytes});
  return result;
}

}  // namespace gpudiag
