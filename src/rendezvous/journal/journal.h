// The coordinator's journal: an append-only file of checksummed records (docs/formats/journal.md).
// A torn tail, as a crash leaves it, is cut off.
//
// Written by coordinator/durability_gate.cc, which appends at once and syncs in groups.
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
// Header, checksum and payload of one record.
std::string EncodeJournalRecord(std::string_view payload);

struct JournalContent {
  std::vector<std::string_view> records;  // views into the bytes
  size_t good_bytes = 0;                  // up to the end of the last whole record
};
// Reads records up to the first that is incomplete or damaged. DataLoss if the bytes do not begin
// with a journal's header; fewer bytes than a header are a torn one and hold no records.
Result<JournalContent> ParseJournal(std::string_view bytes);

// True if a living coordinator holds the journal's lock, in any PID namespace. A file that exists
// but cannot be opened counts as locked.
bool JournalIsLocked(const std::filesystem::path& path);

// Appends records and holds the file's lock. Movable, not copyable; not thread-safe.
class Journal {
 public:
  struct Opened;
  // Opens or creates the journal and locks it. FailedPrecondition if another coordinator of the job
  // lives.
  static Result<Opened> Open(const std::filesystem::path& path);

  // Survives the process when it returns; it survives the machine after a sync of fd(). After an
  // error nothing of the record is left in the file, so the call may be repeated.
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
  std::vector<std::string> records;  // of earlier coordinators, oldest first
  size_t cut_bytes = 0;              // torn bytes that were cut off
};

}  // namespace shoal::rendezvous
