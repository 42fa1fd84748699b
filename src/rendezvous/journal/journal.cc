#include "rendezvous/journal/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/access/directory_owner.h"
#include "base/bytes.h"
#include "base/fault_injection.h"

namespace shoal::rendezvous {
namespace {

constexpr std::string_view kMagic = "SHOALJNL";
constexpr uint32_t kVersion = 1;

uint32_t RecordCrc(uint32_t size, std::string_view payload) {
  return Crc32c(payload.data(), payload.size(), Crc32c(&size, sizeof size));
}

// A few tries, because JournalIsLocked holds the lock for a moment.
bool LockJournal(int fd) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace

std::string EncodeJournalHeader() {
  std::string bytes(kMagic);
  ByteWriter writer(&bytes);
  writer.Put(kVersion);
  writer.Put(Crc32c(bytes.data(), bytes.size()));
  return bytes;
}

std::string EncodeJournalRecord(std::string_view payload) {
  std::string bytes;
  bytes.reserve(kJournalRecordHeaderBytes + payload.size());
  const auto size = static_cast<uint32_t>(payload.size());
  ByteWriter writer(&bytes);
  writer.Put(size);
  writer.Put(RecordCrc(size, payload));
  writer.PutRaw(payload.data(), payload.size());
  return bytes;
}

Result<JournalContent> ParseJournal(std::string_view bytes) {
  JournalContent content;
  if (bytes.size() < kJournalHeaderBytes) {
    if (EncodeJournalHeader().starts_with(bytes)) return content;
    return DataLoss("not a coordinator's journal");
  }
  if (bytes.substr(0, kJournalHeaderBytes) != EncodeJournalHeader()) {
    return DataLoss("not a coordinator's journal of this version");
  }
  ByteReader reader(bytes.substr(kJournalHeaderBytes));
  content.good_bytes = kJournalHeaderBytes;
  for (;;) {
    uint32_t size = 0, crc = 0;
    std::string_view payload;
    if (!reader.Get(&size).ok() || !reader.Get(&crc).ok() || size > kMaxJournalRecordBytes ||
        !reader.GetRaw(size, &payload).ok() || RecordCrc(size, payload) != crc) {
      return content;
    }
    content.records.push_back(payload);
    content.good_bytes = bytes.size() - reader.remaining();
  }
}

bool JournalIsLocked(const std::filesystem::path& path) {
  const FileAccessAs owner(path.parent_path());
  const auto fd = OpenFile(path, O_RDONLY);
  if (!fd.ok()) return fd.status().code() != Code::kNotFound;
  return ::flock(fd->get(), LOCK_SH | LOCK_NB) != 0;
}

Result<Journal::Opened> Journal::Open(const std::filesystem::path& path) {
  TRY_ASSIGN(UniqueFd fd, OpenFile(path, O_RDWR | O_CREAT | O_APPEND, 0600));
  if (!LockJournal(fd.get())) {
    return FailedPrecondition(path.string() + " is in use: another coordinator of this job runs");
  }
  TRY_ASSIGN(const std::string bytes, ReadFile(path, kMaxJournalBytes));
  auto content = ParseJournal(bytes);
  if (!content.ok()) return content.status().With(path.string());
  const size_t there = std::max(content->good_bytes, kJournalHeaderBytes);
  Opened opened{Journal(path.string(), std::move(fd), static_cast<int64_t>(there)),
                {},
                bytes.size() - content->good_bytes};
  for (const std::string_view record : content->records) opened.records.emplace_back(record);
  const int raw = opened.journal.fd();
  if (opened.cut_bytes > 0 && ::ftruncate(raw, static_cast<off_t>(content->good_bytes)) != 0) {
    return ErrnoStatus(errno, "cannot cut the torn end off " + path.string());
  }
  if (content->good_bytes == 0) TRY(WriteAll(raw, EncodeJournalHeader()).With(path.string()));
  return opened;
}

Status Journal::Append(std::string_view payload) {
  if (payload.size() > kMaxJournalRecordBytes)
    return ResourceExhausted("a record of the journal is too long");
  const std::string record = EncodeJournalRecord(payload);
  Status written = FaultPoint("journal.append");
  if (written.ok()) written = WriteAll(fd_.get(), record);
  if (!written.ok()) {
    (void)!::ftruncate(fd_.get(), bytes_);
    return written.With("the job's journal " + path_);
  }
  bytes_ += static_cast<int64_t>(record.size());
  return Status::Ok();
}

}  // namespace shoal::rendezvous
