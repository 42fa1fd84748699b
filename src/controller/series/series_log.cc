#include "controller/series/series_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "controller/series/varint.h"

namespace shoal::controller {
namespace {

constexpr std::string_view kMagic = "SHOALSER";
constexpr uint32_t kVersion = 1;
constexpr size_t kFrame = 8;  // length and checksum

uint32_t BlockChecksum(std::string_view payload) {
  const auto size = static_cast<uint32_t>(payload.size());
  return Crc32c(payload.data(), payload.size(), Crc32c(&size, sizeof size));
}

struct Entry {
  std::string_view name;  // of a definition; empty: a point
  uint64_t number = 0;    // from 1
  SeriesPoint point;
};

// Reads one entry from the front; false if it is malformed.
bool GetEntry(std::string_view* bytes, int64_t* last_ms, Entry* entry) {
  if (!GetVarint(bytes, &entry->number)) return false;
  uint64_t value = 0;
  if (!GetVarint(bytes, &value)) return false;
  if (entry->number == 0) {
    if (value > bytes->size()) return false;
    entry->name = bytes->substr(0, value);
    bytes->remove_prefix(value);
    return IsSeriesName(entry->name);
  }
  entry->name = {};
  *last_ms = static_cast<int64_t>(static_cast<uint64_t>(*last_ms) +
                                  static_cast<uint64_t>(UnZigZag(value)));
  entry->point.ms = *last_ms;
  if (bytes->size() < sizeof(double)) return false;
  std::memcpy(&entry->point.value, bytes->data(), sizeof(double));
  bytes->remove_prefix(sizeof(double));
  return std::isfinite(entry->point.value) && entry->point.ms >= -kMaxSeriesTime &&
         entry->point.ms <= kMaxSeriesTime;
}

// False, without a call, if the payload is malformed or would exceed kMaxSeries.
bool IsBlock(std::string_view payload, uint64_t series) {
  int64_t last_ms = 0;
  for (Entry entry; !payload.empty();) {
    if (!GetEntry(&payload, &last_ms, &entry)) return false;
    if (!entry.name.empty() && ++series > kMaxSeries) return false;
    if (entry.name.empty() && entry.number > series) return false;
  }
  return true;
}

void VisitBlock(std::string_view payload, const SeriesLogVisitor& visitor, uint64_t* series) {
  int64_t last_ms = 0;
  for (Entry entry; !payload.empty() && GetEntry(&payload, &last_ms, &entry);) {
    if (entry.name.empty()) {
      visitor.on_point(static_cast<uint32_t>(entry.number - 1), entry.point);
    } else {
      ++*series;
      visitor.on_series(entry.name);
    }
  }
}

}  // namespace

std::string SeriesLogHeader() {
  std::string header(kMagic);
  ByteWriter out(&header);
  out.Put(kVersion);
  out.Put(Crc32c(header.data(), header.size()));
  return header;
}

bool SeriesLogEncoder::Add(const std::string& name, const SeriesPoint& point) {
  auto found = numbers_.find(name);
  if (found == numbers_.end()) {
    if (numbers_.size() >= kMaxSeries) return false;
    found = numbers_.emplace(name, numbers_.size() + 1).first;
    PutVarint(0, &block_);
    PutVarint(name.size(), &block_);
    block_ += name;
  }
  PutVarint(found->second, &block_);
  PutVarint(ZigZag(point.ms - last_ms_), &block_);
  ByteWriter(&block_).Put(point.value);
  last_ms_ = point.ms;
  return true;
}

std::string SeriesLogEncoder::TakeBlock() {
  if (block_.empty()) return {};
  std::string framed;
  framed.reserve(kFrame + block_.size());
  ByteWriter out(&framed);
  out.Put(static_cast<uint32_t>(block_.size()));
  out.Put(BlockChecksum(block_));
  framed += block_;
  block_.clear();
  last_ms_ = 0;
  return framed;
}

Result<size_t> ParseSeriesLog(std::string_view bytes, const SeriesLogVisitor& visitor) {
  const std::string header = SeriesLogHeader();
  if (bytes.substr(0, header.size()) != header)
    return DataLoss("it is no series log: its first 16 bytes differ from a header of version 1");
  size_t at = header.size();
  uint64_t series = 0;
  while (bytes.size() - at >= kFrame) {
    ByteReader in(bytes.substr(at));
    uint32_t size = 0, checksum = 0;
    std::string_view payload;
    TRY(in.Get(&size));
    TRY(in.Get(&checksum));
    if (size == 0 || size > kMaxSeriesBlock || !in.GetRaw(size, &payload).ok()) break;
    if (BlockChecksum(payload) != checksum || !IsBlock(payload, series)) break;
    VisitBlock(payload, visitor, &series);
    at += kFrame + size;
  }
  return at;
}

Result<SeriesLogFile> SeriesLogFile::Create(const std::filesystem::path& path) {
  TRY_ASSIGN(UniqueFd fd, OpenFile(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
  SeriesLogFile file(std::move(fd));
  TRY(file.Append(SeriesLogHeader()).With(path.string()));
  return file;
}

Status SeriesLogFile::Append(std::string_view block) {
  const Status written = WriteAllAt(fd_.get(), block, static_cast<int64_t>(size_));
  if (!written.ok()) {
    if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) return written;
    return written;
  }
  size_ += block.size();
  return Status::Ok();
}

}  // namespace shoal::controller
