#include "data/corpus/source_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "data/objects/read_ahead.h"

namespace shoal::data {
namespace {

constexpr size_t kInputBlock = 128 * 1024;

// Reads the stored bytes of a file up to the size at inspection: a file that grows meanwhile is the
// same text for all workers.
class RawFile {
 public:
  explicit RawFile(const SourceFile& file) : file_(file) {}

  Status Open() {
    if (file_.object != nullptr) {
      ahead_ = std::make_unique<ReadAhead>(file_.object, file_.stored_bytes);
      return Status::Ok();
    }
    auto fd = OpenFile(file_.path, O_RDONLY | O_NONBLOCK);
    struct stat status {};
    if (fd.status().code() == Code::kResourceExhausted)  // no descriptor, no memory
      return fd.status().With("data file");
    if (!fd.ok() || ::fstat(fd->get(), &status) != 0) {
      return DataLoss(
          fmt::format("data file {} was there when the job began, but {}; put it back "
                      "and start again",
                      file_.path.string(), fd.ok() ? std::strerror(errno) : fd.status().message()));
    }
    fd_ = std::move(fd).value();
    if (static_cast<uint64_t>(status.st_size) < file_.stored_bytes) {
      return Shrank(static_cast<uint64_t>(status.st_size));
    }
    (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);  // only a hint
    return Status::Ok();
  }

  Result<size_t> Read(char* to, size_t size) {
    size = static_cast<size_t>(std::min<uint64_t>(size, file_.stored_bytes - offset_));
    if (size == 0) return size_t{0};
    if (ahead_ != nullptr) {
      TRY_ASSIGN(const size_t count, ahead_->Read(to, size));
      offset_ += count;
      return count;
    }
    ssize_t got = 0;
    do {
      got = ::pread(fd_.get(), to, size, static_cast<off_t>(offset_));
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
      return ErrnoStatus(
          errno, fmt::format("cannot read data file {} at byte {}", file_.path.string(), offset_));
    }
    if (got == 0) {
      struct stat status {};
      return Shrank(::fstat(fd_.get(), &status) == 0 ? static_cast<uint64_t>(status.st_size)
                                                     : offset_);
    }
    offset_ += static_cast<uint64_t>(got);
    return static_cast<size_t>(got);
  }

  void Jump(uint64_t offset) {
    offset_ = std::min(offset, file_.stored_bytes);
    if (ahead_ != nullptr) ahead_->Jump(offset_);
  }
  bool at_end() const { return offset_ == file_.stored_bytes; }

 private:
  Status Shrank(uint64_t size) const {
    return DataLoss(
        fmt::format("data file {} has shrunk to {} bytes while it was used; it had {} when the job "
                    "began: do not "
                    "change data files during a job",
                    file_.path.string(), size, file_.stored_bytes));
  }

  const SourceFile& file_;
  UniqueFd fd_;
  std::unique_ptr<ReadAhead> ahead_;  // of an object
  uint64_t offset_ = 0;
};

class PlainStream final : public TextStream {
 public:
  explicit PlainStream(const SourceFile& file) : TextStream(file), stored_(file_) {}
  Status Start() { return stored_.Open(); }

 private:
  Result<size_t> ReadRaw(char* to, size_t size) override { return stored_.Read(to, size); }
  bool Jump(uint64_t position) override {
    stored_.Jump(position);
    position_ = std::min(position, file_.stored_bytes);
    return true;
  }
  RawFile stored_;
};

// The common part of gzip and zstd: a buffer of stored bytes before the decoder.
class CompressedStream : public TextStream {
 protected:
  explicit CompressedStream(const SourceFile& file) : TextStream(file), stored_(file_) {}
  bool Jump(uint64_t) override { return false; }

  // Refills the buffer if it is used up; leaves it empty at the end of the file.
  Status Refill() {
    if (next_ < filled_) return Status::Ok();
    next_ = 0;
    TRY_ASSIGN(filled_, stored_.Read(block_.data(), block_.size()));
    return Status::Ok();
  }
  Status Corrupt(std::string_view what) const {
    return DataLoss(fmt::format("data file {}: its compressed bytes {} (after {} bytes of text)",
                                file_.path.string(), what, position_));
  }
  Status EndsEarly() const { return Corrupt("end too early: it is cut off"); }

  RawFile stored_;
  std::vector<char> block_ = std::vector<char>(kInputBlock);
  size_t next_ = 0;
  size_t filled_ = 0;
};

class GzipStream final : public CompressedStream {
 public:
  explicit GzipStream(const SourceFile& file) : CompressedStream(file) {}
  ~GzipStream() override {
    if (started_) ::inflateEnd(&zlib_);
  }
  Status Start() {
    TRY(stored_.Open());
    if (::inflateInit2(&zlib_, 16 + MAX_WBITS) != Z_OK) return Internal("zlib does not start");
    started_ = true;
    return Status::Ok();
  }

