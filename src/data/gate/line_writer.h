// Collects lines for few writes. Private to this folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::data {

using WriteBytes = std::function<Status(std::string_view)>;

// Not thread-safe. The function must outlive it.
class LineWriter {
 public:
  explicit LineWriter(const WriteBytes* write) : write_(write) {}
  // Lines are appended here; Next is called after each.
  std::string* text() { return &text_; }
  Status Next() {
    constexpr size_t kWriteBlock = 256 << 10;
    if (text_.size() < kWriteBlock) return Status::Ok();
    return Flush();
  }
  Status Flush() {
    TRY((*write_)(text_));
    text_.clear();
    return Status::Ok();
  }

 private:
  const WriteBytes* const write_;
  std::string text_;
};

}  // namespace shoal::data
