// SPDX-License-Identifier: Apache-2.0
#include "session/peers/peer_memory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "session/peers/peer_state.hpp"

namespace gpudiag {
namespace {

constexpr std::uint32_t kMagic = 0x67706d31;
constexpr std::size_t kSlotBytes = 1u << 16;
constexpr std::size_t kWords = (kSlotBytes - 64) / sizeof(std::uint64_t);
static_assert(kPeerBytes + 64 < kSlotBytes);
// Of a reader beside a writer that is always busy: it comes again in a second.
constexpr int kAttempts = 16;

bool alive(std::int32_t pid) { return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM); }

std::uint64_t hash(std::string_view text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return value;
}

std::string prefix() { return fmt::format("gpudiag-peers-{}-", geteuid()); }

}  // namespace

// Slots have pages only once they are taken: present ranks are listed, so that nobody touches the rest.
struct PeerMemory::Header {
  std::atomic<std::uint32_t> magic;
  std::atomic<std::uint32_t> ranks;
  std::atomic<std::uint32_t> count;
  std::atomic<std::uint32_t> present[kLocalRanks];  // plus one; 0: not written yet
};

// A seqlock: `version` is odd while the owner writes. Words are atomic so that reading beside a writer is
// no race; what was read is thrown away then.
struct PeerMemory::Slot {
  std::atomic<std::uint64_t> version;
  std::atomic<std::int32_t> owner;
  std::atomic<std::uint32_t> size;
  std::atomic<std::uint64_t> words[kWords];
};

std::string peer_memory_name(std::string_view key) { return fmt::format("/{}{:016x}", prefix(), hash(key)); }

PeerMemory::PeerMemory(std::string name, void* memory, std::uint32_t ranks, std::uint32_t rank)
    : name_{std::move(name)}, memory_{memory}, ranks_{ranks}, rank_{rank} {}

std::unique_ptr<PeerMemory> PeerMemory::open(const std::string& name, std::uint32_t ranks, std::uint32_t rank,
                                             std::string& error) {
  static_assert(sizeof(Slot) <= kSlotBytes && sizeof(Header) <= kSlotBytes);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  if (rank >= ranks) {
    error = fmt::format("rank {} of a job of {}", rank, ranks);
    return nullptr;
  }
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat about {};
  const std::size_t bytes = kSlotBytes * (std::size_t{ranks} + 1);
  const auto size = static_cast<off_t>(bytes);
  const auto step = static_cast<off_t>(kSlotBytes);
  bool good = file >= 0 && fstat(file, &about) == 0 && about.st_uid == geteuid() &&
              (about.st_size >= size || ftruncate(file, size) == 0);
  // A page that cannot be had where it is touched would end the job.
  for (const off_t at : {off_t{0}, step * (static_cast<off_t>(rank) + 1)}) {
    const int failed = good ? posix_fallocate(file, at, step) : 0;
    if (failed != 0) good = false, errno = failed;
  }
  void* memory = good ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (memory == MAP_FAILED) error = std::generic_category().message(errno);
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) return nullptr;
  std::unique_ptr<PeerMemory> made{new PeerMemory{name, memory, ranks, rank}};
  Header& header = made->header();
  std::uint32_t magic = 0;
  std::uint32_t before = 0;
  header.magic.compare_exchange_strong(magic, kMagic);
  header.ranks.compare_exchange_strong(before, ranks);
  if ((magic != 0 && magic != kMagic) || (before != 0 && before != ranks)) {
    error = "made by another version, or for another number of ranks";
  } else if (!made->take()) {
    error = fmt::format("another process of this job says that it is rank {}", rank);
  } else {
    return made;
  }
  munmap(std::exchange(made->memory_, nullptr), bytes);
  return nullptr;
}

PeerMemory::~PeerMemory() {
  if (memory_ == nullptr) return;
  slot(rank_).owner.store(0, std::memory_order_release);
  const std::vector<std::uint32_t> ranks = present();
  if (std::none_of(ranks.begin(), ranks.end(), [this](std::uint32_t r) { return lives(r); })) shm_unlink(name_.c_str());
  munmap(memory_, kSlotBytes * (std::size_t{ranks_} + 1));
}

PeerMemory::Header& PeerMemory::header() const { return *static_cast<Header*>(memory_); }

