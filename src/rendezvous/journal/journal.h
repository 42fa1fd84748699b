// The coordinator's journal: an append-only file of checksummed records, one record each
// (docs/formats/journal.md). A torn tail, as a crash leaves it, is cut off.
//
// Written by gate.cc, which appends at once and syncs in groups (commit.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace shoal::rendezvous {

inline constexpr size_t kJournalHeaderBytes = 16;
inline constexpr size_t kJournalRecordHeaderBytes = 8;
inline constexpr size_t kMaxJournalRecordBytes = 64 << 20;
inline constexpr size_t kMaxJournalBytes = size_t{1} << 30;

// The header every journal begins with.
std::string EncodeJournalHeader();
// One record around a payload.
std::string EncodeJournalRecord(std::string_view payload);

struct JournalContent {
  std::vector<std::string_view> records;  // views into the bytes
  size_t good_bytes = 0;                  // up to the end of the last whole record
};
// Reads records up to the first that is cut or damaged. DataLoss if the bytes do not begin as a
// journal does (fewer bytes than a header are a torn one: no records).
Result<JournalContent> ParseJournal(std::string_view bytes);

// True if a coordinator has the journal open: it lives, in whatever PID namespace. What cannot be
// opened for another reason than that it does not exist counts as locked.
bool JournalIsLocked(const std::filesystem::path& path);

// Not thread-safe.
class Journal {
 public:
  struct Opened;
  // Opens or makes it; `records` are those of earlier coordinators, oldest first, and `cut_bytes`
  // what was torn and cut off. Holds a lock on the file: FailedPrecondition if another coordinator
  // of the job lives.
  static Result<Opened> Open(const std::filesystem::path& path);

  // In the kernel when it returns: survives the process, not yet the machine. After an error
  // nothing of the record is left in the file, so it may be tried again.
  Status Append(std::string_view payload);
  int fd() const { return fd_.get(); }
  int64_t bytes() const { return bytes_; }

 private:
  Journal(std::string path, UniqueFd fd, int64_t bytes)
      : path_(std::move(path)), fd_(std::move(fd)), bytes_(bytes) {}
  std::string path_;
  UniqueFd fd_;
  int64_t bytes_;
};

struct Journal::Opened {
  Journal journal;
  std::vector<std::string> records;
  size_t cut_bytes = 0;
};

}  // namespace shoal::rendezvous