 private:
  Result<size_t> ReadRaw(char* to, size_t size) override {
    zlib_.next_out = reinterpret_cast<Bytef*>(to);
    zlib_.avail_out = static_cast<uInt>(std::min<size_t>(size, 1u << 30));
    const uInt room = zlib_.avail_out;
    while (zlib_.avail_out == room) {
      TRY(Refill());
      if (next_ == filled_) {
        if (!between_members_) return EndsEarly();
        return size_t{0};
      }
      if (between_members_) {
        if (members_ > 0 && SkipPadding()) continue;
        between_members_ = false;
      }
      TRY(Inflate());
    }
    return static_cast<size_t>(room - zlib_.avail_out);
  }

  // Zero bytes after the last member (written by tapes and some tools) are not text.
  bool SkipPadding() {
    const size_t before = next_;
    while (next_ < filled_ && block_[next_] == '\0') ++next_;
    return next_ != before;
  }

  Status Inflate() {
    zlib_.next_in = reinterpret_cast<Bytef*>(block_.data() + next_);
    zlib_.avail_in = static_cast<uInt>(filled_ - next_);
    const int code = ::inflate(&zlib_, Z_NO_FLUSH);
    next_ = filled_ - zlib_.avail_in;
    if (code == Z_STREAM_END) {
      ++members_;
      between_members_ = true;
      ::inflateReset(&zlib_);
      return Status::Ok();
    }
    if (code == Z_OK || code == Z_BUF_ERROR) return Status::Ok();
    return Corrupt(fmt::format("are corrupt: {}", zlib_.msg != nullptr ? zlib_.msg : "zlib error"));
  }

  z_stream zlib_{};
  bool started_ = false;
  bool between_members_ = true;
  uint64_t members_ = 0;
};

class ZstdStream final : public CompressedStream {
 public:
  explicit ZstdStream(const SourceFile& file) : CompressedStream(file) {}
  ~ZstdStream() override { ::ZSTD_freeDStream(zstd_); }
  Status Start() {
    TRY(stored_.Open());
    zstd_ = ::ZSTD_createDStream();
    return zstd_ != nullptr ? Status::Ok() : ResourceExhausted("zstd gets no memory");
  }

 private:
  Result<size_t> ReadRaw(char* to, size_t size) override {
    ZSTD_outBuffer out{to, size, 0};
    while (out.pos == 0) {
      TRY(Refill());
      // At the end of the file the decoder may still hold text of the current frame.
      if (next_ == filled_ && frame_ended_) return size_t{0};
      ZSTD_inBuffer in{block_.data(), filled_, next_};
      const bool starved = next_ == filled_;
      const size_t code = ::ZSTD_decompressStream(zstd_, &out, &in);
      next_ = in.pos;
      if (::ZSTD_isError(code)) {
        return Corrupt(fmt::format("are corrupt: {}", ::ZSTD_getErrorName(code)));
      }
      frame_ended_ = code == 0;
      if (starved && out.pos == 0 && !frame_ended_) return EndsEarly();
    }
    return out.pos;
  }

