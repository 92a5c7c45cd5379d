// SPDX-License-Identifier: Apache-2.0
#include "report/rank_collector.hpp"

#include <algorithm>

#include "attribution/advice.hpp"

namespace gpudiag {
namespace {

// One iteration that is not known leaves the sum unknown, as in every other sum.
void add_wait(LedgerSum& sum, const IterationLedger& ledger) {
  if (sum.straggler_wait && ledger.straggler_wait) *sum.straggler_wait += *ledger.straggler_wait;
  else sum.straggler_wait.reset();
  if (sum.transfer && ledger.transfer) *sum.transfer += *ledger.transfer;
  else sum.transfer.reset();
}

}  // namespace

void RankCollector::add(const IterationLedger& ledger) {
  DeviceSummary& device = devices_[ledger.device];
  ++device.iterations;
  device.windows += ledger.phase == Phase::kWindow ? 1 : 0;
  if (!ledger.empty) began_ = std::min(began_, ledger.start);
  device.partial += ledger.partial ? 1 : 0;
  device.empty += ledger.empty ? 1 : 0;
  if (ledger.valid()) {
    device.all.add(ledger);
    ++valid_by_phase_[ledger.device][static_cast<std::size_t>(ledger.phase)];
  } else {
    ++device.invalid;
    ++basis_.invalid_iterations;
  }
  for (std::size_t i = 0; i < ledger.invalid.size(); ++i)
    basis_.invalid_reasons[i] += ledger.invalid[i];
  basis_.launches += ledger.launches;
  basis_.operations += ledger.operations;
  if (is_complete_training(ledger)) training_walls_[ledger.device].push_back(ledger.wall.ns);
  spool_.add(ledger);
}

void RankCollector::close() {
  for (const DeviceInfo& device : info_.devices) devices_[device.device].name = device.name;
  find_steady();
  std::map<DeviceId, EvidenceSums> all;
  std::map<DeviceId, EvidenceSums> steady;
  std::map<DeviceId, std::uint64_t> training_seen;
  basis_.steady = rests_on_steady();
  const Phase judged = judged_phase();
  std::map<DeviceId, CostScatter> scatter;
  for (const auto& [id, device] : devices_)
    scatter[id] = CostScatter{basis_.steady ? device.training - device.warm_up
                                            : valid_by_phase_[id][static_cast<std::size_t>(judged)]};
  if (waits_known_)
    for (auto& [id, device] : devices_) device.all.straggler_wait = device.all.transfer = DurationNs{};
  spool_.for_each([&](const IterationLedger& ledger) {
    DeviceSummary& device = devices_[ledger.device];
    if (waits_known_ && ledger.valid()) add_wait(device.all, ledger);
    if (ledger.valid() && ledger.phase == judged) {
      device.judged.add(ledger);
      all[ledger.device].add(ledger, began_);
      if (!basis_.steady) scatter[ledger.device].add(ledger);
    }
    if (ledger.valid())
      for (const Evidence& seen : ledger.evidence) info_.torch = info_.torch || is_name_of_torch(seen.what);
    if (!is_complete_training(ledger)) return;
    if (training_seen[ledger.device]++ < device.warm_up) return;
    device.steady.add(ledger);
    steady[ledger.device].add(ledger, began_);
    if (basis_.steady) scatter[ledger.device].add(ledger);
  });
  for (const auto& [id, of_device] : scatter) basis_.scatter.push_back(of_device);
  make_basis(all, steady);
}

Phase RankCollector::judged_phase() const {
  for (const Phase phase : {Phase::kTrain, Phase::kEvaluation, Phase::kWarmUp})
    for (const auto& [id, valid] : valid_by_phase_)
      if (valid[static_cast<std::size_t>(phase)] > 0) return phase;
  return Phase::kWindow;
}

void RankCollector::find_steady() {
  for (auto& [id, walls] : training_walls_) {
    DeviceSummary& device = devices_[id];
    device.warm_up = warm_up_length(walls);
    device.training = walls.size();
    device.longest_wall = {*std::max_element(walls.begin(), walls.end())};
    const auto middle = walls.begin() + static_cast<std::ptrdiff_t>(walls.size() / 2);
    std::nth_element(walls.begin(), middle, walls.end());
    device.median_wall = {*middle};
  }
  training_walls_.clear();
}

// One kind of sum for all devices: a mixture would compare different iterations.
bool RankCollector::rests_on_steady() const {
  bool steady = !devices_.empty();
  for (const auto& [id, device] : devices_)
    if (device.iterations > 0) steady = steady && device.training - device.warm_up >= kSteadyNeeded;
  return steady;
}

void RankCollector::make_basis(const std::map<DeviceId, EvidenceSums>& all,
                               const std::map<DeviceId, EvidenceSums>& steady) {
  basis_.rank = info_.rank;
  basis_.quality = quality_;
  basis_.finished = finished_;
  basis_.torch = info_.torch;
  for (const auto& [id, device] : devices_) {
    const LedgerSum& sum = basis_.steady ? device.steady : device.judged;
    basis_.sum.add(sum);
    basis_.iterations = std::max(basis_.iterations, sum.iterations);
  }
  for (const auto& [id, sums] : basis_.steady ? steady : all) basis_.evidence.add(sums);
}

}  // namespace gpudiag
