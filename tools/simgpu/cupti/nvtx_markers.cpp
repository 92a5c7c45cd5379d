// SPDX-License-Identifier: Apache-2.0
#include "nvtx_markers.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "../core/listener.hpp"
#include "library.hpp"

namespace simgpu::cupti {
namespace {

std::atomic<std::uint32_t> g_marker_id{0};  // relaxed: only uniqueness matters

struct OpenRanges {
  std::map<const NvtxDomain*, std::vector<std::uint32_t>> ids;
};
thread_local OpenRanges* t_open = nullptr;  // stays when the thread ends: a few bytes

void append_utf8(std::string& out, wchar_t wide) {
  const auto code = static_cast<std::uint32_t>(wide);
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((code >> shift) & 0x3fU));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0U | code >> 6U);
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0U | code >> 12U);
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xf0U | (code >> 18U & 0x7U));
    tail(12);
    tail(6);
    tail(0);
  }
}

CUpti_ActivityObjectKindId this_thread() {
  CUpti_ActivityObjectKindId id{};
  id.pt.processId = library().process_id;
  id.pt.threadId = thread_id_for_records();
  return id;
}

void record(Library& lib, CUpti_ActivityFlag flag, const NvtxDomain* domain, const char* name,
            std::uint32_t id) {
  CUpti_ActivityMarker2 marker{};
  marker.kind = CUPTI_ACTIVITY_KIND_MARKER;
  marker.flags = flag;
  marker.timestamp = lib.clock.host_timestamp(now_ns());
  marker.id = id;
  marker.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
  marker.objectId = this_thread();
  marker.name = name;
  marker.domain = domain != nullptr ? domain->name : nullptr;
  lib.store.append(marker, name);
}

void set_payload(CUpti_ActivityMarkerData2& data, const nvtxEventAttributes_t& attributes) {
  const auto& payload = attributes.payload;
  switch (attributes.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      data.payloadKind = CUPTI_METRIC_VALUE_KIND_UINT64;
      data.payload.metricValueUint64 = payload.ullValue;
      break;
    case NVTX_PAYLOAD_TYPE_INT64:
      data.payloadKind = CUPTI_METRIC_VALUE_KIND_INT64;
      data.payload.metricValueInt64 = payload.llValue;
      break;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      data.payloadKind = CUPTI_METRIC_VALUE_KIND_DOUBLE;
      data.payload.metricValueDouble = payload.dValue;
      break;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      data.payloadKind = CUPTI_METRIC_VALUE_KIND_UINT64;
      data.payload.metricValueUint64 = payload.uiValue;
      break;
    case NVTX_PAYLOAD_TYPE_INT32:
      data.payloadKind = CUPTI_METRIC_VALUE_KIND_INT64;
      data.payload.metricValueInt64 = payload.iValue;
      break;
    case NVTX_PAYLOAD_TYPE_FLOAT:
      data.payloadKind = CUPTI_METRIC_VALUE_KIND_DOUBLE;
      data.payload.metricValueDouble = static_cast<double>(payload.fValue);
      break;
    default:
      break;
  }
}

void record_data(Library& lib, const Marker& marker, std::uint32_t id) {
  if (marker.attributes == nullptr || !lib.kinds.enabled(CUPTI_ACTIVITY_KIND_MARKER_DATA, 0)) {
    return;
  }
  CUpti_ActivityMarkerData2 data{};
  data.kind = CUPTI_ACTIVITY_KIND_MARKER_DATA;
  const bool coloured = marker.attributes->colorType == NVTX_COLOR_ARGB;
  data.flags =
      coloured ? CUPTI_ACTIVITY_FLAG_MARKER_COLOR_ARGB : CUPTI_ACTIVITY_FLAG_MARKER_COLOR_NONE;
  data.color = coloured ? marker.attributes->color : 0;
  data.id = id;
  data.category = marker.attributes->category;
  data.cuptiDomainId = marker.domain != nullptr ? marker.domain->id : 0;
  set_payload(data, *marker.attributes);
  lib.store.append(data, marker.name);
}

void record_with_data(const Marker& marker, CUpti_ActivityFlag flag, std::uint32_t id) {
  Library& lib = library();
  if (lib.kinds.enabled(CUPTI_ACTIVITY_KIND_MARKER, 0)) {
    record(lib, flag, marker.domain, marker.name, id);
    record_data(lib, marker, id);
  }
}

}  // namespace

const char* intern(const char* text) {
  if (text == nullptr) {
    return nullptr;
  }
  static auto* const mutex = new std::mutex;
  static auto* const texts = new std::unordered_set<std::string>;
  const std::lock_guard lock(*mutex);
  return texts->emplace(text).first->c_str();
}

const char* intern(const wchar_t* text) {
  if (text == nullptr) {
    return nullptr;
  }
  std::string utf8;
  for (; *text != L'\0'; ++text) {
    append_utf8(utf8, *text);
  }
  return intern(utf8.c_str());
}

Marker describe(const NvtxDomain* domain, const nvtxEventAttributes_t* attributes) {
  Marker marker{domain, nullptr, attributes};
  if (attributes == nullptr) {
    return marker;
  }
  switch (attributes->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      marker.name = intern(attributes->message.ascii);
      break;
    case NVTX_MESSAGE_TYPE_UNICODE:
      marker.name = intern(attributes->message.unicode);
      break;
    case NVTX_MESSAGE_TYPE_REGISTERED:
      if (attributes->message.registered != nullptr) {
        marker.name = reinterpret_cast<const NvtxString*>(attributes->message.registered)->text;
      }
      break;
    default:
      break;
  }
  return marker;
}

std::uint32_t next_marker_id() { return g_marker_id.fetch_add(1, std::memory_order_relaxed) + 1; }

void record_mark(const Marker& marker) {
  record_with_data(marker, CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, next_marker_id());
}

void record_range_start(const Marker& marker, std::uint32_t id) {
  record_with_data(marker, CUPTI_ACTIVITY_FLAG_MARKER_START, id);
}

void record_range_end(const NvtxDomain* domain, std::uint32_t id) {
  Library& lib = library();
  if (lib.kinds.enabled(CUPTI_ACTIVITY_KIND_MARKER, 0)) {
    record(lib, CUPTI_ACTIVITY_FLAG_MARKER_END, domain, nullptr, id);
  }
}

int push_range(const Marker& marker) {
  if (t_open == nullptr) {
    t_open = new OpenRanges;
  }
  auto& ids = t_open->ids[marker.domain];
  ids.push_back(next_marker_id());
  record_range_start(marker, ids.back());
  return static_cast<int>(ids.size()) - 1;
}

int pop_range(const NvtxDomain* domain) {
  if (t_open == nullptr || t_open->ids[domain].empty()) {
    return -1;
  }
  auto& ids = t_open->ids[domain];
  record_range_end(domain, ids.back());
  ids.pop_back();
  return static_cast<int>(ids.size());
}

void record_name(CUpti_ActivityObjectKind kind, CUpti_ActivityObjectKindId id, const char* name) {
  Library& lib = library();
  if (!lib.kinds.enabled(CUPTI_ACTIVITY_KIND_NAME, 0)) {
    return;
  }
  CUpti_ActivityName named{};
  named.kind = CUPTI_ACTIVITY_KIND_NAME;
  named.objectKind = kind;
  named.objectId = id;
  named.name = name;
  lib.store.append(named, name);
}

}  // namespace simgpu::cupti
