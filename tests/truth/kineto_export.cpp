// SPDX-License-Identifier: Apache-2.0
#include "kineto_export.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <stdexcept>

namespace gpudiag::truth {
namespace {

constexpr int kProcess = 4'000;

std::string complete(const Record& record, std::string_view category, std::string_view name, int pid,
                     std::uint32_t tid, const std::string& arguments) {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{}.{:03},"dur":{}.{:03},"args":{{{}}}}})",
                     category, name, pid, tid, record.start.ns / 1000, record.start.ns % 1000,
                     (record.end - record.start).ns / 1000, (record.end - record.start).ns % 1000, arguments);
}

std::string operation(const Record& record, std::string_view category, std::string_view name) {
  return complete(record, category, name, static_cast<int>(raw(record.device)), raw(record.stream),
                  fmt::format(R"("device":{},"context":1,"stream":{},"correlation":{},"bytes":{})", raw(record.device),
                              raw(record.stream), raw(record.correlation), record.value));
}

std::string_view name_of_copy(CopyKind kind) {
  return kind == CopyKind::kDeviceToHost ? "Memcpy DtoH (Device -> Pageable)" : "Memcpy HtoD (Pinned -> Device)";
}

// Empty: no profiler exports it.
std::string event_of(const Record& record, const NameTable& names) {
  const std::string name{names.text(record.name)};
  switch (record.kind) {
    case RecordKind::kKernel: return operation(record, "kernel", name);
    case RecordKind::kMemcpy: return operation(record, "gpu_memcpy", name_of_copy(record.copy));
    case RecordKind::kApiCall:
      return complete(record, "cuda_runtime", name, kProcess, raw(record.thread),
                      fmt::format(R"("correlation":{})", raw(record.correlation)));
    case RecordKind::kRange:
      if (record.range == RangeSource::kHook) return {};
      return complete(record, record.range == RangeSource::kOperator ? "cpu_op" : "user_annotation", name, kProcess,
                      raw(record.thread), "");
    default: return {};
  }
}

}  // namespace

void export_kineto(const Scenario& scenario, const Troubles& present, const std::string& path) {
  const Program program = write_job(scenario.shape, scenario.troubles, present);
  TracerOptions options = scenario.tracer;
  options.profiler_steps = true;
  options.ticks = false;
  NameTable names;
  const std::vector<Record> records = trace(program, execute(program), options, names);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::fopen(path.c_str(), "w"), &std::fclose};
  if (!file) throw std::runtime_error{"cannot write " + path};
  fmt::print(file.get(), R"({{"schemaVersion":1,"deviceProperties":[{{"id":0,"name":"model"}}],)"
                         R"("distributedInfo":{{"backend":"nccl","rank":0,"world_size":1}},"traceEvents":[)");
  std::string_view separator = "\n";
  for (const Record& record : records) {
    const std::string event = event_of(record, names);
    if (event.empty()) continue;
    fmt::print(file.get(), "{}{}", separator, event);
    separator = ",\n";
  }
  fmt::print(file.get(), "\n]}}\n");
}

}  // namespace gpudiag::truth
