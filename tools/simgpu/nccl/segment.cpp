// SPDX-License-Identifier: Apache-2.0
#include "nccl/segment.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <ctime>

namespace simgpu::nccl {
namespace {

constexpr const char* kPrefix = "simgpu-nccl-";
constexpr long kSleepNs = 50'000'000;

}  // namespace

struct alignas(64) Segment::Header {
  std::atomic<std::uint32_t> attached;
  std::atomic<std::uint32_t> changes;  // a futex
};

Segment::Segment(void* memory, std::size_t bytes, std::uint32_t ranks)
    : header_(static_cast<Header*>(memory)),
      parts_(reinterpret_cast<RankPart*>(header_ + 1)),
      pairs_(reinterpret_cast<PairPart*>(parts_ + ranks)),
      bytes_(bytes),
      ranks_(ranks) {}

Segment::~Segment() {
  munmap(header_, bytes_);
}

// Fresh memory is zero, which is where all counters begin, so it does not matter who comes first.
Segment* Segment::attach(const std::string& name, std::uint32_t ranks, std::uint32_t rank) {
  const std::size_t bytes =
      sizeof(Header) + ranks * sizeof(RankPart) + std::size_t{ranks} * ranks * sizeof(PairPart);
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return nullptr;
  void* memory = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  }
  close(file);
  if (memory == MAP_FAILED) return nullptr;
  auto* segment = new Segment(memory, bytes, ranks);
  if (segment->rank(rank).present.exchange(1) != 0) {
    delete segment;
    return nullptr;
  }
  if (segment->header_->attached.fetch_add(1) + 1 == ranks) shm_unlink(name.c_str());
  segment->wake();
  return segment;
}

bool Segment::complete() const {
  return header_->attached.load(std::memory_order_acquire) >= ranks_;
}

std::uint32_t Segment::ticket() const {
  return header_->changes.load(std::memory_order_acquire);
}

void Segment::sleep(std::uint32_t ticket) const {
  const timespec limit{0, kSleepNs};
  syscall(SYS_futex, &header_->changes, FUTEX_WAIT, ticket, &limit, nullptr, 0);
}

void Segment::wake() {
  header_->changes.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &header_->changes, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

std::string segment_name(std::int32_t owner, std::uint64_t token) {
  return fmt::format("/{}{}-{:016x}", kPrefix, owner, token);
}

void remove_orphans() {
  DIR* folder = opendir("/dev/shm");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    int owner = 0;
    unsigned long long token = 0;
    if (std::sscanf(entry->d_name, "simgpu-nccl-%d-%16llx", &owner, &token) != 2) continue;
    if (kill(owner, 0) != 0 && errno == ESRCH) shm_unlink(entry->d_name);
  }
  closedir(folder);
}

}  // namespace simgpu::nccl
