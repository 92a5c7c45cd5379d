// SPDX-License-Identifier: Apache-2.0
#include "truth.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>

#include "callbacks.hpp"
#include "faults.hpp"
#include "operation.hpp"
#include "options.hpp"
#include "thread_state.hpp"

namespace simgpu {

bool g_truth_enabled = false;

namespace {

constexpr std::size_t kWriteBytes = 1U << 16;

struct File {
  std::mutex mutex;
  fmt::memory_buffer buffer;
  int descriptor = -1;
  bool at_exit = false;  // nobody will flush later: each line goes out at once
};

// Leaked on purpose: threads may still write while the process exits.
File& file() {
  static File* const kFile = new File;
  return *kFile;
}

void write_out(File& f) {
  const char* at = f.buffer.data();
  std::size_t left = f.buffer.size();
  while (left > 0) {
    const ssize_t written = ::write(f.descriptor, at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;  // a full disk must not stop the job
    at += written;
    left -= static_cast<std::size_t>(written);
  }
  f.buffer.clear();
}

template <typename... Args>
void line(fmt::format_string<Args...> format, Args&&... args) {
  File& f = file();
  const std::lock_guard guard(f.mutex);
  if (f.descriptor < 0) return;
  fmt::format_to(fmt::appender(f.buffer), format, std::forward<Args>(args)...);
  if (f.buffer.size() >= kWriteBytes || f.at_exit) write_out(f);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + '"';
}

const char* kind_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::kernel:
      return "kernel";
    case OperationKind::memcpy:
      return "memcpy";
    case OperationKind::memset:
      return "memset";
    case OperationKind::host_function:
      return "host_function";
    case OperationKind::event_record:
      return "event_record";
    case OperationKind::event_wait:
      return "event_wait";
    case OperationKind::graph_launch:
      return "graph_launch";
    case OperationKind::marker:
      break;
  }
  return "marker";
}

const char* copy_name(CopyKind kind) {
  switch (kind) {
    case CopyKind::host_to_device:
      return "host_to_device";
    case CopyKind::device_to_host:
      return "device_to_host";
    case CopyKind::device_to_device:
      return "device_to_device";
    case CopyKind::host_to_host:
      return "host_to_host";
    case CopyKind::peer_to_peer:
      return "peer_to_peer";
    case CopyKind::unknown:
      break;
  }
  return "unknown";
}

std::string describe(const Operation& operation) {
  const OperationRecord& r = operation.record;
  std::string out =
      fmt::format(R"("id":{},"kind":"{}","device":{},"context":{},"stream":{},"correlation":{},)"
                  R"("graph":{},"node":{},"queued_ns":{},"earliest_ns":{})",
                  r.id, kind_name(r.kind), r.device_id, r.context_uid, r.stream_id,
                  r.correlation_id, r.graph_id, r.graph_node_id, operation.queued_ns,
                  operation.earliest_ns);
  if (r.kind == OperationKind::kernel) {
    out += fmt::format(R"(,"name":{})", quoted(r.name == nullptr ? "" : r.name));
  } else if (r.kind == OperationKind::memcpy) {
    out += fmt::format(R"(,"copy":"{}","bytes":{})", copy_name(r.copy_kind), r.bytes);
  } else if (r.kind == OperationKind::memset) {
    out += fmt::format(R"(,"bytes":{})", r.bytes);
  } else if (r.event_id != 0) {
    out += fmt::format(R"(,"event":{})", r.event_id);
  }
  if (!operation.edges.empty()) {
    out += fmt::format(R"(,"waits_for":[{}])", fmt::join(operation.edges, ","));
  }
  if (!operation.past_edges.empty()) {
    out += fmt::format(R"(,"follows":[{}])", fmt::join(operation.past_edges, ","));
  }
  return out;
}

std::int64_t realtime_offset_ns() {
  timespec real{};
  clock_gettime(CLOCK_REALTIME, &real);
  return std::int64_t{real.tv_sec} * 1'000'000'000 + real.tv_nsec - now_ns();
}

long thread_id() {
  return syscall(SYS_gettid);
}

void open_truth() {
  const std::string& path = options().truth_path;
  if (path.empty()) return;
  File& f = file();
  f.descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (f.descriptor < 0) {
    std::fprintf(stderr, "simgpu: SIMGPU_TRUTH='%s' cannot be opened: %s\n", path.c_str(),
                 std::strerror(errno));
    return;
  }
  g_truth_enabled = true;
  line(
      "{{\"type\":\"process\",\"format\":\"simgpu.truth/1\",\"pid\":{},\"devices\":{},"
      "\"seed\":{},\"realtime_minus_monotonic_ns\":{}}}\n",
      getpid(), options().devices, options().seed, realtime_offset_ns());
  CallbackThread::get().keep_truth();
}

}  // namespace

