#include "rendezvous/logs/log_archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

namespace shoal::rendezvous {
namespace {

constexpr std::string_view kSuffix = ".zst";
// Of zstd's seekable format: a skippable frame with an entry for each frame, and a footer.
constexpr uint32_t kSkippable = 0x184D2A5E;
constexpr uint32_t kFooterMagic = 0x8F92EAB1;
constexpr int64_t kFooter = 9;     // u32 frames, u8 descriptor, u32 magic
constexpr int64_t kEntry = 8;      // u32 compressed, u32 decompressed
constexpr int64_t kTableHead = 8;  // u32 magic, u32 size
// A log of 1 TiB.
constexpr int64_t kMaxFrames = int64_t{1} << 22;
constexpr int kLevel = 3;

struct FreeCompression {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

void PutUint32(std::string* to, uint32_t value) {
  for (int i = 0; i < 4; ++i) *to += static_cast<char>(value >> (8 * i) & 0xff);
}

uint32_t GetUint32(std::string_view from, int64_t at) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i)
    value = value << 8 | static_cast<unsigned char>(from[static_cast<size_t>(at + i)]);
  return value;
}

Status Damaged(const std::filesystem::path& path, const std::string& why) {
  return DataLoss(path.filename().string() + ": " + why);
}

int64_t FrameBound() { return static_cast<int64_t>(ZSTD_compressBound(kArchiveFrame)); }

struct Table {
  std::string entries;
  int64_t frames = 0;
  int64_t begin = 0;  // in the file
  int64_t size = 0;   // bytes of the log
};

// All frames but the last hold kArchiveFrame bytes.
Result<int64_t> SizeOf(const std::filesystem::path& path, std::string_view entries,
                       int64_t frames) {
  for (int64_t i = 0; i < frames; ++i) {
    const int64_t packed = GetUint32(entries, i * kEntry);
    const int64_t bytes = GetUint32(entries, i * kEntry + 4);
    const bool last = i + 1 == frames;
    if (packed == 0 || packed > FrameBound() || bytes == 0 || bytes > kArchiveFrame ||
        (!last && bytes != kArchiveFrame))
      return Damaged(path, "the table has a frame of another size");
  }
  if (frames == 0) return int64_t{0};
  return (frames - 1) * kArchiveFrame + GetUint32(entries, (frames - 1) * kEntry + 4);
}

Result<Table> ReadTable(int fd, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return ErrnoStatus(errno, path.string());
  TRY_ASSIGN(const std::string footer, ReadAt(fd, info.st_size - kFooter, kFooter));
  if (static_cast<int64_t>(footer.size()) != kFooter || GetUint32(footer, 5) != kFooterMagic ||
      footer[4] != 0)
    return Damaged(path, "the table at its end is missing");
  Table table;
  table.frames = GetUint32(footer, 0);
  table.begin = info.st_size - kFooter - table.frames * kEntry - kTableHead;
  if (table.frames > kMaxFrames || table.begin < 0)
    return Damaged(path, "the table is longer than the file");
  TRY_ASSIGN(const std::string head, ReadAt(fd, table.begin, kTableHead));
  TRY_ASSIGN(table.entries,
             ReadAt(fd, table.begin + kTableHead, static_cast<size_t>(table.frames * kEntry)));
  const bool whole = static_cast<int64_t>(head.size()) == kTableHead &&
                     static_cast<int64_t>(table.entries.size()) == table.frames * kEntry;
  if (!whole || GetUint32(head, 0) != kSkippable ||
      GetUint32(head, 4) != table.frames * kEntry + kFooter)
    return Damaged(path, "the table's head is wrong");
  TRY_ASSIGN(table.size, SizeOf(path, table.entries, table.frames));
  return table;
}

// Writes the frames of a segment and the table.
Status WriteArchive(const std::filesystem::path& directory, const LogKey& key, int to) {
  const std::unique_ptr<ZSTD_CCtx, FreeCompression> context(ZSTD_createCCtx());
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string packed(static_cast<size_t>(FrameBound()), '\0');
  std::string table;
  int64_t offset = 0, at = 0;
  uint32_t frames = 0;
  while (true) {
    // With the text of holes.
    TRY_ASSIGN(const std::string bytes, ReadSegment(directory, key, offset, kArchiveFrame));
    if (bytes.empty()) break;
    const size_t size =
        ZSTD_compress2(context.get(), packed.data(), packed.size(), bytes.data(), bytes.size());
    if (ZSTD_isError(size) != 0) return Internal(ZSTD_getErrorName(size));
    TRY(WriteAllAt(to, std::string_view(packed).substr(0, size), at));
    PutUint32(&table, static_cast<uint32_t>(size));
    PutUint32(&table, static_cast<uint32_t>(bytes.size()));
    at += static_cast<int64_t>(size);
    offset += static_cast<int64_t>(bytes.size());
    if (++frames > kMaxFrames) return ResourceExhausted("the log is too long to be compressed");
  }
  std::string tail;
  PutUint32(&tail, kSkippable);
  PutUint32(&tail, static_cast<uint32_t>(table.size() + kFooter));
  tail += table;
  PutUint32(&tail, frames);
  tail += '\0';
  PutUint32(&tail, kFooterMagic);
  return WriteAllAt(to, tail, at);
}

Status SyncDirectory(const std::filesystem::path& directory) {
  TRY_ASSIGN(const UniqueFd fd, OpenFile(directory, O_RDONLY | O_DIRECTORY));
  return ::fsync(fd.get()) == 0 ? Status::Ok() : ErrnoStatus(errno, directory.string());
}

}  // namespace

