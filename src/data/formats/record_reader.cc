#include "data/formats/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/utf8.h"
#include "data/formats/cell_number.h"
#include "data/formats/csv_cells.h"
#include "data/formats/fields.h"
#include "data/formats/json_text.h"
#include "data/formats/tfrecord.h"
#include "data/parquet/parquet_rows.h"

namespace shoal::data {
namespace {

constexpr uint64_t kEnoughToJudge = 10'000;  // records, before a share of them ends a pass

struct FormatName {
  std::string_view name;
  RecordFormat format;
};
constexpr std::array<FormatName, 11> kFormats = {{{"text", RecordFormat::kText},
                                                  {"csv", RecordFormat::kCsv},
                                                  {"tsv", RecordFormat::kTsv},
                                                  {"libsvm", RecordFormat::kLibsvm},
                                                  {"libffm", RecordFormat::kLibffm},
                                                  {"jsonl", RecordFormat::kJsonLines},
                                                  {"tfrecord", RecordFormat::kTfRecord},
                                                  {"parquet", RecordFormat::kParquet},
                                                  {"svm", RecordFormat::kLibsvm},
                                                  {"ffm", RecordFormat::kLibffm},
                                                  {"ndjson", RecordFormat::kJsonLines}}};
constexpr size_t kChosen = 8;  // of them; the others are endings of files

std::vector<std::string> RowCells(std::string_view line, char delimiter, bool* closed) {
  std::vector<std::string> cells;
  std::string room;
  std::string_view cell;
  const char* at = line.data();
  const char* const end = at + line.size();
  *closed = true;
  while (at <= end && cells.size() <= kMaxCsvColumns) {
    *closed = NextCell(&at, end, delimiter, &room, &cell);
    if (!*closed) break;
    cells.emplace_back(cell);
  }
  return cells;
}

bool IsTable(RecordFormat format) {
  return format == RecordFormat::kCsv || format == RecordFormat::kTsv;
}

// False for what this process has said already: a conversion reads its files several times.
// Thread-safe.
bool WasNotSaid(const std::string& text) {
  constexpr size_t kMost = 1000;  // a process that reads ever more files says some again
  static Mutex mu;
  static std::set<std::string> said;
  const MutexLock lock(mu);
  if (said.size() >= kMost) said.clear();
  return said.insert(text).second;
}

}  // namespace

Result<RecordFormat> ParseRecordFormat(const std::string& name) {
  std::string known;
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].name == name) return kFormats[i].format;
    if (i < kChosen) known += (i == 0 ? "" : ", ") + std::string(kFormats[i].name);
  }
  return InvalidArgument("format: got " + name.substr(0, 40) + ", expected one of " + known);
}

std::string_view NameOf(RecordFormat format) {
  for (const FormatName& one : kFormats) {
    if (one.format == format) return one.name;
  }
  return "";
}

RecordFormat FormatOfPath(std::string_view path) {
  if (path.find("://") != std::string_view::npos) path = path.substr(0, path.find('?'));
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (path.ends_with(packed)) path.remove_suffix(packed.size());
  }
  const std::string_view ending = path.substr(path.rfind('.') + 1);
  for (const FormatName& one : kFormats) {
    if (one.name == ending) return one.format;
  }
  return ending == "tfrecords" ? RecordFormat::kTfRecord : RecordFormat::kText;
}

Content ContentOf(RecordFormat format) {
  const bool bytes = format == RecordFormat::kTfRecord || format == RecordFormat::kParquet;
  return bytes ? Content::kBytes : Content::kText;
}

std::string BadRecord::text() const {
  // A part that begins in the middle of a file does not know the numbers of its lines.
  if (number == 0) return fmt::format("{} (byte {}): {}", file, offset, reason);
  return fmt::format("{}:{} (byte {}): {}", file, number, offset, reason);
}

Result<Shard> MakeRowShard(const Corpus& corpus, uint64_t index, uint64_t count) {
  std::vector<uint64_t> rows;
  uint64_t all = 0;
  for (const SourceFile& file : corpus.files()) {
    TRY_ASSIGN(const auto opened, ParquetRows::Open(file, [](std::string_view) { return false; }));
    rows.push_back(opened->footer().rows);
    all += rows.back();
  }
  const auto border = [&](uint64_t i) { return all / count * i + std::min(i, all % count); };
  const uint64_t begin = border(index);
  const uint64_t end = border(index + 1);
  Shard shard{index, count, {}};
  uint64_t before = 0;
  for (size_t file = 0; file < rows.size(); before += rows[file++]) {
    const uint64_t from = std::max(begin, before) - before;
    const uint64_t until = std::min(std::max(end, before) - before, rows[file]);
    if (from < until) shard.segments.push_back({file, from, until});
  }
  return shard;
}

namespace {

Shard WholeOf(const Corpus& corpus) {
  Shard shard;
  for (size_t file = 0; file < corpus.files().size(); ++file) shard.segments.push_back({file});
  return shard;
}

}  // namespace

