#include "rendezvous/logs/log_times.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rendezvous/logs/log_archive.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::rendezvous {
namespace {

constexpr std::string_view kMagic = "SHOALLT1";
constexpr int64_t kHead = 8;
constexpr int64_t kEntry = 16;
// 4 GiB of entries: what a hostile file may make a reader search.
constexpr int64_t kMaxEntries = int64_t{1} << 28;

void PutInt64(char* to, int64_t value) {
  for (int i = 0; i < 8; ++i)
    to[i] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
}

int64_t GetInt64(const char* from) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(from[i]);
  return static_cast<int64_t>(value);
}

LogTime EntryAt(const char* from) {
  return {GetInt64(from), WallTime(std::chrono::microseconds(GetInt64(from + 8)))};
}

int64_t EntriesOf(int64_t bytes) {
  return std::clamp<int64_t>((bytes - kHead) / kEntry, 0, kMaxEntries);
}

Result<LogTime> ReadEntry(int fd, int64_t number) {
  TRY_ASSIGN(const std::string bytes, ReadAt(fd, kHead + number * kEntry, kEntry));
  if (bytes.size() < kEntry) return DataLoss("a time index became shorter");
  return EntryAt(bytes.data());
}

// The number of the first entry with an offset of at least `offset`.
Result<int64_t> LowerBound(int fd, int64_t entries, int64_t offset) {
  int64_t low = 0;
  while (low < entries) {
    const int64_t middle = low + (entries - low) / 2;
    TRY_ASSIGN(const LogTime entry, ReadEntry(fd, middle));
    if (entry.offset < offset) {
      low = middle + 1;
    } else {
      entries = middle;
    }
  }
  return low;
}

// 1985: an entry of which a crash has kept only the low six bytes of the time is earlier (2^48 us).
constexpr std::chrono::seconds kEarliest{500'000'000};

// A machine that crashed may have left zeros, or entries of bytes that it lost.
bool Follows(const std::vector<LogTime>& entries, const LogTime& entry, int64_t segment) {
  const bool later = entries.empty() || entries.back().offset < entry.offset;
  return later && entry.offset >= 0 && entry.offset < segment &&
         entry.time.time_since_epoch() >= kEarliest;
}

}  // namespace

std::optional<WallTime> LogTimes::Find(int64_t offset) const {
  const auto after = std::ranges::upper_bound(entries, offset, {}, &LogTime::offset);
  if (after == entries.begin()) return std::nullopt;
  return std::prev(after)->time;
}

std::string LogTimesFileName(const LogKey& key) {
  std::string name = LogFileName(key);
  name.resize(name.rfind('.'));
  return name + ".times";
}

// Entries at or after `offset` describe bytes that were lost, or that the next entry describes.
Status LogTimesWriter::Open(int64_t offset) {
  TRY_ASSIGN(UniqueFd fd, OpenFile(path_, O_RDWR | O_CREAT, 0600));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, path_.string());
  TRY_ASSIGN(const std::string head, ReadAt(fd.get(), 0, kMagic.size()));
  int64_t kept = 0;
  if (head == kMagic) {
    TRY_ASSIGN(kept, LowerBound(fd.get(), EntriesOf(info.st_size), offset));
    for (; kept > 0; --kept) {
      TRY_ASSIGN(const LogTime last, ReadEntry(fd.get(), kept - 1));
      if (last.time.time_since_epoch() >= kEarliest) break;  // else zeros that a crash has left
    }
  } else {
    TRY(WriteAllAt(fd.get(), kMagic, 0));
  }
  size_ = kHead + kept * kEntry;
  if (::ftruncate(fd.get(), size_) != 0) return ErrnoStatus(errno, path_.string());
  fd_ = std::move(fd);
  return Status::Ok();
}

void LogTimesWriter::Write(int64_t offset, WallTime now) {
  if (!fd_.valid() && !Open(offset).ok()) return;
  char entry[kEntry];
  PutInt64(entry, offset);
  PutInt64(entry + 8, now.time_since_epoch().count());
  if (WriteAllAt(fd_.get(), std::string_view(entry, kEntry), size_).ok()) size_ += kEntry;
}

Result<LogTimes> ReadLogTimes(const std::filesystem::path& directory, const LogKey& key,
                              int64_t from) {
  LogTimes times;
  struct stat segment {};
  const bool archived = ::stat((directory / LogFileName(key)).c_str(), &segment) != 0;
  if (archived && ::stat((directory / ArchiveFileName(key)).c_str(), &segment) != 0)
    return ErrnoStatus(errno, LogFileName(key));
  int64_t size = segment.st_size;
  if (archived) {
    TRY_ASSIGN(size, ArchiveSize(directory / ArchiveFileName(key)));
  }
  times.modified = WallTime(std::chrono::seconds(segment.st_mtim.tv_sec) +
                            std::chrono::microseconds(segment.st_mtim.tv_nsec / 1000));
  const Result<UniqueFd> index = OpenFile(directory / LogTimesFileName(key), O_RDONLY);
  struct stat info {};
  if (!index.ok() || ::fstat(index->get(), &info) != 0) return times;
  const auto head = ReadAt(index->get(), 0, kMagic.size());
  if (!head.ok() || *head != kMagic) return times;
  const int64_t entries = EntriesOf(info.st_size);
  const auto first = LowerBound(index->get(), entries, from + 1);
  if (!first.ok()) return times;
  const int64_t begin = std::max<int64_t>(0, *first - 1);
  const auto count = static_cast<size_t>(std::min<int64_t>(entries - begin, kMaxLogTimes));
  const auto bytes = ReadAt(index->get(), kHead + begin * kEntry, count * kEntry);
  if (!bytes.ok()) return times;
  for (size_t at = 0; at + kEntry <= bytes->size(); at += kEntry) {
    const LogTime entry = EntryAt(bytes->data() + at);
    if (Follows(times.entries, entry, size)) times.entries.push_back(entry);
  }
  return times;
}

}  // namespace shoal::rendezvous
