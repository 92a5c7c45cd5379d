// SPDX-License-Identifier: Apache-2.0
#include "session/budget.hpp"

namespace gpudiag {

Budget::Step Budget::update(TimePoint at, DurationNs own, DurationNs drain) {
  if (window_start_ == kTimeMin) {
    window_start_ = at;
    own_before_ = own;
    drain_before_ = drain;
    return Step::kNone;
  }
  const DurationNs elapsed = at - window_start_;
  if (elapsed < kWindow) return Step::kNone;
  const double used = static_cast<double>((own - own_before_).ns) +
                      static_cast<double>((drain - drain_before_).ns) / processors_;
  last_share_ = used / static_cast<double>(elapsed.ns);
  window_start_ = at;
  own_before_ = own;
  drain_before_ = drain;
  windows_above_ = last_share_ > share_ ? windows_above_ + 1 : 0;
  if (windows_above_ < 2 || taken_ == Step::kNothingLeft) return Step::kNone;
  windows_above_ = 0;
  taken_ = static_cast<Step>(static_cast<int>(taken_) + 1);
  return taken_;
}

}  // namespace gpudiag
