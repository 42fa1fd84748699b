// Where a person wants results: standard output, and the file or directory that `--output` names.
// An existing file there may belong to another user, or be a device, a FIFO or a symbolic link.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/status.h"

namespace shoal {

// A stream that a command prints to. Keeps the first error, after which it writes nothing more. A
// reader that has gone (a closed pipe or terminal) is no error. Not thread-safe.
class OutputStream {
 public:
  // `name` stands in messages.
  explicit OutputStream(int fd, std::string name = "standard output")
      : fd_(fd), name_(std::move(name)) {}

  // All of `text`, unbuffered; waits where the descriptor is non-blocking and full. False if
  // nothing more can be written.
  bool Write(std::string_view text);
  bool reader_gone() const { return reader_gone_; }
  const Status& status() const { return status_; }

 private:
  const int fd_;
  const std::string name_;
  bool reader_gone_ = false;
  Status status_;
};

// `path` with the symbolic links at its end followed, also one to what does not exist yet.
Result<std::filesystem::path> FollowLinks(const std::filesystem::path& path);

// Gives `to`, a new file or directory, the owner, group, mode and access lists of `from`, which it
// is to replace. An error where one of them cannot be given: then `from` must not be replaced.
Status CopyAttributes(int from, int to);

// Puts `bytes` into the file that a person named.
// - A new file appears whole or not at all, with the mode that the umask says.
// - A regular file is replaced whole and keeps its attributes (CopyAttributes). Where it cannot be
//   replaced so (another's file, more than one hard link, a directory that may not be written, a
//   mount point) its content is overwritten in place.
// - Symbolic links are followed. Devices, FIFOs and descriptors (/dev/stdout) are written to.
// Errors name the path; InvalidArgument for a directory.
Status WriteOutputFile(const std::filesystem::path& path, std::string_view bytes);

// WriteOutputFile piece by piece, for what does not fit memory. A new file and one that can be
// replaced appear whole by Commit or not at all; any other is overwritten from Open on. Not
// thread-safe.
class OutputWriter {
 public:
  // `mode` is of a new file, less the umask. A FIFO waits for its reader.
  static Result<OutputWriter> Open(const std::filesystem::path& path, unsigned mode = 0666);
  // A new file gets no permission that `mode` lacks.
  Status LimitMode(unsigned mode);
  Status Write(std::string_view bytes);
  Status Commit();

 private:
  OutputWriter(AtomicFile whole, bool made) : whole_(std::move(whole)), made_(made) {}
  OutputWriter(int fd, UniqueFd opened, std::string name)
      : opened_(std::move(opened)), through_(OutputStream(fd, std::move(name))) {}

  std::optional<AtomicFile> whole_;
  bool made_ = false;
  UniqueFd opened_;
  std::optional<OutputStream> through_;  // without whole_
};

// The same with the bytes of the regular file `from`, whose mode a new file gets. `from` must not
// be made shorter meanwhile.
Status CopyOutputFile(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace shoal
