// What a person reads or keeps: standard output, and files and directories named by `--output`.
#pragma once

#include <string_view>

#include "base/status.h"

namespace shoal {

// Where a command prints. Keeps the first error, after which it writes nothing more. A reader that
// has gone (a closed pipe or terminal) is no error. Not thread-safe.
class OutputStream {
 public:
  explicit OutputStream(int fd) : fd_(fd) {}

  // All of `text`, unbuffered; waits where the descriptor is non-blocking and full. False if
  // nothing more can be written.
  bool Write(std::string_view text);
  bool reader_gone() const { return reader_gone_; }
  const Status& status() const { return status_; }

 private:
  const int fd_;
  bool reader_gone_ = false;
  Status status_;
};

}  // namespace shoal
