// SPDX-License-Identifier: Apache-2.0
#include "input_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <string_view>
#include <tuple>

namespace gpudiag::tool {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kRecordingPreamble = "gpudiag.records/1\n";

bool begins_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// What a folder is searched for; a file that the user names may have any name.
bool has_known_name(const fs::path& path) {
  const std::string name = path.filename().string();
  constexpr std::array<std::string_view, 6> kEnds{".json", ".json.gz", ".jsonl", ".gpudiag", ".sqlite", ".ranks"};
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [&](std::string_view end) { return ends_with(name, end); });
}

// Their format is not public, so their names must do.
bool is_nsys_report(const fs::path& path) {
  const std::string end = path.extension().string();
  return end == ".nsys-rep" || end == ".qdrep" || end == ".qdstrm";
}

std::string how_to_export(const fs::path& report) {
  return fmt::format("only its own tools read {}; export it: nsys export --type sqlite {}",
                     report.filename().string(), report.string());
}

Result<InputKind> kind_of_text(std::string_view text) {
  const std::size_t start = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start == std::string_view::npos) return Error{"holds only white space"};
  text.remove_prefix(start);
  if (begins_with(text, R"({"schema":"gpudiag.session/)") ||
      begins_with(text, R"({"schema":"gpudiag.iteration/)"))
    return InputKind::kRunLines;
  if (begins_with(text, R"({"schema":"gpudiag.report/)"))
    return Error{"is a report already; name the trace or the run's folder it was made from"};
  if (text.front() == '{' || text.front() == '[') return InputKind::kKinetoTrace;
  return Error{fmt::format("begins with {:?}, which is neither a Kineto trace (JSON, plain or .gz), nor "
                           "an export of Nsight Systems (.sqlite), nor a recording or a run of gpudiag",
                           text.substr(0, 16))};
}

// Numbers in names are compared as numbers, so that rank10 follows rank9.
struct NaturalOrder {
  std::optional<std::uint32_t> rank;
  std::string path;

  explicit NaturalOrder(const fs::path& of) : rank{rank_in_name(of)}, path{of.string()} {}
  bool operator<(const NaturalOrder& other) const {
    return std::tuple{!rank, rank.value_or(0), path} < std::tuple{!other.rank, other.rank.value_or(0), other.path};
  }
};

bool holds_inputs(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator{folder, error})
    if (entry.is_regular_file(error) && has_known_name(entry.path()) && kind_of(entry.path())) return true;
  return false;
}

// Runs lie in a folder each, and the folder above them may be meant to hold one of them or all.
std::string why_empty(const fs::path& folder) {
  constexpr std::size_t kNamed = 10;
  std::vector<std::string> inside;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator{folder, error})
    if (entry.is_directory(error) && holds_inputs(entry.path())) inside.push_back(entry.path().string());
  std::sort(inside.begin(), inside.end());
  std::string text = fmt::format("{}: no trace (*.json, *.json.gz, *.sqlite), run (*.jsonl) or recording (*.gpudiag) in this folder",
                                 folder.string());
  for (const auto& entry : fs::directory_iterator{folder, error})
    if (is_nsys_report(entry.path())) return text + "; " + how_to_export(entry.path());
  if (inside.empty()) return text;
  const std::size_t more = inside.size() > kNamed ? inside.size() - kNamed : 0;
  inside.resize(inside.size() - more);
  text += fmt::format(", but in folders inside it: {}", fmt::join(inside, ", "));
  if (more > 0) text += fmt::format(" and {} more", more);
  return text + "; name the one that is meant, since each is a run of its own";
}

void add_folder(const fs::path& folder, Inputs& inputs) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator{folder, error})
    if (entry.is_regular_file(error) && has_known_name(entry.path())) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) {
    return NaturalOrder{a} < NaturalOrder{b};
  });
  std::vector<InputFile> files;
  std::set<std::string> run_stems;
  for (const fs::path& path : paths) {
    const Result<InputKind> kind = kind_of(path);
    if (!kind) continue;
    if (*kind == InputKind::kRunLines) run_stems.insert(path.stem().string());
    files.push_back({*kind, path});
  }
  std::erase_if(files, [&](const InputFile& file) {
    // Summaries of further devices bear a second ending.
    const std::string stem = file.path.stem().string();
    const bool beside = run_stems.count(stem) > 0 || run_stems.count(stem.substr(0, stem.rfind(".dev"))) > 0;
    return beside && (file.kind == InputKind::kRecording || file.kind == InputKind::kSummary);
  });
  if (files.empty()) inputs.problems.push_back(why_empty(folder));
  inputs.files.insert(inputs.files.end(), files.begin(), files.end());
}

}  // namespace

Result<InputKind> kind_of(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  if (!in) return Error{fmt::format("cannot be opened: {}", std::strerror(errno))};
  std::array<char, 512> bytes{};
  in.read(bytes.data(), bytes.size());
  const std::string_view start{bytes.data(), static_cast<std::size_t>(in.gcount())};
  if (start.empty()) return Error{"is empty"};
  if (begins_with(kRecordingPreamble, start)) return Error{"is a recording that was cut before its first record"};
  if (begins_with(start, "gpudiag.records/")) return InputKind::kRecording;
  if (begins_with(start, "gpudiag.ranks/")) return InputKind::kSummary;
  if (begins_with(start, "\x1f\x8b")) return InputKind::kKinetoTrace;
  if (begins_with(start, "SQLite format 3")) return InputKind::kNsysExport;
  if (is_nsys_report(path)) return Error{"is a report of Nsight Systems: " + how_to_export(path)};
  // The first line of a run may be cut, and says nothing then.
  if (ends_with(path.filename().string(), ".jsonl")) return InputKind::kRunLines;
  return kind_of_text(start);
}

Inputs find_inputs(const std::vector<fs::path>& paths) {
  Inputs inputs;
  for (const fs::path& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
      inputs.problems.push_back(fmt::format("{}: no such file or folder", path.string()));
    } else if (fs::is_directory(status)) {
      add_folder(path, inputs);
    } else if (const Result<InputKind> kind = kind_of(path)) {
      inputs.files.push_back({*kind, path});
    } else {
      inputs.problems.push_back(fmt::format("{} {}", path.string(), kind.error().message));
    }
  }
  return inputs;
}

std::optional<std::uint32_t> rank_in_name(const fs::path& path) {
  std::string name = path.filename().string();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (std::size_t at = name.find("rank"); at != std::string::npos; at = name.find("rank", at + 1)) {
    std::size_t digits = at + 4;
    if (digits < name.size() && std::strchr("-_=.", name[digits]) != nullptr) ++digits;
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), rank);
    if (error == std::errc{}) return rank;
  }
  return std::nullopt;
}

}  // namespace gpudiag::tool
