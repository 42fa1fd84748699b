// The parameters of a statement's `where`: each is taken once by its name, and what remains is
// unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sql/syntax/ast.h"

namespace shoal::sql {

// Not thread-safe. Errors are InvalidArgument with the place of the parameter.
class OptionList {
 public:
  // `script` must outlive it.
  OptionList(const ScriptText& script, std::vector<Option> options)
      : script_(script), options_(std::move(options)) {}

  // The parameter of this name, in any case; nothing if it is not given.
  std::optional<Option> Take(std::string_view name);
  // Its value, or `other`.
  Result<int64_t> TakeInteger(std::string_view name, int64_t min, int64_t max, int64_t other);
  Result<bool> TakeFlag(std::string_view name, bool other);
  std::string TakeText(std::string_view name, std::string_view other);
  // All that is left.
  std::vector<Option> TakeRest() { return std::move(options_); }
  // An error if anything is left. `known`: the names of the statement's parameters.
  Status RefuseRest(const std::vector<std::string>& known) const;

  const ScriptText& script() const { return script_; }

 private:
  const ScriptText& script_;
  std::vector<Option> options_;
};

}  // namespace shoal::sql
