// SPDX-License-Identifier: Apache-2.0
#include "timeline/communication_kernel.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace gpudiag {
namespace {

struct Row {
  std::string_view part;  ///< of the kernel's name
  CollectiveKind kind;    ///< kUnknown: the rest of the name tells
};

// Searched in order; the first that is found counts. NCCL from 2.19 and before, its symmetric kernels;
// RCCL uses NCCL's names or its own; MSCCL. DeepEP lives in namespace deep_ep. NVSHMEM's own kernels.
// The rest are all-reduces of inference engines (vLLM and SGLang cross_device_reduce, TensorRT-LLM,
// FlashInfer) and of PyTorch's symmetric memory.
constexpr Row kRows[] = {
    {"ncclDevKernel", CollectiveKind::kUnknown},
    {"ncclSymkDevKernel", CollectiveKind::kUnknown},
    {"ncclSymDevKernel", CollectiveKind::kUnknown},
    {"ncclKernel", CollectiveKind::kUnknown},
    {"rcclKernel", CollectiveKind::kUnknown},
    {"rcclGenericKernel", CollectiveKind::kUnknown},
    {"ncclGenericKernel", CollectiveKind::kUnknown},
    {"mscclKernel", CollectiveKind::kUnknown},
    {"mscclpp", CollectiveKind::kUnknown},
    {"deep_ep::", CollectiveKind::kAllToAll},
    {"nvshmem", CollectiveKind::kUnknown},
    {"cross_device_reduce", CollectiveKind::kAllReduce},
    {"oneShotAllReduce", CollectiveKind::kAllReduce},
    {"twoShotAllReduce", CollectiveKind::kAllReduce},
    {"one_shot_all_reduce", CollectiveKind::kAllReduce},
    {"two_shot_all_reduce", CollectiveKind::kAllReduce},
    {"all_reduce_one_shot", CollectiveKind::kAllReduce},
    {"all_reduce_two_shot", CollectiveKind::kAllReduce},
    {"multimem_all_reduce", CollectiveKind::kAllReduce},
    {"multimem_one_shot", CollectiveKind::kAllReduce},
    {"multimem_all_gather", CollectiveKind::kAllGather},
    {"AllReduceKernel", CollectiveKind::kAllReduce},
    {"allreduce_fusion_kernel", CollectiveKind::kAllReduce},
    {"moeAllToAllKernel", CollectiveKind::kAllToAll},
};

constexpr std::array<std::string_view, 6> kReductions{"PreMulSum", "Sum", "Prod", "MinMax", "Min", "Max"};
constexpr std::array<std::string_view, 7> kAlgorithms{"NVLS_TREE", "NVLS", "RING", "TREE",
                                                      "COLLNET_DIRECT", "COLLNET_CHAIN", "PAT"};
constexpr std::array<std::string_view, 3> kProtocols{"LL128", "SIMPLE", "LL"};

std::string small(std::string_view text) {
  std::string out{text};
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// `word` between underscores, or at the end, of `text`.
std::size_t find_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if (at > 0 && text[at - 1] == '_' && (end == text.size() || text[end] == '_')) return at;
  }
  return std::string_view::npos;
}

template <std::size_t N>
std::string take_known(std::string& text, const std::array<std::string_view, N>& words) {
  for (const std::string_view word : words) {
    const std::size_t at = find_word(text, word);
    if (at == std::string::npos) continue;
    text.erase(at - 1, word.size() + 1);
    return small(word);
  }
  return {};
}

/// `ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)` and the older
/// `ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, ...)`: the same words in another order, and
/// the type is what remains.
void read_words(std::string_view name, CollectiveInfo& info) {
  std::string words{name.substr(0, std::min(name.find_first_of("(<"), name.size()))};
  info.algorithm = take_known(words, kAlgorithms);
  info.protocol = take_known(words, kProtocols);
  info.reduction = take_known(words, kReductions);
  const std::size_t kind = words.find('_');
  if (kind == std::string::npos) return;
  info.kind = collective_kind_named(std::string_view{words}.substr(kind + 1));
  const std::size_t type = words.find('_', kind + 1);
  if (type == std::string::npos) return;
  const std::string datatype = datatype_named(std::string_view{words}.substr(type + 1));
  if (datatype_bytes(datatype) > 0) info.datatype = datatype;
  // NCCL moves what it does not reduce as bytes: no type of the job's.
  const bool reduces = info.kind == CollectiveKind::kAllReduce || info.kind == CollectiveKind::kReduce ||
                       info.kind == CollectiveKind::kReduceScatter;
  if (!reduces) {
    info.reduction.clear();
    info.datatype.clear();
  }
}

}  // namespace

CommunicationTable::CommunicationTable(const std::vector<std::string>& rules) {
  constexpr std::size_t kLongest = 1000;
  for (const std::string& rule : rules) {
    const auto equals = rule.rfind('=');
    const std::string kind = equals == std::string::npos ? "" : rule.substr(equals + 1);
    const auto known = std::find(kCollectiveKindNames.begin(), kCollectiveKindNames.end(), kind);
    if ((kind != "none" && known == kCollectiveKindNames.end()) || equals == 0 || equals > kLongest) {
      errors_.push_back("communication rule '" + rule.substr(0, 100) + "' is not of the form regex=KIND");
      continue;
    }
    try {
      Rule made{std::regex(rule.substr(0, equals), std::regex::ECMAScript | std::regex::icase), std::nullopt};
      if (kind != "none") made.kind = static_cast<CollectiveKind>(known - kCollectiveKindNames.begin());
      rules_.push_back(std::move(made));
    } catch (const std::regex_error&) {
      errors_.push_back("communication rule '" + rule.substr(0, 100) + "' is no regular expression");
    }
  }
}

std::optional<CollectiveInfo> CommunicationTable::look_up(std::string_view kernel) const {
  // libstdc++'s regular expressions recurse for each character.
  const std::string_view start = kernel.substr(0, 1024);
  for (const Rule& rule : rules_) {
    if (!std::regex_search(start.begin(), start.end(), rule.pattern)) continue;
    if (!rule.kind) return std::nullopt;
    CollectiveInfo info;
    info.kind = *rule.kind;
    return info;
  }
  for (const Row& row : kRows) {
    const std::size_t at = kernel.find(row.part);
    if (at == std::string_view::npos) continue;
    CollectiveInfo info;
    info.kind = row.kind;
    if (row.kind == CollectiveKind::kUnknown) read_words(kernel.substr(at), info);
    return info;
  }
  return std::nullopt;
}

}  // namespace gpudiag
