#include "rendezvous/client/journal_mirror.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "job/execution/job_dir.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/logs/log_archive.h"

namespace shoal::rendezvous {

Result<JournalMirror> JournalMirror::Open(const std::filesystem::path& job_dir) {
  TRY(MakeDirectories(job::JobDir(job_dir).logs(), 0700));
  const std::filesystem::path path = job::JobDir(job_dir).journal();
  TRY_ASSIGN(UniqueFd fd, OpenFile(path, O_RDWR | O_CREAT, 0600));
  JournalMirror mirror(job::JobDir(job_dir).logs(), std::move(fd));
  TRY(mirror.TruncateTornTail().With(path.string()));
  for (const auto& entry : std::filesystem::directory_iterator(mirror.logs_)) {
    const std::string name = entry.path().filename().string();
    auto key = ParseLogFileName(name);
    if (!key) key = ParseArchiveFileName(name);
    if (!key) continue;
    TRY_ASSIGN(mirror.offsets_[*key], LogSize(mirror.logs_, *key));
  }
  return mirror;
}

Status JournalMirror::TruncateTornTail() {
  TRY_ASSIGN(const std::string bytes, ReadAt(journal_.get(), 0, kMaxJournalBytes));
  TRY_ASSIGN(const JournalContent content, ParseJournal(bytes));
  const auto good = static_cast<int64_t>(content.good_bytes);
  if (::ftruncate(journal_.get(), good) != 0) return ErrnoStatus(errno, "the journal of the job");
  journal_bytes_ = good;
  return Status::Ok();
}

Status JournalMirror::AppendJournal(int64_t offset, std::string_view bytes) {
  if (offset < 0 || offset > journal_bytes_)
    return DataLoss("the coordinator left out a part of its journal");
  const auto known = static_cast<size_t>(journal_bytes_ - offset);
  TRY_ASSIGN(const std::string there, ReadAt(journal_.get(), offset, bytes.size()));
  if (!bytes.starts_with(there))
    return DataLoss("the coordinator's journal is another one than was kept");
  if (known >= bytes.size()) return Status::Ok();
  bytes.remove_prefix(known);
  if (journal_bytes_ + static_cast<int64_t>(bytes.size()) > static_cast<int64_t>(kMaxJournalBytes))
    return ResourceExhausted("the coordinator's journal is longer than a journal may be");
  TRY(WriteAllAt(journal_.get(), bytes, journal_bytes_).With("the journal of the job"));
  journal_bytes_ += static_cast<int64_t>(bytes.size());
  return Status::Ok();
}

Result<std::string> JournalMirror::ReadJournal(int64_t offset, size_t limit) const {
  return ReadAt(journal_.get(), offset, limit);
}

Status JournalMirror::AppendLog(const LogKey& key, int64_t offset, std::string_view bytes) {
  if (!IsFileName(key)) return InvalidArgument("a log of a task whose name is none");
  auto found = open_.find(key);
  if (found == open_.end()) {
    TRY_ASSIGN(TimedLogWriter writer, TimedLogWriter::Open(logs_, key, RealClock::Get()));
    found = open_.emplace(key, std::move(writer)).first;
  }
  return found->second.Append(offset, bytes).status().With(LogFileName(key));
}

}  // namespace shoal::rendezvous
