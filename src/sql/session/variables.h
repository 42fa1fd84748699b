// Variables of a session and their replacement in texts.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "sql/syntax/ast.h"

namespace shoal::sql {

// Not thread-safe.
class Variables {
 public:
  void Set(const std::string& name, std::string value) { values_[name] = std::move(value); }
  bool Has(const std::string& name) const { return values_.contains(name); }
  const std::map<std::string, std::string>& values() const { return values_; }

  // The word with `${name}` replaced by the variable's value and `$${` by `${`. Values are not
  // replaced again. InvalidArgument, with the place, for a name that is not set, and for more than
  // kMaxLiteral bytes.
  Result<Word> Expand(const ScriptText& script, const Word& word) const;
  Result<std::vector<Option>> Expand(const ScriptText& script,
                                     const std::vector<Option>& options) const;

 private:
  Status Unknown(const ScriptText& script, const Word& word, std::string_view name) const;
  std::map<std::string, std::string> values_;
};

}  // namespace shoal::sql
