#include "ps/storage/row_function.h"

#include <fmt/format.h>

namespace shoal::ps {

Status Functions::Add(std::string name, RowFunction function) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return InvalidArgument(
        fmt::format("function name: got {} bytes, expected 1 to {}", name.size(), kMaxNameBytes));
  }
  if (function == nullptr) return InvalidArgument(fmt::format("function '{}': it is null", name));
  if (functions_.contains(name)) {
    return AlreadyExists(fmt::format("function '{}' is there already", name));
  }
  functions_.emplace(std::move(name), std::move(function));
  return Status::Ok();
}

const RowFunction* Functions::Find(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

}  // namespace shoal::ps