RecordReader::RecordReader(Corpus corpus, RecordFormat format, RecordOptions options)
    : corpus_(std::move(corpus)),
      shard_(WholeOf(corpus_)),
      format_(format),
      options_(std::move(options)) {}
RecordReader::RecordReader(Corpus corpus, Shard shard, RecordFormat format, RecordOptions options)
    : corpus_(std::move(corpus)),
      shard_(std::move(shard)),
      format_(format),
      options_(std::move(options)) {}
RecordReader::~RecordReader() = default;

void RecordReader::StartAt(uint64_t position) { from_ = position; }

ShardBoundary RecordReader::next_place() const {
  if (rows_ != nullptr) return {segment_.file, number_};
  if (buffer_.open()) return {segment_.file, buffer_.place()};
  if (next_segment_ < shard_.segments.size()) {
    const Segment& next = shard_.segments[next_segment_];
    return {next.file, next_segment_ == 0 ? from_.value_or(next.begin) : next.begin};
  }
  return {segment_.file, segment_.end};
}

Result<bool> RecordReader::OpenNext() {
  if (next_segment_ == shard_.segments.size()) return false;
  segment_ = shard_.segments[next_segment_++];
  const SourceFile& file = corpus_.files()[segment_.file];
  number_ = 0;
  if (format_ == RecordFormat::kParquet) {
    const auto all = [](std::string_view) { return true; };
    TRY_ASSIGN(rows_, ParquetRows::Open(file, options_.wants ? options_.wants : all));
    TRY(EnterRow(from_.value_or(segment_.begin)));
  } else {
    TRY_ASSIGN(auto stream, TextStream::Open(file));
    buffer_.Reset(std::move(stream));
    TRY(EnterSegment());
  }
  from_.reset();
  return true;
}

Status RecordReader::ReadHeader(const SourceFile& file) {
  TRY_ASSIGN(auto stream, TextStream::Open(file));
  StreamBuffer buffer;
  buffer.Reset(std::move(stream));
  std::string_view line;
  TRY(TakeLine(&buffer, kMaxRecord, &line).status());
  bool closed = true;
  columns_ = RowCells(line, format_ == RecordFormat::kTsv ? '\t' : ',', &closed);
  header_ = line;
  return Status::Ok();
}

// Goes to the first record of the segment.
Status RecordReader::EnterSegment() {
  if (IsTable(format_) && columns_.empty() && from_.value_or(segment_.begin) > 0)
    TRY(ReadHeader(corpus_.files()[segment_.file]));
  if (from_) return buffer_.Skip(*from_).status();
  if (segment_.begin == 0 || format_ == RecordFormat::kTfRecord) return Status::Ok();
  // From the byte before: if that ends a line, the first line of the segment begins here.
  TRY(buffer_.Skip(segment_.begin - 1).status());
  std::string_view rest;
  return TakeLine(&buffer_, kMaxRecord, &rest).status();
}

Status RecordReader::EnterRow(uint64_t row) {
  const std::vector<ParquetRowGroup>& groups = rows_->footer().groups;
  next_group_ = 0;
  uint64_t before = 0;
  while (next_group_ < groups.size() && before + groups[next_group_].rows <= row)
    before += groups[next_group_++].rows;
  number_ = row;
  if (next_group_ == groups.size()) return Status::Ok();
  TRY(rows_->Enter(next_group_++));
  return rows_->Skip(row - before);
}

void RecordReader::Close() {
  buffer_.Reset(nullptr);
  rows_.reset();
}

Result<bool> RecordReader::NextLine(Record* record, std::string* fault) {
  const uint64_t begin = buffer_.place();
  if (begin >= segment_.end) return false;
  std::string_view line;
  TRY_ASSIGN(const LineKind kind, TakeLine(&buffer_, kMaxRecord, &line));
  if (kind == LineKind::kNone) return false;
  if (kind == LineKind::kTooLong)
    *fault = fmt::format("the line is longer than {} MiB", kMaxRecord >> 20);
  // The number of a line is known only where the file was read from its beginning.
  if (number_ > 0 || begin == 0) ++number_;
  *record = {line, segment_.file, begin, number_};
  return true;
}

Result<bool> RecordReader::NextTfRecord(Record* record, std::string* fault) {
  TfRecord taken;
  const uint64_t at = buffer_.place();
  auto more = TakeTfRecord(&buffer_, segment_.begin, segment_.end, &taken);
  while (more.ok() && *more && taken.skipped) {
    ++number_;
    more = TakeTfRecord(&buffer_, segment_.begin, segment_.end, &taken);
  }
  if (!more.ok() && more.status().code() == Code::kDataLoss)
    return DataLoss(fmt::format("{}, record {} at byte {}: {}",
                                corpus_.files()[segment_.file].path.string(), number_ + 1, at,
                                more.status().message()));
  if (!more.ok() || !*more) return more;
  if (!taken.intact) *fault = "its checksum is wrong";
  *record = {taken.bytes, segment_.file, taken.begin, ++number_};
  return true;
}

