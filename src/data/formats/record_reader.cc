#include "data/formats/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "data/formats/csv_cells.h"
#include "data/formats/fields.h"
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

// A row of named fields as one line of JSON.
class JsonRow final : public FieldVisitor {
 public:
  void Value(std::string_view name, const TableCell& cell) override {
    object_[EscapedUtf8(name)] = ValueOf(cell);
  }
  void List(std::string_view name, std::span<const TableCell> values) override {
    json::array list;
    for (const TableCell& cell : values) list.push_back(ValueOf(cell));
    object_[EscapedUtf8(name)] = std::move(list);
  }
  void LeftOut(std::string_view) override {}
  std::string Finish() const { return ToText(object_); }

 private:
  static json::value ValueOf(const TableCell& cell) {
    using Kind = TableCell::Kind;
    if (cell.kind == Kind::kText) return json::value(EscapedUtf8(cell.text));
    if (cell.kind == Kind::kInteger) return cell.integer;
    const bool real = cell.kind == Kind::kFloat || cell.kind == Kind::kReal;
    if (!real || !std::isfinite(cell.real)) return nullptr;
    std::string room;
    const std::string_view text = TextOf(cell, &room);
    double value = cell.real;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  json::object object_;
};

bool IsTable(RecordFormat format) {
  return format == RecordFormat::kCsv || format == RecordFormat::kTsv;
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

RecordReader::RecordReader(Corpus corpus, RecordFormat format, RecordOptions options)
    : corpus_(std::move(corpus)), format_(format), options_(options) {}
RecordReader::~RecordReader() = default;

Result<bool> RecordReader::OpenNext() {
  if (next_file_ == corpus_.files().size()) return false;
  const SourceFile& file = corpus_.files()[next_file_++];
  if (format_ == RecordFormat::kParquet) {
    TRY_ASSIGN(rows_, ParquetRows::Open(file, [](std::string_view) { return true; }));
    next_group_ = 0;
  } else {
    TRY_ASSIGN(auto stream, TextStream::Open(file));
    buffer_.Reset(std::move(stream));
  }
  number_ = 0;
  return true;
}

// A line that is too long is passed over without being kept.
Result<bool> RecordReader::NextLine(Record* record, std::string* fault) {
  size_t searched = 0;
  bool too_long = false;
  const uint64_t begin = buffer_.place();
  for (;;) {
    const std::string_view unused = buffer_.unused();
    const size_t newline = unused.find('\n', searched);
    const bool found = newline != std::string_view::npos;
    if (found || buffer_.at_end()) {
      if (!found && unused.empty() && !too_long) return false;
      std::string_view line = unused.substr(0, newline);
      buffer_.Use(found ? newline + 1 : unused.size());
      if (line.ends_with('\r')) line.remove_suffix(1);
      *record = {line, next_file_ - 1, begin, ++number_};
      if (too_long) *fault = fmt::format("the line is longer than {} MiB", kMaxRecord >> 20);
      return true;
    }
    searched = unused.size();
    if (searched > kMaxRecord) {
      too_long = true;
      buffer_.Use(searched);
      searched = 0;
    }
    TRY(buffer_.Ensure(searched + 1).status());
  }
}

Result<bool> RecordReader::NextTfRecord(Record* record, std::string* fault) {
  TfRecord taken;
  const uint64_t at = buffer_.place();
  const auto more = TakeTfRecord(&buffer_, 0, UINT64_MAX, &taken);
  if (!more.ok() && more.status().code() == Code::kDataLoss)
    return DataLoss(fmt::format("{}, record {} at byte {}: {}",
                                corpus_.files()[next_file_ - 1].path.string(), number_ + 1, at,
                                more.status().message()));
  if (!more.ok() || !*more) return more;
  if (!taken.intact) *fault = "its checksum is wrong";
  *record = {taken.bytes, next_file_ - 1, taken.begin, ++number_};
  return true;
}

Result<bool> RecordReader::NextParquetRow(Record* record) {
  for (;;) {
    JsonRow row;
    const uint64_t before = rows_->bytes_read();
    TRY_ASSIGN(const bool more, rows_->Next(&row));
    row_bytes_ += rows_->bytes_read() - before;
    if (more) {
      row_ = row.Finish();
      *record = {row_, next_file_ - 1, 0, ++number_};
      return true;
    }
    if (next_group_ == rows_->footer().groups.size()) return false;
    TRY(rows_->Enter(next_group_++));
  }
}

// What is wrong with the record; empty: nothing.
std::string RecordReader::FaultOf(const Record& record) {
  if (format_ == RecordFormat::kJsonLines) {
    const auto parsed = ParseJsonObject(record.bytes);
    return parsed.ok() ? "" : "it is no JSON object: " + parsed.status().message();
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

Status RecordReader::CountBad(const Record& record, std::string reason) {
  ++bad_;
  if (first_bad_.size() < kKeptBadRecords) {
    first_bad_.push_back({corpus_.files()[record.file].path.string(), record.offset, record.number,
                          std::move(reason)});
  }
  return CheckShare(false);
}

Result<bool> RecordReader::Next(Record* record) {
  for (;;) {
    if (!buffer_.open() && rows_ == nullptr) {
      TRY_ASSIGN(const bool opened, OpenNext());
      if (!opened) {
        TRY(CheckShare(true));
        return false;
      }
    }
    std::string fault;
    TRY_ASSIGN(const bool more, format_ == RecordFormat::kParquet    ? NextParquetRow(record)
                                : format_ == RecordFormat::kTfRecord ? NextTfRecord(record, &fault)
                                                                     : NextLine(record, &fault));
    if (!more) {
      buffer_.Reset(nullptr);
      rows_.reset();
      continue;
    }
    if (fault.empty() && format_ != RecordFormat::kTfRecord && record->bytes.empty()) continue;
    if (fault.empty() && IsTable(format_) && record->number == 1) {
      bool closed = true;
      auto cells = RowCells(record->bytes, format_ == RecordFormat::kTsv ? '\t' : ',', &closed);
      if (columns_.empty()) columns_ = std::move(cells);
      continue;
    }
    if (fault.empty()) fault = FaultOf(*record);
    if (fault.empty()) {
      ++good_;
      return true;
    }
    TRY(CountBad(*record, std::move(fault)));
  }
}

}  // namespace shoal::data
