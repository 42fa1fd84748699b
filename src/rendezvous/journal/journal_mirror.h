// What a controller keeps of a job whose coordinator's directory it does not see: the journal, byte
// for byte, and the logs, in its own directory of the job. A coordinator that is made again and
// finds nothing is given the journal back (ADR 96). Used by client.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::rendezvous {

// Not thread-safe. Nothing is synced: it survives this process, as the store's last commit does
// not.
class JournalMirror {
 public:
  // DIR/journal and DIR/logs, which are made. A torn end of the journal is cut off.
  static Result<JournalMirror> Open(const std::filesystem::path& job_dir);

  int64_t journal_bytes() const { return journal_bytes_; }
  // Of every log that is there: the offset to go on at.
  const std::map<LogKey, int64_t>& offsets() const { return offsets_; }

  // Bytes of the journal at their offset. What is there already is skipped; DataLoss for a gap, and
  // for other bytes than are there.
  Status AppendJournal(int64_t offset, std::string_view bytes);
  // Cuts off what is not a whole record, as a line that was lost leaves it.
  Status TruncateTornTail();
  // At most `limit` bytes of it from an offset on.
  Result<std::string> ReadJournal(int64_t offset, size_t limit) const;

  // As LogWriter::Append.
  Status AppendLog(const LogKey& key, int64_t offset, std::string_view bytes);
  // No more will come: its file is closed.
  void CloseLog(const LogKey& key) { open_.erase(key); }

 private:
  JournalMirror(std::filesystem::path logs, UniqueFd journal)
      : logs_(std::move(logs)), journal_(std::move(journal)) {}

  std::filesystem::path logs_;
  UniqueFd journal_;
  int64_t journal_bytes_ = 0;
  std::map<LogKey, int64_t> offsets_;
  std::map<LogKey, LogWriter> open_;
};

}  // namespace shoal::rendezvous
