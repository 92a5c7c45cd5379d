// SPDX-License-Identifier: Apache-2.0
#include "ranks/model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <unordered_map>

namespace ranks_model {
namespace {

using gpudiag::Cause;
using gpudiag::CollectiveInfo;
using gpudiag::CollectiveKind;
using gpudiag::CollectiveUse;
using gpudiag::DurationNs;
using gpudiag::RankIteration;
using gpudiag::RankSummary;
using gpudiag::TimePoint;

// Of one iteration, in microseconds.
constexpr double kForward = 5'000;      // of a micro-batch on a stage
constexpr double kBackward = 10'000;
constexpr double kOptimizer = 2'000;
constexpr double kTensorTransfer = 300;
constexpr double kPipeTransfer = 200;
constexpr double kDataTransfer = 6'000;
constexpr double kBucketTransfer = 1'500;
constexpr double kLoading = 500;        // what every rank needs for its batch

enum class Step : std::uint8_t { kLoad, kWork, kUse, kJoin };

/// One thing a rank does. A use begins an operation; `blocks` waits for its end there, else a later
/// kJoin does.
struct Action {
  Step step = Step::kWork;
  double work = 0;           // us
  std::uint32_t group = 0;   // of a use
  std::uint32_t about = 0;
  double transfer = 0;
  bool blocks = true;
};

struct Group {
  std::vector<std::uint32_t> ranks;
  std::string name;
};

struct Shape {
  std::uint32_t data = 1;
  std::uint32_t pipe = 1;
  std::uint32_t tensor = 1;
  std::uint32_t micro_batches = 1;
};

Shape shape_of(const Options& options) {
  switch (options.layout) {
    case Layout::kData: return {options.ranks, 1, 1, 1};
    case Layout::kTensor: return {options.ranks / 8, 1, 8, 1};
    case Layout::kPipeline: return {options.ranks / 32, 4, 8, 4};
  }
  return {};
}

class Machine {
 public:
  explicit Machine(const Options& options)
      : options_{options}, shape_{shape_of(options)}, random_{options.seed * 7919 + 13}, summaries_(options.ranks),
        lanes_(options.ranks), programs_(options.ranks) {}

  Job run() {
    choose_fault();
    set_up();
    for (std::uint32_t r = 0; r < options_.ranks; ++r) write_program(r);
    for (std::uint32_t i = 0; i < options_.iterations; ++i) run_iteration(i);
    Job job;
    job.step_ms = lanes_[0].now / 1'000 / options_.iterations;
    job.ranks = std::move(summaries_);
    job.truth = truth_;
    return job;
  }

 private:
  struct Open {  // a collective that not all have reached
    std::vector<std::uint32_t> ranks;
    std::vector<std::size_t> uses;  // of each, in its lane
  };
  struct Done {
    CollectiveUse use;
    double asked;
    double arrival;
    double end;  // negative: not yet
  };
  struct Lane {
    double now = 0;            // compute stream
    std::size_t at = 0;        // in the program
    std::size_t waits_use = 0; // of the blocking use it stands in
    bool waiting = false;
    std::vector<Done> uses;
    std::vector<std::pair<double, double>> busy;
    std::vector<std::size_t> open;  // uses without an end
    double loading = 0;
    double stalled = 0;
    double began = 0;
    double stall = 0;          // still to come
    std::size_t stall_at = 0;  // action
    std::unordered_map<std::uint32_t, std::uint32_t> order;  // uses of each group
    std::unordered_map<std::uint32_t, double> free_from;     // of each group's stream
  };

  double uniform(double low, double high) { return std::uniform_real_distribution<double>{low, high}(random_); }
  std::uint32_t any_rank() { return std::uniform_int_distribution<std::uint32_t>{0, options_.ranks - 1}(random_); }
  double noisy(double time) { return time * std::max(0.2, 1 + options_.noise * normal_(random_)); }

  std::uint32_t rank_of(std::uint32_t p, std::uint32_t d, std::uint32_t t) const {
    return (p * shape_.data + d) * shape_.tensor + t;
  }
  std::uint32_t stage_of(std::uint32_t r) const { return r / (shape_.data * shape_.tensor); }
  std::uint32_t replica_of(std::uint32_t r) const { return r / shape_.tensor % shape_.data; }
  std::uint32_t shard_of(std::uint32_t r) const { return r % shape_.tensor; }

