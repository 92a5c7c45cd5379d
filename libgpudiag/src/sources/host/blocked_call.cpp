// SPDX-License-Identifier: Apache-2.0
#include "sources/host/blocked_call.hpp"

#include <poll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "sources/host/proc_file.hpp"

namespace gpudiag {
namespace {

enum class Waits : std::uint8_t {
  kForLock,
  kForSocket,      // the call is for sockets only
  kForFiles,       // takes a path, or a descriptor that can only be a file's
  kForDescriptor,  // the first argument says what for
  kForOutput,      // likewise, but standard output is the job's log
  kForTime,
  kForPolled,      // the first argument is an array of pollfd
  kForSelected,    // the second argument is a set of descriptors
  kSomehow,
};

struct Call {
  long number;
  Waits waits;
  std::string_view name;
};

constexpr Call kCalls[] = {
    {SYS_futex, Waits::kForLock, "futex"},
    {SYS_recvfrom, Waits::kForSocket, "recvfrom"},
    {SYS_recvmsg, Waits::kForSocket, "recvmsg"},
    {SYS_sendto, Waits::kForSocket, "sendto"},
    {SYS_sendmsg, Waits::kForSocket, "sendmsg"},
    {SYS_recvmmsg, Waits::kForSocket, "recvmmsg"},
    {SYS_sendmmsg, Waits::kForSocket, "sendmmsg"},
    {SYS_connect, Waits::kForSocket, "connect"},
    {SYS_accept, Waits::kForSocket, "accept"},
    {SYS_accept4, Waits::kForSocket, "accept"},
    {SYS_fsync, Waits::kForFiles, "fsync"},
    {SYS_fdatasync, Waits::kForFiles, "fdatasync"},
    {SYS_sync, Waits::kForFiles, "sync"},
    {SYS_syncfs, Waits::kForFiles, "syncfs"},
    {SYS_msync, Waits::kForFiles, "msync"},
    {SYS_openat, Waits::kForFiles, "open"},
    {SYS_newfstatat, Waits::kForFiles, "stat"},
    {SYS_statx, Waits::kForFiles, "stat"},
    {SYS_fstat, Waits::kForFiles, "stat"},
    {SYS_getdents64, Waits::kForFiles, "readdir"},
    {SYS_unlinkat, Waits::kForFiles, "unlink"},
    {SYS_mkdirat, Waits::kForFiles, "mkdir"},
    {SYS_ftruncate, Waits::kForFiles, "ftruncate"},
    {SYS_fallocate, Waits::kForFiles, "fallocate"},
    {SYS_read, Waits::kForDescriptor, "read"},
    {SYS_readv, Waits::kForDescriptor, "readv"},
    {SYS_pread64, Waits::kForDescriptor, "pread"},
    {SYS_preadv, Waits::kForDescriptor, "preadv"},
    {SYS_pwrite64, Waits::kForDescriptor, "pwrite"},
    {SYS_pwritev, Waits::kForDescriptor, "pwritev"},
    {SYS_sendfile, Waits::kForDescriptor, "sendfile"},
    {SYS_close, Waits::kForDescriptor, "close"},
    {SYS_write, Waits::kForOutput, "write"},
    {SYS_writev, Waits::kForOutput, "writev"},
    {SYS_nanosleep, Waits::kForTime, "nanosleep"},
    {SYS_clock_nanosleep, Waits::kForTime, "clock_nanosleep"},
    {SYS_ppoll, Waits::kForPolled, "poll"},
    {SYS_pselect6, Waits::kForSelected, "select"},
    {SYS_epoll_pwait, Waits::kSomehow, "epoll_wait"},
    {SYS_wait4, Waits::kSomehow, "wait for a child process"},
    {SYS_waitid, Waits::kSomehow, "wait for a child process"},
    {SYS_ioctl, Waits::kSomehow, "ioctl"},
    {SYS_munmap, Waits::kSomehow, "munmap"},
    {SYS_mmap, Waits::kSomehow, "mmap"},
    {SYS_madvise, Waits::kSomehow, "madvise"},
#ifdef SYS_open  // not on every architecture
    {SYS_open, Waits::kForFiles, "open"},
    {SYS_stat, Waits::kForFiles, "stat"},
    {SYS_lstat, Waits::kForFiles, "stat"},
    {SYS_unlink, Waits::kForFiles, "unlink"},
    {SYS_rename, Waits::kForFiles, "rename"},
    {SYS_poll, Waits::kForPolled, "poll"},
    {SYS_select, Waits::kForSelected, "select"},
    {SYS_epoll_wait, Waits::kSomehow, "epoll_wait"},
#endif
};

// What is waited for first says what is waited for; of a longer list only this much is copied.
constexpr std::size_t kPolledLookedAt = 16;

struct Names {
  std::string_view socket, pipe, file;
};

BlockedCall of_descriptor(Descriptor kind, std::string_view plain, const Names& names) {
  switch (kind) {
    case Descriptor::kSocket: return {HostState::kNetwork, names.socket};
    case Descriptor::kPipe: return {HostState::kPipe, names.pipe};
    case Descriptor::kFile: return {HostState::kDisk, names.file};
    case Descriptor::kUnknown: break;
  }
  return {HostState::kUnknown, plain};
}

constexpr Names kReading{"read of a socket", "read of a pipe", "read of a file"};
constexpr Names kWriting{"write to a socket", "write to a pipe", "write to a file"};
constexpr Names kPolling{"poll of a socket", "poll of a pipe", "poll of a file"};

// Of several, a socket counts before a pipe: a server's answer is waited for, the pipe is there to be
// woken by.
BlockedCall of_several(const int* descriptors, std::size_t count, std::string_view plain, const ProcessView& view) {
  Descriptor best = Descriptor::kUnknown;
  for (std::size_t i = 0; i < count; ++i) {
    const Descriptor kind = view.descriptor(descriptors[i]);
    if (kind == Descriptor::kSocket) return {HostState::kNetwork, kPolling.socket};
    if (kind == Descriptor::kPipe) best = kind;
  }
  return of_descriptor(best, plain, kPolling);
}

BlockedCall of_polled(std::uint64_t address, std::uint64_t count, std::string_view plain, const ProcessView& view) {
  std::array<pollfd, kPolledLookedAt> polled;
  const std::size_t looked_at = std::min<std::uint64_t>(count, polled.size());
  if (looked_at == 0) return {HostState::kAsleep, "poll of nothing"};
  if (!view.memory(address, polled.data(), looked_at * sizeof(pollfd))) return {HostState::kUnknown, plain};
  std::array<int, kPolledLookedAt> descriptors;
  for (std::size_t i = 0; i < looked_at; ++i) descriptors[i] = polled[i].fd;
  return of_several(descriptors.data(), looked_at, plain, view);
}

BlockedCall of_selected(std::uint64_t limit, std::uint64_t address, std::string_view plain, const ProcessView& view) {
  if (limit == 0) return {HostState::kAsleep, "select of nothing"};
  fd_set set;
  const std::size_t bits = std::min<std::uint64_t>(limit, FD_SETSIZE);
  const std::size_t bytes = (bits + 63) / 64 * 8;
  if (address == 0 || !view.memory(address, &set, bytes)) return {HostState::kUnknown, plain};
  std::array<int, kPolledLookedAt> descriptors;
  std::size_t count = 0;
  for (std::size_t i = 0; i < bits && count < descriptors.size(); ++i)
    if (FD_ISSET(static_cast<int>(i), &set)) descriptors[count++] = static_cast<int>(i);
  return of_several(descriptors.data(), count, plain, view);
}

BlockedCall of_call(const Call& call, const std::array<std::uint64_t, 3>& arguments, const ProcessView& view) {
  const int first = static_cast<int>(arguments[0]);
  switch (call.waits) {
    case Waits::kForLock: return {HostState::kLock, call.name};
    case Waits::kForSocket: return {HostState::kNetwork, call.name};
    case Waits::kForFiles: return {HostState::kDisk, call.name};
    case Waits::kForDescriptor: return of_descriptor(view.descriptor(first), call.name, kReading);
    case Waits::kForOutput:
      if (first == STDOUT_FILENO || first == STDERR_FILENO) return {HostState::kLog, "write to the log"};
      return of_descriptor(view.descriptor(first), call.name, kWriting);
    case Waits::kForTime: return {HostState::kAsleep, call.name};
    case Waits::kForPolled: return of_polled(arguments[0], arguments[1], call.name, view);
    case Waits::kForSelected: return of_selected(arguments[0], arguments[1], call.name, view);
    case Waits::kSomehow: break;
  }
  return {HostState::kUnknown, call.name};
}

// The status of a file that the network has may take for ever: what is known already will do.
Descriptor descriptor_of(std::uint32_t pid, int descriptor) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/fd/%d", pid, descriptor);
  struct statx found;
  // By number, since glibc has the function only from 2.28 on.
  if (syscall(SYS_statx, AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &found) != 0) return Descriptor::kUnknown;
  if (S_ISSOCK(found.stx_mode)) return Descriptor::kSocket;
  if (S_ISFIFO(found.stx_mode)) return Descriptor::kPipe;
  if (S_ISREG(found.stx_mode) || S_ISDIR(found.stx_mode) || S_ISBLK(found.stx_mode)) return Descriptor::kFile;
  return Descriptor::kUnknown;
}

}  // namespace

std::optional<BlockedCall> blocked_call(std::string_view text, const ProcessView& view) {
  const std::string_view word = take_word(text);
  if (word == "running") return BlockedCall{HostState::kReady, {}};
  const auto number = number_of<long>(word);
  if (!number) return std::nullopt;
  if (*number < 0) return BlockedCall{HostState::kFault, "page fault"};
  std::array<std::uint64_t, 3> arguments{};
  for (std::uint64_t& argument : arguments) argument = number_of(take_word(text)).value_or(0);
  const auto known = std::find_if(std::begin(kCalls), std::end(kCalls),
                                  [&](const Call& call) { return call.number == *number; });
  if (known == std::end(kCalls)) return BlockedCall{};
  return of_call(*known, arguments, view);
}

ProcessView view_of(std::uint32_t pid) {
  return {[pid](int descriptor) { return descriptor_of(pid, descriptor); },
          [pid](std::uint64_t address, void* into, std::size_t bytes) {
            const iovec local{into, bytes};
            const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT: an address of theirs
            return process_vm_readv(static_cast<pid_t>(pid), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
          }};
}

}  // namespace gpudiag
