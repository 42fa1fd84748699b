#include "rendezvous/logs/log_segment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "rendezvous/logs/log_archive.h"

namespace shoal::rendezvous {
namespace {

constexpr std::string_view kSuffix = ".log";
// Contents of a hole in a segment: this line, padded with blanks, from each multiple of
// kLongestGapLine in the file. Holes begin and end at such multiples.
constexpr std::string_view kHoleLine = "[shoal: what follows could not be stored either]";

std::optional<int> ParseNumber(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0) {
    return std::nullopt;
  }
  return value;
}

int64_t RoundUp(int64_t offset) {
  return (offset + kLongestGapLine - 1) / kLongestGapLine * kLongestGapLine;
}

// The text at these offsets of a hole, whichever part of it is read.
void FillHole(int64_t offset, char* to, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<size_t>((offset + i) % kLongestGapLine);
    const bool last = at + 1 == kLongestGapLine;
    to[i] = at < kHoleLine.size() ? kHoleLine[at] : last ? '\n' : ' ';
  }
}

// A program's own zeros are no hole.
void FillHoles(int fd, int64_t offset, std::string* bytes) {
  if (bytes->find('\0') == std::string::npos) return;
  const int64_t end = offset + static_cast<int64_t>(bytes->size());
  int64_t at = ::lseek(fd, offset, SEEK_HOLE);
  while (at >= 0 && at < end) {
    const int64_t data = ::lseek(fd, at, SEEK_DATA);
    const int64_t stop = data < 0 ? end : std::min(data, end);
    FillHole(at, bytes->data() + (at - offset), stop - at);
    at = stop < end ? ::lseek(fd, stop, SEEK_HOLE) : end;
  }
}

}  // namespace

std::string LogFileName(const LogKey& key) {
  return key.role + "-" + std::to_string(key.index) + "." + std::to_string(key.attempt) +
         std::string(kSuffix);
}

bool IsFileName(const LogKey& key) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const bool plain = !key.role.empty() && key.role.size() <= 200 && key.role[0] != '.' &&
                     key.role.find_first_not_of(kPlain) == std::string::npos;
  return plain && key.index >= 0 && key.attempt >= 0;
}

std::optional<LogKey> ParseLogFileName(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const size_t dash = name.rfind('-', dot);
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  const auto index = ParseNumber(name.substr(dash + 1, dot - dash - 1));
  const auto attempt = ParseNumber(name.substr(dot + 1));
  if (!index || !attempt) return std::nullopt;
  LogKey key{std::string(name.substr(0, dash)), *index, *attempt};
  if (!IsFileName(key)) return std::nullopt;
  return key;
}

Result<std::string> DirectoryIdentity(const std::filesystem::path& directory) {
  TRY_ASSIGN(std::string place, ReadFile("/proc/sys/kernel/random/boot_id", 64));
  while (!place.empty() && place.back() == '\n') place.pop_back();
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return ErrnoStatus(errno, directory.string());
  return place + " " + std::to_string(info.st_dev) + " " + std::to_string(info.st_ino);
}

std::string GapLine(int64_t bytes) {
  const std::string text =
      "\n[shoal: " + std::to_string(bytes) + " bytes of this log could not be stored]";
  const auto size = static_cast<size_t>(std::min(bytes, kLongestGapLine));
  std::string line = text.substr(0, size);
  line.resize(size, ' ');
  if (!line.empty()) line.back() = '\n';
  return line;
}

Result<LogWriter> LogWriter::Open(const std::filesystem::path& directory, const LogKey& key) {
  TRY_ASSIGN(UniqueFd fd, OpenFile(directory / LogFileName(key), O_WRONLY | O_CREAT, 0600));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, "a log segment");
  return LogWriter(std::move(fd), info.st_size);
}

Result<int64_t> LogWriter::Append(int64_t offset, std::string_view bytes) {
  if (offset < 0) return InvalidArgument("a log offset is negative");
  if (offset < size_) {
    const auto known = static_cast<uint64_t>(size_ - offset);
    if (known >= bytes.size()) return int64_t{0};
    bytes.remove_prefix(known);
    offset = size_;
  }
  if (offset > size_) TRY(FillGap(offset));
  const Status written = WriteAllAt(fd_.get(), bytes, offset);
  if (!written.ok()) {
    (void)!::ftruncate(fd_.get(), size_);
    return written;
  }
  size_ = offset + static_cast<int64_t>(bytes.size());
  return static_cast<int64_t>(bytes.size());
}

// The rest of a long gap stays a hole.
Status LogWriter::FillGap(int64_t end) {
  std::string head = GapLine(end - size_);
  const int64_t hole = std::min(end, RoundUp(size_ + static_cast<int64_t>(head.size())));
  head.back() = ' ';
  head.resize(static_cast<size_t>(hole - size_), ' ');
  head.back() = '\n';
  const int64_t hole_end = std::max(hole, RoundUp(end) - kLongestGapLine);
  std::string last(static_cast<size_t>(end - hole_end), ' ');
  FillHole(hole_end, last.data(), end - hole_end);
  if (!last.empty()) last.back() = '\n';
  Status filled = WriteAllAt(fd_.get(), head, size_);
  if (filled.ok()) filled = WriteAllAt(fd_.get(), last, hole_end);
  if (!filled.ok()) {
    (void)!::ftruncate(fd_.get(), size_);
    return filled;
  }
  size_ = end;
  return Status::Ok();
}

Result<int64_t> LogSize(const std::filesystem::path& directory, const LogKey& key) {
  struct stat info {};
  if (::stat((directory / LogFileName(key)).c_str(), &info) == 0) return int64_t{info.st_size};
  return ArchiveSize(directory / ArchiveFileName(key));
}

// A segment that has been compressed since it was looked for is found as an archive.
Result<std::string> ReadLog(const std::filesystem::path& directory, const LogKey& key,
                            int64_t offset, size_t limit) {
  auto bytes = ReadSegment(directory, key, offset, limit);
  if (bytes.status().code() != Code::kNotFound) return bytes;
  auto archive = LogArchive::Open(directory / ArchiveFileName(key));
  if (!archive.ok())
    return archive.status().code() == Code::kNotFound ? bytes.status() : archive.status();
  const auto piece = archive->Read(offset);
  if (!piece.ok()) return piece.status().With("cannot read " + ArchiveFileName(key));
  return std::string(piece->substr(0, limit));
}

Result<std::string> ReadSegment(const std::filesystem::path& directory, const LogKey& key,
                                int64_t offset, size_t limit) {
  TRY_ASSIGN(const UniqueFd fd, OpenFile(directory / LogFileName(key), O_RDONLY));
  auto bytes = ReadAt(fd.get(), offset, limit);
  if (!bytes.ok()) return bytes.status().With("cannot read " + LogFileName(key));
  FillHoles(fd.get(), offset, &*bytes);
  return bytes;
}

Result<std::string> ReadAt(int fd, int64_t offset, size_t limit) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, "an open file");
  if (offset < 0 || offset >= info.st_size) return std::string();
  limit = std::min(limit, static_cast<size_t>(info.st_size - offset));
  std::string bytes(limit, '\0');
  size_t got = 0;
  while (got < limit) {
    const ssize_t n = ::pread(fd, bytes.data() + got, limit - got,
                              static_cast<off_t>(offset) + static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "an open file");
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace shoal::rendezvous