  void choose_fault() {
    if (options_.fault == Fault::kNone) return;
    truth_.guilty = {any_rank()};
    switch (options_.fault) {
      case Fault::kSlowCompute: truth_.strength = uniform(0.15, 0.6); break;
      case Fault::kSlowData: truth_.strength = uniform(0.1, 0.5); break;
      case Fault::kHostStall: truth_.strength = uniform(0.1, 0.5); break;
      case Fault::kSlowLink: truth_.strength = uniform(1.5, 5); break;
      case Fault::kPeriodic:
        truth_.strength = uniform(0.3, 0.9);
        truth_.period = std::uniform_int_distribution<std::uint32_t>{3, 6}(random_);
        break;
      case Fault::kRotating:
        truth_.strength = uniform(0.15, 0.5);
        truth_.guilty.clear();
        while (truth_.guilty.size() < options_.iterations) {
          const std::uint32_t r = any_rank();
          if (std::find(truth_.guilty.begin(), truth_.guilty.end(), r) == truth_.guilty.end()) truth_.guilty.push_back(r);
        }
        break;
      case Fault::kNone: break;
    }
    phase_ = truth_.period > 0 ? std::uniform_int_distribution<std::uint32_t>{0, truth_.period - 1}(random_) : 0;
    // Where nothing is loaded nothing can be late: only a pipeline's first stage reads batches.
    if (options_.fault == Fault::kSlowData) truth_.guilty[0] %= shape_.data * shape_.tensor;
  }

  std::uint32_t group(const std::string& name, std::vector<std::uint32_t> ranks) {
    const auto [found, fresh] = group_ids_.try_emplace(name, static_cast<std::uint32_t>(groups_.size()));
    if (fresh) groups_.push_back({std::move(ranks), name});
    return found->second;
  }

  void set_up() {
    const std::uint32_t hosts = (options_.ranks + options_.ranks_a_host - 1) / options_.ranks_a_host;
    for (std::uint32_t h = 0; h < hosts; ++h) {
      offset_us_.push_back(uniform(-options_.clock_offset_s, options_.clock_offset_s) * 1e6);
      drift_.push_back(uniform(-options_.clock_drift_ppm, options_.clock_drift_ppm) * 1e-6);
    }
    for (std::uint32_t r = 0; r < options_.ranks; ++r) {
      auto& who = summaries_[r].who;
      who.rank = r;
      who.world_size = options_.ranks;
      who.local_rank = r % options_.ranks_a_host;
      who.host = "node" + std::to_string(r / options_.ranks_a_host);
      who.job = "made-up";
    }
  }

  std::uint32_t about(std::uint32_t rank, const CollectiveInfo& info) {
    auto& abouts = summaries_[rank].abouts;
    const auto found = std::find(abouts.begin(), abouts.end(), info);
    if (found != abouts.end()) return static_cast<std::uint32_t>(found - abouts.begin());
    abouts.push_back(info);
    return static_cast<std::uint32_t>(abouts.size() - 1);
  }

  void work(std::uint32_t rank, double time) {
    Action action;
    action.work = time;
    programs_[rank].push_back(action);
  }

  void use(std::uint32_t rank, std::uint32_t in, CollectiveKind kind, std::uint64_t bytes, double transfer, bool blocks) {
    CollectiveInfo info;
    info.kind = kind;
    info.bytes = bytes;
    info.group = groups_[in].name;
    info.group_size = static_cast<std::uint32_t>(groups_[in].ranks.size());
    Action action;
    action.step = Step::kUse;
    action.group = in;
    action.about = about(rank, info);
    action.transfer = transfer;
    action.blocks = blocks;
    programs_[rank].push_back(action);
  }

  // Pieces of work with an all-reduce of the tensor group after each.
  void layers(std::uint32_t rank, double time) {
    constexpr int kPieces = 2;
    for (int piece = 0; piece < kPieces; ++piece) {
      work(rank, time / kPieces);
      if (shape_.tensor > 1) {
        std::vector<std::uint32_t> ranks;
        for (std::uint32_t t = 0; t < shape_.tensor; ++t) ranks.push_back(rank_of(stage_of(rank), replica_of(rank), t));
        const auto in = group("tp" + std::to_string(ranks[0]), ranks);
        if (piece + 1 == kPieces) use(rank, in, CollectiveKind::kAllReduce, 50'000'000, kTensorTransfer, true);
      }
    }
  }