  ZSTD_DStream* zstd_ = nullptr;
  bool frame_ended_ = true;
};

template <typename Stream>
Result<std::unique_ptr<TextStream>> Started(const SourceFile& file) {
  auto stream = std::make_unique<Stream>(file);
  TRY(stream->Start());
  return std::unique_ptr<TextStream>(std::move(stream));
}

struct Magic {
  std::string_view bytes;
  const char* name;
  const char* tool;
};

using namespace std::string_view_literals;
constexpr std::array kForeign = {
    Magic{"\xfd\x37zXZ\0"sv, "xz", "xz -dc"}, Magic{"BZh"sv, "bzip2", "bzip2 -dc"},
    Magic{"PK\x03\x04"sv, "zip", "unzip -p"}, Magic{"\x04\x22\x4d\x18"sv, "lz4", "lz4 -dc"},
    Magic{"\x1f\x9d"sv, "compress", "uncompress -c"}};

Result<std::string> FirstBytes(const SourceFile& file) {
  std::string head(std::min<uint64_t>(8, file.stored_bytes), '\0');
  RawFile stored(file);
  TRY(stored.Open());
  size_t have = 0;
  while (have < head.size()) {
    TRY_ASSIGN(const size_t got, stored.Read(head.data() + have, head.size() - have));
    have += got;
  }
  return head;
}

Result<Compression> CompressionOf(const SourceFile& file, std::string_view head) {
  for (const Magic& magic : kForeign) {
    if (!head.starts_with(magic.bytes)) continue;
    return InvalidArgument(fmt::format(
        "data file {} is packed with {}; plain, gzip and zstd are read: unpack it first ({} {})",
        file.path.string(), magic.name, magic.tool, file.path.string()));
  }
  if (head.starts_with("\x1f\x8b"sv)) return Compression::kGzip;
  if (head.starts_with("\x28\xb5\x2f\xfd"sv)) return Compression::kZstd;
  // A zstd file may begin with a skippable frame.
  if (head.size() >= 4 && (static_cast<uint8_t>(head[0]) & 0xf0) == 0x50 &&
      head.substr(1, 3) == "\x2a\x4d\x18"sv) {
    return Compression::kZstd;
  }
  return Compression::kNone;
}

// Checks the beginning of the text, so that corrupt compression, NUL bytes and binary data are
// found before a job starts.
Status CheckBeginning(const SourceFile& file) {
  if (file.content == Content::kBytes) return Status::Ok();
  TRY_ASSIGN(auto stream, TextStream::Open(file));
  std::vector<char> text(64 * 1024);
  auto got = stream->Read(text.data(), text.size());
  if (!got.ok())
    return file.object == nullptr ? InvalidArgument(got.status().message()) : got.status();
  size_t controls = 0;
  size_t first = 0;
  for (size_t i = 0; i < *got; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool control =
        (byte < 0x20 && (byte < '\t' || byte > '\r') && byte != 0x1b) || byte == 0x7f;
    if (control && controls++ == 0) first = i;
  }
  if (controls * 10 <= *got) return Status::Ok();
  return InvalidArgument(
      fmt::format("data file {} is not text: {} of its first {} bytes are control characters (the "
                  "first is byte "
                  "{})",
                  file.path.string(), controls, *got, first));
}

}  // namespace

Result<SourceFile> InspectFile(const std::filesystem::path& path, Content content) {
  const auto refuse = [&](std::string_view why) {
    return InvalidArgument(fmt::format("data file {} {}", path.string(), why));
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const bool pattern = path.string().find_first_of("*?[") != std::string::npos;
    if (errno == ENOENT)
      return refuse(pattern ? "does not exist, and as a pattern it matches no file"
                            : "does not exist");
    return refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (S_ISDIR(status.st_mode)) return refuse("is a directory; name the files in it");
  if (!S_ISREG(status.st_mode)) {
    return refuse(
        "is a pipe or device; only regular files can be read, for they are read many times");
  }
  SourceFile file{path, Compression::kNone, static_cast<uint64_t>(status.st_size), nullptr,
                  content};
  if (::access(path.c_str(), R_OK) != 0) {
    return refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (file.stored_bytes == 0) return file;
  auto head = FirstBytes(file);
  if (head.status().code() == Code::kResourceExhausted) return head.status();
  if (!head.ok()) return InvalidArgument(head.status().message());
  TRY_ASSIGN(file.compression, CompressionOf(file, *head));
  TRY(CheckBeginning(file));
  return file;
}

Result<SourceFile> InspectObject(std::shared_ptr<const Object> object, Content content) {
  SourceFile file{object->info().uri, Compression::kNone, object->info().bytes, object, content};
  if (file.stored_bytes == 0) return file;
  TRY_ASSIGN(const std::string head, FirstBytes(file));
  TRY_ASSIGN(file.compression, CompressionOf(file, head));
  TRY(CheckBeginning(file));
  return file;
}

Result<std::unique_ptr<TextStream>> TextStream::Open(const SourceFile& file) {
  switch (file.compression) {
    case Compression::kGzip:
      return Started<GzipStream>(file);
    case Compression::kZstd:
      return Started<ZstdStream>(file);
    case Compression::kNone:
      break;
  }
  return Started<PlainStream>(file);
}

Result<size_t> TextStream::Read(char* to, size_t size) {
  TRY_ASSIGN(const size_t got, ReadRaw(to, size));
  if (file_.content == Content::kBytes) {
    position_ += got;
    return got;
  }
  if (const void* nul = std::memchr(to, '\0', got); nul != nullptr) {
    const uint64_t at = position_ + static_cast<uint64_t>(static_cast<const char*>(nul) - to);
    return InvalidArgument(fmt::format(
        "data file {} is not text: byte {}{} is NUL{}", file_.path.string(), at,
        file_.compression == Compression::kNone ? "" : " of what it unpacks to",
        at < 2 ? "; if it is UTF-16, convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)" : ""));
  }
  position_ += got;
  return got;
}

Status TextStream::SkipTo(uint64_t position) {
  if (position <= position_ || Jump(position)) return Status::Ok();
  std::vector<char> discard(256 * 1024);
  while (position_ < position) {
    const size_t want =
        static_cast<size_t>(std::min<uint64_t>(discard.size(), position - position_));
    TRY_ASSIGN(const size_t got, Read(discard.data(), want));
    if (got == 0) break;
  }
  return Status::Ok();
}

Result<uint64_t> MeasureText(const SourceFile& file) {
  if (file.compression == Compression::kNone) return file.stored_bytes;
  TRY_ASSIGN(auto stream, TextStream::Open(file));
  TRY(stream->SkipTo(UINT64_MAX));
  return stream->position();
}

}  // namespace shoal::data
