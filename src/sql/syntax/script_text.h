// The text of a script and places in it: what every error message of the language begins with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::sql {

// Bytes [begin, end) of a script.
struct Span {
  size_t begin = 0;
  size_t end = 0;
};

inline constexpr size_t kMaxScript = size_t{16} << 20;

// Immutable, so that statements may keep views of it while they share it.
class ScriptText {
 public:
  // `name` stands in messages: a file's path, or "-e".
  ScriptText(std::string name, std::string text) : name_(std::move(name)), text_(std::move(text)) {}

  const std::string& name() const { return name_; }
  std::string_view text() const { return text_; }

  // "FILE:LINE:COLUMN: sentence", below it the line and a mark under the span. Columns count
  // characters, from 1.
  std::string Describe(Span span, std::string_view sentence) const;

  // InvalidArgument with Describe.
  Status Error(Span span, std::string_view sentence) const;
  // `status` with its message described at the span; OK stays OK.
  Status Locate(Span span, const Status& status) const;

 private:
  const std::string name_;
  const std::string text_;
};

using ScriptPtr = std::shared_ptr<const ScriptText>;

}  // namespace shoal::sql