void start_truth() {
  static auto* const kOnce = new std::once_flag;
  std::call_once(*kOnce, open_truth);
}

void truth_operation(const Operation& operation) {
  line("{{\"type\":\"operation\",{},\"start_ns\":{},\"end_ns\":{}}}\n", describe(operation),
       operation.start_ns, operation.end_ns);
}

void truth_unfinished(const Operation& operation) {
  line("{{\"type\":\"unfinished\",{},\"started\":{}}}\n", describe(operation), operation.started);
}

void truth_wait(const char* reason, std::int64_t start_ns, std::int64_t end_ns,
                std::uint64_t for_operation) {
  const ThreadState& thread = thread_state();
  line(
      "{{\"type\":\"wait\",\"function\":\"{}\",\"correlation\":{},\"thread\":{},"
      "\"reason\":\"{}\",\"for_operation\":{},\"start_ns\":{},\"end_ns\":{}}}\n",
      thread.function, thread.correlation_id, thread_id(), reason, for_operation, start_ns, end_ns);
}

void truth_pass(const char* reason, std::int64_t time_ns, std::uint64_t for_operation) {
  const ThreadState& thread = thread_state();
  line(
      "{{\"type\":\"pass\",\"function\":\"{}\",\"correlation\":{},\"thread\":{},"
      "\"reason\":\"{}\",\"for_operation\":{},\"time_ns\":{}}}\n",
      thread.function, thread.correlation_id, thread_id(), reason, for_operation, time_ns);
}

void truth_call(std::uint32_t device, int result, std::int64_t start_ns, std::int64_t end_ns) {
  const ThreadState& thread = thread_state();
  line(
      "{{\"type\":\"call\",\"function\":\"{}\",\"correlation\":{},\"thread\":{},"
      "\"device\":{},\"result\":{},\"start_ns\":{},\"end_ns\":{}}}\n",
      thread.function, thread.correlation_id, thread_id(), device, result, start_ns, end_ns);
}

void truth_range(std::string_view name, std::int64_t start_ns, std::int64_t end_ns, long blocked) {
  line(
      "{{\"type\":\"range\",\"thread\":{},\"name\":{},\"blocked\":{},\"start_ns\":{},"
      "\"end_ns\":{}}}\n",
      thread_id(), quoted(name), blocked, start_ns, end_ns);
}

void truth_delay(const char* cause, std::int64_t start_ns, std::int64_t end_ns) {
  const ThreadState& thread = thread_state();
  line(
      "{{\"type\":\"delay\",\"function\":\"{}\",\"correlation\":{},\"thread\":{},"
      "\"cause\":\"{}\",\"start_ns\":{},\"end_ns\":{}}}\n",
      thread.function, thread.correlation_id, thread_id(), cause, start_ns, end_ns);
}

void truth_fault(const Fault& fault, std::uint64_t operation_id) {
  const ThreadState& thread = thread_state();
  line(
      "{{\"type\":\"fault\",\"rule\":{},\"function\":\"{}\",\"correlation\":{},"
      "\"operation\":{},\"time_ns\":{}}}\n",
      quoted(fault.rule()), thread.function, thread.correlation_id, operation_id, now_ns());
}

void flush_truth() {
  if (!g_truth_enabled) return;
  File& f = file();
  const std::lock_guard guard(f.mutex);
  if (f.descriptor >= 0) write_out(f);
}

void finish_truth() {
  if (!g_truth_enabled) return;
  File& f = file();
  // A signal handler may have ended the process inside line(); lose the rest rather than hang.
  const std::unique_lock guard(f.mutex, std::try_to_lock);
  if (!guard.owns_lock() || f.descriptor < 0) return;
  write_out(f);
  f.at_exit = true;
}

void abandon_truth() {
  g_truth_enabled = false;
  File& f = file();
  new (&f.mutex) std::mutex;  // another thread of the parent may have held it
  f.buffer.clear();
  f.descriptor = -1;
}

}  // namespace simgpu