PeerMemory::Slot& PeerMemory::slot(std::uint32_t rank) const {
  return *reinterpret_cast<Slot*>(static_cast<std::byte*>(memory_) + kSlotBytes * (std::size_t{rank} + 1));
}

std::vector<std::uint32_t> PeerMemory::present() const {
  std::vector<std::uint32_t> ranks;
  const std::uint32_t count = std::min(header().count.load(std::memory_order_acquire), kLocalRanks);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t rank = header().present[i].load(std::memory_order_acquire);
    if (rank != 0 && rank <= ranks_) ranks.push_back(rank - 1);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

bool PeerMemory::lives(std::uint32_t rank) const { return alive(slot(rank).owner.load(std::memory_order_acquire)); }

bool PeerMemory::take() {
  Slot& own = slot(rank_);
  std::int32_t before = own.owner.load();
  if (before != getpid() && alive(before)) return false;
  if (!own.owner.compare_exchange_strong(before, getpid())) return false;
  // Whoever had it may have died while writing.
  if (const std::uint64_t version = own.version.load(); version % 2 != 0) own.version.store(version + 1);
  const std::vector<std::uint32_t> ranks = present();
  if (std::find(ranks.begin(), ranks.end(), rank_) != ranks.end()) return true;
  const std::uint32_t at = header().count.fetch_add(1);
  if (at >= kLocalRanks) return false;
  header().present[at].store(rank_ + 1, std::memory_order_release);
  return true;
}

void PeerMemory::write(std::string_view bytes) {
  if (bytes.size() > kWords * sizeof(std::uint64_t)) return;
  Slot& to = slot(rank_);
  const std::uint64_t version = to.version.load(std::memory_order_relaxed);
  to.version.store(version + 1, std::memory_order_relaxed);
  // release, of each word: whoever sees new contents sees the odd version, or a later one.
  to.size.store(static_cast<std::uint32_t>(bytes.size()), std::memory_order_release);
  for (std::size_t w = 0; w * sizeof(std::uint64_t) < bytes.size(); ++w) {
    std::uint64_t word = 0;
    const std::string_view part = bytes.substr(w * sizeof word, sizeof word);
    std::memcpy(&word, part.data(), part.size());
    to.words[w].store(word, std::memory_order_release);
  }
  to.version.store(version + 2, std::memory_order_release);
}

std::optional<std::string> PeerMemory::read(std::uint32_t rank) const {
  if (rank >= ranks_) return std::nullopt;
  const Slot& from = slot(rank);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint64_t version = from.version.load(std::memory_order_acquire);
    if (version % 2 != 0) continue;
    const std::size_t size = std::min<std::size_t>(from.size.load(std::memory_order_acquire), kWords * 8);
    std::string bytes(size, '\0');
    for (std::size_t w = 0; w * 8 < size; ++w) {
      const std::uint64_t word = from.words[w].load(std::memory_order_acquire);  // before the version again
      std::memcpy(bytes.data() + w * 8, &word, std::min<std::size_t>(8, size - w * 8));
    }
    if (from.version.load(std::memory_order_relaxed) == version && version != 0) return bytes;
  }
  return std::nullopt;
}

void PeerMemory::remove_orphans() {
  DIR* folder = opendir("/dev/shm");
  if (folder == nullptr) return;
  const std::string wanted = prefix();
  while (const dirent* entry = readdir(folder)) {
    const std::string name = entry->d_name;
    if (!name.starts_with(wanted)) continue;
    const int file = shm_open(("/" + name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) continue;
    struct stat about {};
    bool used = fstat(file, &about) != 0 || about.st_uid != geteuid();
    const auto bytes = static_cast<std::size_t>(about.st_size);
    // A file that has just been made may not have its slots taken yet.
    used = used || time(nullptr) - about.st_ctime < 60;
    void* memory = used || bytes < kSlotBytes ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) continue;
    {
      PeerMemory other{name, memory, static_cast<std::uint32_t>(bytes / kSlotBytes - 1), 0};
      for (const std::uint32_t rank : other.present()) used = used || other.lives(rank);
      other.memory_ = nullptr;
    }
    munmap(memory, bytes);
    if (!used) shm_unlink(("/" + name).c_str());
  }
  closedir(folder);
}

}  // namespace gpudiag
