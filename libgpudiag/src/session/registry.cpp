// SPDX-License-Identifier: Apache-2.0
#include "session/registry.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace gpudiag {
namespace {

using Table = gpudiag_api_v1_table;

/// The tables of all copies in the order in which they were loaded, which is the same for whoever
/// asks; so the first one's `owner` is the one place to agree in.
std::vector<Table*> all_tables(Table& mine) {
  std::vector<std::string> objects;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] != '\0')
          static_cast<std::vector<std::string>*>(data)->emplace_back(info->dlpi_name);
        return 0;
      },
      &objects);
  std::vector<Table*> tables;
  const auto ask = [&](void* handle) {
    if (handle == nullptr) return;
    using Get = Table* (*)();
    if (const auto get = reinterpret_cast<Get>(dlsym(handle, "gpudiag_api_v1")))
      if (Table* table = get(); table != nullptr && std::ranges::find(tables, table) == tables.end())
        tables.push_back(table);
    dlclose(handle);  // takes back what RTLD_NOLOAD counted, no more
  };
  for (const std::string& object : objects) ask(dlopen(object.c_str(), RTLD_LAZY | RTLD_NOLOAD));
  if (std::ranges::find(tables, &mine) == tables.end()) tables.push_back(&mine);
  return tables;
}

std::atomic_ref<const Table*> owner_slot(Table& table) { return std::atomic_ref<const Table*>{table.owner}; }

void tell(const std::vector<Table*>& tables, const Table* owner) {
  for (Table* table : tables) table->adopt(owner);
}

}  // namespace

const Table* claim_session(Table& mine) {
  const std::vector<Table*> tables = all_tables(mine);
  const Table* owner = nullptr;
  // acq_rel: whoever sees the owner sees its table filled.
  if (owner_slot(*tables.front()).compare_exchange_strong(owner, &mine, std::memory_order_acq_rel)) owner = &mine;
  tell(tables, owner);
  return owner;
}

const Table* find_session(Table& mine) {
  return owner_slot(*all_tables(mine).front()).load(std::memory_order_acquire);
}

unsigned take_asides_of_others(Table& mine) {
  unsigned count = 0;
  for (Table* table : all_tables(mine)) {
    const bool knows = table->size >= offsetof(Table, take_asides) + sizeof table->take_asides;
    if (table != &mine && knows) count += table->take_asides();
  }
  return count;
}

void release_session(Table& mine) {
  const std::vector<Table*> tables = all_tables(mine);
  const Table* expected = &mine;
  if (owner_slot(*tables.front()).compare_exchange_strong(expected, nullptr, std::memory_order_acq_rel))
    tell(tables, nullptr);
}

}  // namespace gpudiag