Result<bool> RecordReader::NextParquetRow(FieldVisitor* visitor) {
  for (;;) {
    if (number_ >= segment_.end) return false;
    const uint64_t before = rows_->bytes_read();
    TRY_ASSIGN(const bool more, rows_->Next(visitor));
    row_bytes_ += rows_->bytes_read() - before;
    if (more) {
      ++number_;
      return true;
    }
    if (next_group_ == rows_->footer().groups.size()) return false;
    TRY(rows_->Enter(next_group_++));
  }
}

Result<bool> RecordReader::NextFields(FieldVisitor* visitor) {
  for (;;) {
    if (rows_ == nullptr) {
      TRY_ASSIGN(const bool opened, OpenNext());
      if (!opened) {
        TRY(CheckShare(true));
        return false;
      }
    }
    TRY_ASSIGN(const bool more, NextParquetRow(visitor));
    if (more) {
      ++good_;
      return true;
    }
    Close();
  }
}

// What is wrong with the record; empty: nothing.
std::string RecordReader::FaultOf(const Record& record) {
  if (format_ == RecordFormat::kJsonLines) {
    const auto parsed = ParseJsonObject(record.bytes);
    if (parsed.ok()) return "";
    const size_t half = FindLoneSurrogate(record.bytes);
    if (half == std::string_view::npos) return "it is no JSON object: " + parsed.status().message();
    return fmt::format(
        "it is no JSON: at byte {} {} is half of a character, without the other half", half,
        record.bytes.substr(half, 6));
  }
  if (!IsTable(format_)) return "";
  bool closed = true;
  const char delimiter = format_ == RecordFormat::kTsv ? '\t' : ',';
  const size_t cells = RowCells(record.bytes, delimiter, &closed).size();
  if (!closed) return "a quote is not closed";
  if (cells == columns_.size()) return "";
  return fmt::format("it has {} cells, expected {}", cells, columns_.size());
}

Status RecordReader::CheckShare(bool at_end) const {
  const uint64_t all = good_ + bad_;
  if (bad_ == 0 || (options_.max_bad > 0 && !at_end && all < kEnoughToJudge)) return Status::Ok();
  if (static_cast<double>(bad_) <= options_.max_bad * static_cast<double>(all)) return Status::Ok();
  std::string text = fmt::format("{} of {} records are malformed, the first: {}", bad_, all,
                                 first_bad_.front().text());
  if (options_.max_bad == 0) text = first_bad_.front().text();
  return InvalidArgument(text);
}

Status RecordReader::AddBad(const Record& record, std::string reason) {
  ++bad_;
  if (first_bad_.size() < kKeptBadRecords) {
    first_bad_.push_back({corpus_.files()[record.file].path.string(), record.offset, record.number,
                          std::move(reason)});
  }
  return CheckShare(false);
}

Status RecordReader::CountBad(const Record& record, std::string reason) {
  --good_;
  return AddBad(record, std::move(reason));
}

Result<bool> RecordReader::NextInFile(Record* record, std::string* fault) {
  if (format_ == RecordFormat::kTfRecord) return NextTfRecord(record, fault);
  if (format_ != RecordFormat::kParquet) return NextLine(record, fault);
  row_.Begin();
  TRY_ASSIGN(const bool more, NextParquetRow(&row_));
  *record = {row_.End(), segment_.file, 0, number_};
  return more;
}

// True for the first line of a table's file, and for the same line again, as in files that were put
// together: it is no record.
bool RecordReader::TakeHeader(const Record& record) {
  if (record.number != 1) {
    if (record.bytes != header_ || !IsOnlyHeader(columns_)) return false;
    if (repeated_++ == 0) {
      first_repeated_ =
          fmt::format("{} (byte {})", corpus_.files()[record.file].path.string(), record.offset);
    }
    return true;
  }
  bool closed = true;
  auto cells = RowCells(record.bytes, format_ == RecordFormat::kTsv ? '\t' : ',', &closed);
  header_ = record.bytes;
  if (columns_.empty()) columns_ = std::move(cells);
  return true;
}

Status RecordReader::Finish() const {
  TRY(CheckShare(true));
  if (repeated_ == 0) return Status::Ok();
  const std::string text = fmt::format(
      "lines that repeat the header are left out: {}, the first: {}", repeated_, first_repeated_);
  if (WasNotSaid(text)) LogWarning("{}", text);
  return Status::Ok();
}

Result<bool> RecordReader::Next(Record* record) {
  for (;;) {
    if (!buffer_.open() && rows_ == nullptr) {
      TRY_ASSIGN(const bool opened, OpenNext());
      if (!opened) {
        TRY(Finish());
        return false;
      }
    }
    std::string fault;
    TRY_ASSIGN(const bool more, NextInFile(record, &fault));
    if (!more) {
      Close();
      continue;
    }
    if (fault.empty() && format_ != RecordFormat::kTfRecord && record->bytes.empty()) continue;
    if (fault.empty() && IsTable(format_) && TakeHeader(*record)) continue;
    if (fault.empty() && options_.checked) fault = FaultOf(*record);
    if (fault.empty()) {
      ++good_;
      return true;
    }
    TRY(AddBad(*record, std::move(fault)));
  }
}

}  // namespace shoal::data
