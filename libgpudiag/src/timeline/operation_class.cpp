// SPDX-License-Identifier: Apache-2.0
#include "timeline/operation_class.hpp"

#include <cstddef>

namespace gpudiag {

bool is_communication_kernel(std::string_view name) {
  static const CommunicationTable kTable;
  return kTable.look_up(name).has_value();
}

OperationClass OperationClassifier::class_of(const Record& operation) {
  if (operation.kind == RecordKind::kMemcpy)
    return operation.copy == CopyKind::kPeer ? OperationClass::kCommunication
                                             : OperationClass::kCopy;
  if (operation.kind == RecordKind::kMemset) return OperationClass::kCopy;
  if (operation.kind == RecordKind::kGraph) return OperationClass::kCompute;
  const std::size_t id = raw(operation.name);
  if (id >= names_.size()) return OperationClass::kCompute;
  if (id >= is_communication_.size()) is_communication_.resize(id + 1);
  auto& known = is_communication_[id];
  if (!known) known = table_.look_up(names_.text(operation.name)).has_value();
  // A source that knows the collective has said so, whatever its kernel is called.
  return *known || collective_tag_of(operation.value2).known() ? OperationClass::kCommunication : OperationClass::kCompute;
}

}  // namespace gpudiag