  void pass_on(std::uint32_t rank, int direction, bool sends, const char* what) {
    const auto other = static_cast<std::uint32_t>(static_cast<int>(stage_of(rank)) + (sends ? direction : -direction));
    const std::uint32_t peer = rank_of(other, replica_of(rank), shard_of(rank));
    const std::uint32_t from = sends ? rank : peer;
    const std::uint32_t to = sends ? peer : rank;
    const auto in = group(std::string{what} + std::to_string(from) + ">" + std::to_string(to), {from, to});
    use(rank, in, sends ? CollectiveKind::kSend : CollectiveKind::kRecv, 10'000'000, kPipeTransfer, !sends);
  }

  void forward(std::uint32_t rank) {
    const bool first = stage_of(rank) == 0;
    const bool last = stage_of(rank) + 1 == shape_.pipe;
    if (!first) pass_on(rank, 1, false, "f");
    layers(rank, kForward);
    if (!last) pass_on(rank, 1, true, "f");
  }

  void backward(std::uint32_t rank, bool final) {
    const bool first = stage_of(rank) == 0;
    const bool last = stage_of(rank) + 1 == shape_.pipe;
    if (!last) pass_on(rank, -1, false, "b");
    if (shape_.tensor == 1 && final) return buckets(rank);
    layers(rank, kBackward);
    if (!first) pass_on(rank, -1, true, "b");
  }

  // Gradients are reduced bucket by bucket beside the backward pass; the optimizer waits for the last.
  void buckets(std::uint32_t rank) {
    constexpr int kBuckets = 4;
    const auto in = data_group(rank);
    for (int b = 0; b < kBuckets; ++b) {
      work(rank, kBackward / kBuckets);
      use(rank, in, CollectiveKind::kAllReduce, b + 1 == kBuckets ? 9'000'000 : 25'000'000, kBucketTransfer, false);
    }
    programs_[rank].push_back({Step::kJoin, 0, 0, 0, 0, true});
  }

  // Sharded over the hosts where there is only data parallelism: reduced inside a host, then across.
  std::uint32_t data_group(std::uint32_t rank) {
    std::vector<std::uint32_t> ranks;
    if (shape_.tensor == 1) {
      const std::uint32_t rail = rank % options_.ranks_a_host;
      for (std::uint32_t r = rail; r < options_.ranks; r += options_.ranks_a_host) ranks.push_back(r);
      return group("rail" + std::to_string(rail), std::move(ranks));
    }
    for (std::uint32_t d = 0; d < shape_.data; ++d) ranks.push_back(rank_of(stage_of(rank), d, shard_of(rank)));
    const std::string name = "dp" + std::to_string(ranks[0]);
    return group(name, std::move(ranks));
  }

  std::uint32_t host_group(std::uint32_t rank) {
    const std::uint32_t host = rank / options_.ranks_a_host;
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t r = host * options_.ranks_a_host; r < (host + 1) * options_.ranks_a_host; ++r) ranks.push_back(r);
    return group("node" + std::to_string(host), std::move(ranks));
  }

