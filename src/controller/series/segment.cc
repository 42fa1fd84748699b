#include "controller/series/segment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "controller/series/chunk.h"
#include "controller/series/varint.h"

namespace shoal::controller {
namespace {

constexpr std::string_view kMagic = "SHOALSEG";
constexpr uint32_t kVersion = 1;
constexpr size_t kFooterBytes = 24;
constexpr size_t kChecksum = sizeof(uint32_t);
constexpr uint32_t kMaxChunk = 1U << 30;
constexpr int64_t kMaxPeriod = int64_t{366} * 86'400'000;

std::string Header(int64_t period) {
  std::string header(kMagic);
  ByteWriter out(&header);
  out.Put(kVersion);
  out.Put(period);
  out.Put(Crc32c(header.data(), header.size()));
  return header;
}

Result<std::string> ReadRange(int fd, uint64_t offset, size_t size) {
  std::string bytes(size, '\0');
  for (size_t got = 0; got < size;) {
    const ssize_t n = ::pread(fd, bytes.data() + got, size - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, "cannot be read");
    if (n == 0) return DataLoss("it is shorter than its index says");
    got += static_cast<size_t>(n);
  }
  return bytes;
}

bool InTime(int64_t ms) { return ms >= -kMaxSeriesTime && ms <= kMaxSeriesTime; }

bool GetIndexEntry(std::string_view* bytes, SegmentEntry* entry) {
  uint64_t name = 0, length = 0, first = 0, span = 0;
  if (!GetVarint(bytes, &name) || name > bytes->size()) return false;
  entry->name = bytes->substr(0, name);
  bytes->remove_prefix(name);
  if (!IsSeriesName(entry->name)) return false;
  if (!GetVarint(bytes, &entry->offset) || !GetVarint(bytes, &length) ||
      !GetVarint(bytes, &entry->points) || !GetVarint(bytes, &first) || !GetVarint(bytes, &span))
    return false;
  if (length < kChecksum || length > kMaxChunk) return false;
  entry->length = static_cast<uint32_t>(length);
  entry->first_ms = UnZigZag(first);
  if (!InTime(entry->first_ms) || span > 2 * static_cast<uint64_t>(kMaxSeriesTime)) return false;
  entry->last_ms = entry->first_ms + static_cast<int64_t>(span);
  return InTime(entry->last_ms);
}

// The same order as std::string's.
bool NameBefore(const SegmentEntry& a, std::string_view b) { return a.name < b; }

}  // namespace

Result<SegmentWriter> SegmentWriter::Create(const std::filesystem::path& path, int64_t period) {
  TRY_ASSIGN(AtomicFile file, AtomicFile::Create(path, 0600));
  SegmentWriter writer(std::move(file), period);
  TRY(writer.Write(Header(period)));
  return writer;
}

Status SegmentWriter::Write(std::string_view bytes) {
  TRY(file_.Write(bytes));
  size_ += bytes.size();
  return Status::Ok();
}

Status SegmentWriter::Add(const std::string& name, const std::vector<SeriesBucket>& buckets) {
  if (buckets.empty()) return Status::Ok();
  std::string chunk;
  if (period_ == 0) {
    std::vector<SeriesPoint> points;
    points.reserve(buckets.size());
    for (const SeriesBucket& bucket : buckets) points.push_back({bucket.ms, bucket.mean});
    chunk = EncodePoints(points);
  } else {
    chunk = EncodeBuckets(buckets, period_);
  }
  uint64_t points = 0;
  for (const SeriesBucket& bucket : buckets) points += bucket.count;
  const auto [first, last] = std::ranges::minmax(buckets, {}, &SeriesBucket::ms);
  PutVarint(name.size(), &index_);
  index_ += name;
  PutVarint(size_, &index_);
  PutVarint(chunk.size() + kChecksum, &index_);
  PutVarint(points, &index_);
  PutVarint(ZigZag(first.ms), &index_);
  PutVarint(static_cast<uint64_t>(last.ms - first.ms), &index_);
  ++series_;
  ByteWriter(&chunk).Put(Crc32c(chunk.data(), chunk.size()));
  return Write(chunk);
}

Status SegmentWriter::Finish() {
  std::string footer;
  ByteWriter out(&footer);
  out.Put(size_);
  out.Put(static_cast<uint32_t>(index_.size()));
  out.Put(Crc32c(index_.data(), index_.size()));
  out.Put(series_);
  out.Put(Crc32c(footer.data(), footer.size()));
  TRY(Write(index_));
  TRY(Write(footer));
  return file_.Commit();
}

Result<std::vector<SegmentEntry>> ParseSegmentIndex(std::string_view bytes, uint64_t chunks_end) {
  std::vector<SegmentEntry> entries;
  while (!bytes.empty()) {
    SegmentEntry entry;
    const bool fits = GetIndexEntry(&bytes, &entry) && entry.offset >= kSegmentHeaderBytes &&
                      entry.offset <= chunks_end && entry.length <= chunks_end - entry.offset;
    if (!fits || (!entries.empty() && !NameBefore(entries.back(), entry.name)))
      return DataLoss("its index is damaged");
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<SegmentEntry>> FindInSegmentIndex(std::string_view bytes, uint64_t chunks_end,
                                                     std::string_view name) {
  constexpr int kNumbers = 5;  // of an entry, behind its name
  const Status damaged = DataLoss("its index is damaged");
  while (!bytes.empty()) {
    std::string_view rest = bytes;
    uint64_t length = 0;
    if (!GetVarint(&rest, &length) || length > rest.size()) return damaged;
    if (rest.substr(0, length) == name) {
      SegmentEntry entry;
      const bool fits = GetIndexEntry(&bytes, &entry) && entry.offset >= kSegmentHeaderBytes &&
                        entry.offset <= chunks_end && entry.length <= chunks_end - entry.offset;
      if (!fits) return damaged;
      return std::vector<SegmentEntry>{std::move(entry)};
    }
    rest.remove_prefix(length);
    for (int i = 0; i < kNumbers; ++i) {
      size_t at = 0;
      while (at < rest.size() && (static_cast<unsigned char>(rest[at]) & 0x80) != 0) ++at;
      if (at == rest.size()) return damaged;
      rest.remove_prefix(at + 1);
    }
    bytes = rest;
  }
  return std::vector<SegmentEntry>();
}

Result<SegmentReader> SegmentReader::Open(const std::filesystem::path& path,
                                          std::string_view only) {
  SegmentReader reader;
  reader.path_ = path.string();
  const auto damaged = [&](std::string_view what) {
    return DataLoss(reader.path_ + ": " + std::string(what));
  };
  TRY_ASSIGN(reader.fd_, OpenFile(path, O_RDONLY));
  struct stat info {};
  if (::fstat(reader.fd_.get(), &info) != 0) return ErrnoStatus(errno, reader.path_);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size < kSegmentHeaderBytes + kFooterBytes) return damaged("it is too short for a segment");
  TRY_ASSIGN(const std::string header, ReadRange(reader.fd_.get(), 0, kSegmentHeaderBytes));
  TRY_ASSIGN(const std::string footer,
             ReadRange(reader.fd_.get(), size - kFooterBytes, kFooterBytes));
  ByteReader in(std::string_view(header).substr(kMagic.size() + sizeof kVersion));
  TRY(in.Get(&reader.period_));
  if (header != Header(reader.period_) || reader.period_ < 0 || reader.period_ > kMaxPeriod)
    return damaged("its header is not one of version 1");
  ByteReader end(footer);
  uint64_t index_at = 0;
  uint32_t index_bytes = 0, index_checksum = 0, series = 0, checksum = 0;
  TRY(end.Get(&index_at));
  TRY(end.Get(&index_bytes));
  TRY(end.Get(&index_checksum));
  TRY(end.Get(&series));
  TRY(end.Get(&checksum));
  if (checksum != Crc32c(footer.data(), kFooterBytes - kChecksum) || index_bytes > kMaxIndex ||
      index_at < kSegmentHeaderBytes || index_at > size - kFooterBytes ||
      index_bytes != size - kFooterBytes - index_at)
    return damaged("its footer is damaged");
  TRY_ASSIGN(const std::string index, ReadRange(reader.fd_.get(), index_at, index_bytes));
  if (Crc32c(index.data(), index.size()) != index_checksum) return damaged("its index is damaged");
  auto entries =
      only.empty() ? ParseSegmentIndex(index, index_at) : FindInSegmentIndex(index, index_at, only);
  if (!entries.ok() || (only.empty() && entries->size() != series))
    return damaged("its index is damaged");
  reader.entries_ = std::move(*entries);
  return reader;
}

const SegmentEntry* SegmentReader::Find(std::string_view name) const {
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), name, NameBefore);
  return found != entries_.end() && found->name == name ? &*found : nullptr;
}

Result<std::vector<SeriesBucket>> SegmentReader::Read(const SegmentEntry& entry) const {
  auto bytes = ReadRange(fd_.get(), entry.offset, entry.length);
  if (!bytes.ok()) return bytes.status().With(path_);
  const std::string_view chunk = std::string_view(*bytes).substr(0, entry.length - kChecksum);
  uint32_t checksum = 0;
  TRY(ByteReader(std::string_view(*bytes).substr(chunk.size())).Get(&checksum));
  if (checksum != Crc32c(chunk.data(), chunk.size()))
    return DataLoss(path_ + ": the checksum of " + entry.name + " is wrong");
  if (period_ > 0) {
    auto buckets = DecodeBuckets(chunk, period_);
    return buckets.ok() ? std::move(buckets) : buckets.status().With(path_);
  }
  const auto points = DecodePoints(chunk);
  if (!points.ok()) return points.status().With(path_);
  std::vector<SeriesBucket> buckets;
  buckets.reserve(points->size());
  for (const SeriesPoint& point : *points) buckets.push_back(BucketOf(point));
  return buckets;
}

}  // namespace shoal::controller
