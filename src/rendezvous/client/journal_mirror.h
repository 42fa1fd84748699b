// The controller's copy of a job whose coordinator shares no directory with it: the journal, byte
// for byte, and the logs, in the controller's own directory of the job. A coordinator that is
// created again with an empty directory gets the journal back from here (ADR 96). Used by
// client/coordinator_client.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/logs/timed_log_writer.h"

namespace shoal::rendezvous {

// Not thread-safe. Nothing is synced: the copy survives this process but not the machine, as the
// last commit of the controller's store does.
class JournalMirror {
 public:
  // Opens or creates DIR/journal and DIR/logs. A torn end of the journal is cut off.
  static Result<JournalMirror> Open(const std::filesystem::path& job_dir);

  int64_t journal_bytes() const { return journal_bytes_; }
  // The length of every log in the copy: the offset at which its next bytes are expected.
  const std::map<LogKey, int64_t>& offsets() const { return offsets_; }

  // Appends bytes that begin at `offset` of the journal. Bytes that are present already are
  // skipped; DataLoss for a gap, and for bytes that differ from those present.
  Status AppendJournal(int64_t offset, std::string_view bytes);
  // Cuts off an incomplete last record, which a lost connection leaves.
  Status TruncateTornTail();
  // Reads at most `limit` bytes from an offset on.
  Result<std::string> ReadJournal(int64_t offset, size_t limit) const;

  // See LogWriter::Append.
  Status AppendLog(const LogKey& key, int64_t offset, std::string_view bytes);
  // The log is complete: closes its file.
  void CloseLog(const LogKey& key) { open_.erase(key); }

 private:
  JournalMirror(std::filesystem::path logs, UniqueFd journal)
      : logs_(std::move(logs)), journal_(std::move(journal)) {}

  std::filesystem::path logs_;
  UniqueFd journal_;
  int64_t journal_bytes_ = 0;
  std::map<LogKey, int64_t> offsets_;
  std::map<LogKey, TimedLogWriter> open_;
};

}  // namespace shoal::rendezvous
