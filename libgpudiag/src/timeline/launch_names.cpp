// SPDX-License-Identifier: Apache-2.0
#include "timeline/launch_names.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace gpudiag {
namespace {

// Words of names that kernels which update parameters have: PyTorch's foreach and fused forms,
// Apex, DeepSpeed and what people write themselves.
constexpr std::array<std::string_view, 19> kWords{
    "multi_tensor", "multitensor", "adam",      "sgd",       "lamb",       "lars",     "adagrad",
    "adafactor",    "rmsprop",     "optimizer", "optimiser", "momentum",   "muon",     "sophia",
    "update_param", "update_weig", "apply_grad", "weight_update", "param_update"};
// A foreach copy or fill gathers and clears, in each micro-batch too.
constexpr std::array<std::string_view, 5> kNot{"copyfunctor", "copy_functor", "foreach_copy", "zerofunctor",
                                               "fillfunctor"};

std::string in_small_letters(std::string_view name) {
  std::string small{name};
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

// A word in the middle of another ("lambda", "lambda_1") says nothing.
bool has_word(std::string_view name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    if (word != "lamb" && word != "lars") return true;
    const std::size_t end = at + word.size();
    if (end == name.size() || name[end] < 'a' || name[end] > 'z') return true;
  }
  return false;
}

}  // namespace

bool is_optimizer_name(std::string_view name) {
  const std::string small = in_small_letters(name);
  const auto in_name = [&](std::string_view word) { return has_word(small, word); };
  return std::ranges::any_of(kWords, in_name) && std::ranges::none_of(kNot, in_name);
}

LaunchNames::Entry LaunchNames::look_up(NameId id, const NameTable& names) {
  const std::string_view text = names.text(id);
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  const auto symbol = static_cast<std::uint32_t>(hash ^ (hash >> 32));
  const Entry entry{symbol == 0 ? 1 : symbol, is_optimizer_name(text)};
  if (raw(id) >= entries_.size()) entries_.resize(raw(id) + 1);
  return entries_[raw(id)] = entry;
}

}  // namespace gpudiag