std::string ArchiveFileName(const LogKey& key) { return LogFileName(key) + std::string(kSuffix); }

std::optional<LogKey> ParseArchiveFileName(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  return ParseLogFileName(name);
}

void LogArchive::FreeContext::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

LogArchive::LogArchive(UniqueFd fd, std::vector<Frame> frames, int64_t size)
    : fd_(std::move(fd)), frames_(std::move(frames)), size_(size), context_(ZSTD_createDCtx()) {}

Result<LogArchive> LogArchive::Open(const std::filesystem::path& path) {
  TRY_ASSIGN(UniqueFd fd, OpenFile(path, O_RDONLY));
  TRY_ASSIGN(const Table table, ReadTable(fd.get(), path));
  std::vector<Frame> frames;
  frames.reserve(static_cast<size_t>(table.frames));
  int64_t at = 0;
  for (int64_t i = 0; i < table.frames; ++i) {
    const int64_t bytes = GetUint32(table.entries, i * kEntry);
    frames.push_back({at, bytes});
    at += bytes;
  }
  if (at != table.begin) return Damaged(path, "the table does not match the file's length");
  return LogArchive(std::move(fd), std::move(frames), table.size);
}

Status LogArchive::Load(int64_t number) {
  const Frame& frame = frames_[static_cast<size_t>(number)];
  loaded_ = -1;
  packed_.resize(static_cast<size_t>(frame.bytes));
  ssize_t got = 0;
  do {
    got = ::pread(fd_.get(), packed_.data(), packed_.size(), frame.begin);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return ErrnoStatus(errno, "a compressed log");
  if (got != static_cast<ssize_t>(packed_.size())) return DataLoss("a compressed log is cut off");
  const int64_t expected = std::min(kArchiveFrame, size_ - number * kArchiveFrame);
  bytes_.resize(static_cast<size_t>(kArchiveFrame));
  const size_t bytes = ZSTD_decompressDCtx(context_.get(), bytes_.data(), bytes_.size(),
                                           packed_.data(), packed_.size());
  if (ZSTD_isError(bytes) != 0)
    return DataLoss(std::string("a compressed log is damaged: ") + ZSTD_getErrorName(bytes));
  if (static_cast<int64_t>(bytes) != expected)
    return DataLoss("a compressed log is damaged: a frame has another length than its table says");
  loaded_ = number;
  return Status::Ok();
}

Result<std::string_view> LogArchive::Read(int64_t offset) {
  if (offset < 0 || offset >= size_) return std::string_view();
  const int64_t number = offset / kArchiveFrame;
  if (loaded_ != number) TRY(Load(number));
  const int64_t begin = number * kArchiveFrame;
  const int64_t end = std::min(begin + kArchiveFrame, size_);
  return std::string_view(bytes_).substr(static_cast<size_t>(offset - begin),
                                         static_cast<size_t>(end - offset));
}

Result<int64_t> ArchiveSize(const std::filesystem::path& path) {
  TRY_ASSIGN(const UniqueFd fd, OpenFile(path, O_RDONLY));
  TRY_ASSIGN(const Table table, ReadTable(fd.get(), path));
  return table.size;
}

Result<int64_t> CompressLog(const std::filesystem::path& directory, const LogKey& key) {
  const std::filesystem::path segment = directory / LogFileName(key);
  const std::filesystem::path archive = directory / ArchiveFileName(key);
  struct stat info {};
  struct stat there {};
  const bool have = ::stat(segment.c_str(), &info) == 0;
  if (::stat(archive.c_str(), &there) == 0) {
    // A crash came before the segment was removed.
    if (have) (void)::unlink(segment.c_str());
    return there.st_size;
  }
  if (!have) return ErrnoStatus(errno, segment.string());
  const std::filesystem::path draft = archive.string() + ".new";
  TRY_ASSIGN(UniqueFd to, OpenFile(draft, O_RDWR | O_CREAT | O_TRUNC, 0600));
  Status written = WriteArchive(directory, key, to.get());
  const timespec times[2] = {info.st_atim, info.st_mtim};
  if (written.ok() && (::futimens(to.get(), times) != 0 || ::fsync(to.get()) != 0))
    written = ErrnoStatus(errno, draft.string());
  if (written.ok() && ::fstat(to.get(), &there) != 0) written = ErrnoStatus(errno, draft.string());
  struct stat now {};
  if (written.ok() && (::stat(segment.c_str(), &now) != 0 || now.st_size != info.st_size))
    written = Aborted("the log " + LogFileName(key) + " changed while it was compressed");
  if (written.ok() && ::rename(draft.c_str(), archive.c_str()) != 0)
    written = ErrnoStatus(errno, archive.string());
  if (!written.ok()) {
    (void)::unlink(draft.c_str());
    return written;
  }
  TRY(SyncDirectory(directory));
  if (::unlink(segment.c_str()) != 0) return ErrnoStatus(errno, segment.string());
  return there.st_size;
}

}  // namespace shoal::rendezvous