  void write_program(std::uint32_t rank) {
    programs_[rank].push_back({Step::kLoad, stage_of(rank) == 0 ? kLoading : 0, 0, 0, 0, true});
    const std::uint32_t m = shape_.micro_batches;
    const std::uint32_t warm = std::min(m, shape_.pipe - stage_of(rank) - 1);
    if (shape_.tensor == 1) use(rank, host_group(rank), CollectiveKind::kAllGather, 80'000'000, 1'000, true);
    for (std::uint32_t k = 0; k < warm; ++k) forward(rank);
    for (std::uint32_t k = warm; k < m; ++k) {
      forward(rank);
      backward(rank, k + 1 == m);
    }
    for (std::uint32_t k = m - warm; k < m; ++k) backward(rank, k + 1 == m);
    programs_[rank].push_back({Step::kJoin, 0, 0, 0, 0, true});
    if (shape_.tensor == 1) {
      use(rank, host_group(rank), CollectiveKind::kReduceScatter, 80'000'000, 1'000, true);
    } else {
      use(rank, data_group(rank), CollectiveKind::kReduceScatter, 400'000'000, kDataTransfer, true);
      use(rank, data_group(rank), CollectiveKind::kAllGather, 400'000'000, kDataTransfer, true);
    }
    work(rank, kOptimizer);
  }

  bool is_guilty(std::uint32_t rank) const { return truth_.guilty.size() == 1 && truth_.guilty[0] == rank; }

  /// How long the fault holds `rank`'s host up in this iteration, us.
  double stall_of(std::uint32_t rank) const {
    const double step = (shape_.micro_batches + shape_.pipe - 1) * (kForward + kBackward) + kOptimizer;
    switch (options_.fault) {
      case Fault::kSlowData:
      case Fault::kHostStall: return is_guilty(rank) ? truth_.strength * step : 0;
      case Fault::kPeriodic:
        return is_guilty(rank) && iteration_ % truth_.period == phase_ ? truth_.strength * step : 0;
      case Fault::kRotating: return truth_.guilty[iteration_] == rank ? truth_.strength * step : 0;
      default: return 0;
    }
  }

  void run_iteration(std::uint32_t i) {
    iteration_ = i;
    std::vector<std::uint32_t> ready;
    for (std::uint32_t r = 0; r < options_.ranks; ++r) {
      Lane& lane = lanes_[r];
      lane.at = 0;
      lane.began = lane.now;
      lane.loading = lane.stalled = 0;
      lane.uses.clear();
      lane.busy.clear();
      // The host is held up before one of its pieces of work, or while it waits for its batch.
      lane.stall = stall_of(r);
      lane.stall_at = lane.stall > 0 && options_.fault != Fault::kSlowData
                          ? std::uniform_int_distribution<std::size_t>{1, programs_[r].size() - 3}(random_)
                          : 0;
      ready.push_back(r);
    }
    while (!ready.empty()) {
      const std::uint32_t r = ready.back();
      ready.pop_back();
      advance(r, ready);
    }
    for (std::uint32_t r = 0; r < options_.ranks; ++r) note(r);
  }

  void stall_if_due(std::uint32_t r) {
    Lane& lane = lanes_[r];
    if (lane.stall <= 0 || lane.at < lane.stall_at) return;
    (options_.fault == Fault::kSlowData ? lane.loading : lane.stalled) += lane.stall;
    lane.now += lane.stall;
    lane.stall = 0;
  }

  // Until the rank has to wait for somebody.
  void advance(std::uint32_t r, std::vector<std::uint32_t>& ready) {
    Lane& lane = lanes_[r];
    while (lane.at < programs_[r].size()) {
      const Action& action = programs_[r][lane.at];
      switch (action.step) {
        case Step::kLoad:
          lane.loading += action.work;
          lane.now += action.work;
          stall_if_due(r);
          break;
        case Step::kWork: {
          stall_if_due(r);
          double time = noisy(action.work);
          if (options_.fault == Fault::kSlowCompute && is_guilty(r)) time *= 1 + truth_.strength;
          lane.busy.emplace_back(lane.now, lane.now + time);
          lane.now += time;
          break;
        }
        case Step::kUse: {
          if (!lane.waiting) {
            arrive(r, action, ready);
            lane.waiting = true;
            if (!action.blocks) {
              lane.open.push_back(lane.uses.size() - 1);
              lane.waiting = false;
              break;
            }
            lane.waits_use = lane.uses.size() - 1;
          }
          if (lane.uses[lane.waits_use].end < 0) return;
          lane.now = std::max(lane.now, lane.uses[lane.waits_use].end);
          lane.waiting = false;
          break;
        }
        case Step::kJoin:
          for (const std::size_t use : lane.open) {
            if (lane.uses[use].end < 0) return;
            lane.now = std::max(lane.now, lane.uses[use].end);
          }
          lane.open.clear();
          break;
      }
      ++lane.at;
    }
  }

  void arrive(std::uint32_t r, const Action& action, std::vector<std::uint32_t>& ready) {
    Lane& lane = lanes_[r];
    Done done{};
    done.use.about = action.about;
    const std::uint32_t order = lane.order[action.group]++;
    if (options_.sequence_numbers) done.use.sequence = order;
    done.asked = lane.now;
    done.end = -1;
    lane.uses.push_back(done);
    const std::uint64_t key = (std::uint64_t{action.group} << 32) | order;
    Open& open = open_[key];
    open.ranks.push_back(r);
    open.uses.push_back(lane.uses.size() - 1);
    if (open.ranks.size() < groups_[action.group].ranks.size()) return;
    finish(action, open, ready);
    open_.erase(key);
  }

  // Operations of one group are done one after another, whenever they were asked for.
  void finish(const Action& action, const Open& open, std::vector<std::uint32_t>& ready) {
    double last = 0;
    bool slow = false;
    for (std::size_t k = 0; k < open.ranks.size(); ++k) {
      Lane& lane = lanes_[open.ranks[k]];
      Done& done = lane.uses[open.uses[k]];
      done.arrival = std::max(done.asked, lane.free_from[action.group]);
      last = std::max(last, done.arrival);
      slow = slow || (options_.fault == Fault::kSlowLink && is_guilty(open.ranks[k]));
    }
    const double end = last + noisy(action.transfer) * (slow ? 1 + truth_.strength : 1);
    for (std::size_t k = 0; k < open.ranks.size(); ++k) {
      Lane& lane = lanes_[open.ranks[k]];
      lane.free_from[action.group] = lane.uses[open.uses[k]].end = end + uniform(0, 2);
      ready.push_back(open.ranks[k]);
    }
  }

  void note(std::uint32_t r) {
    Lane& lane = lanes_[r];
    RankSummary& summary = summaries_[r];
    RankIteration iteration;
    iteration.index = iteration_;
    iteration.partial = iteration_ == 0;
    iteration.start = clocked(r, lane.began);
    iteration.wall = clocked(r, lane.now) - iteration.start;
    double busy = 0;
    for (const auto& [from, to] : lane.busy) busy += to - from;
    std::sort(lane.uses.begin(), lane.uses.end(), [](const Done& a, const Done& b) { return a.arrival < b.arrival; });
    iteration.first_use = static_cast<std::uint32_t>(summary.uses.size());
    iteration.use_count = static_cast<std::uint32_t>(lane.uses.size());
    for (Done& done : lane.uses) {
      double hidden = 0;
      for (const auto& [from, to] : lane.busy)
        hidden += std::max(0.0, std::min(to, done.end) - std::max(from, done.arrival));
      done.use.arrival = done.use.start = clocked(r, done.arrival);
      done.use.end = clocked(r, done.end);
      done.use.exposed = (done.use.end - done.use.arrival) - DurationNs{std::llround(hidden * 1e3)};
      summary.uses.push_back(done.use);
    }
    const double idle = lane.loading + lane.stalled;
    iteration.compute = {std::llround(busy * 1e3)};
    iteration.idle = {std::llround(idle * 1e3)};
    iteration.idle_by_cause[static_cast<std::size_t>(Cause::kDataLoading)] = {std::llround(lane.loading * 1e3)};
    iteration.idle_by_cause[static_cast<std::size_t>(Cause::kHost)] = {std::llround(lane.stalled * 1e3)};
    iteration.communication = iteration.wall - iteration.compute - iteration.idle;
    summary.iterations.push_back(iteration);
  }

  TimePoint clocked(std::uint32_t rank, double us) const {
    const std::uint32_t host = rank / options_.ranks_a_host;
    return {std::llround((us * (1 + drift_[host]) + offset_us_[host]) * 1e3)};
  }

  Options options_;
  Shape shape_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::vector<RankSummary> summaries_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<Action>> programs_;
  std::vector<Group> groups_;
  std::map<std::string, std::uint32_t> group_ids_;
  std::unordered_map<std::uint64_t, Open> open_;
  std::vector<double> offset_us_;
  std::vector<double> drift_;
  Truth truth_;
  std::uint32_t iteration_ = 0;
  std::uint32_t phase_ = 0;
};

}  // namespace

Job make_job(const Options& options) { return Machine{options}.run(); }

}  // namespace ranks_model
