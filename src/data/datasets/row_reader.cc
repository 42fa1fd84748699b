#include "data/datasets/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "data/formats/csv_cells.h"

namespace shoal::data {
namespace {

using Kind = TableCell::Kind;

constexpr std::string_view kBlanks = " \t\r";
constexpr size_t kShownBytes = 40;

Result<uint64_t> CountIn(const json::object& object, std::string_view field) {
  TRY_ASSIGN(const int64_t value, GetInt(object, field));
  if (value < 0) return InvalidArgument(std::string(field) + ": got a negative number");
  return static_cast<uint64_t>(value);
}

constexpr int kHex = 16;
constexpr int kDecimal = 10;

Status ParseDigits(std::string_view field, const std::string& digits, int base, uint64_t* to) {
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, *to, base);
  if (error == std::errc() && stop == end) return Status::Ok();
  return InvalidArgument(fmt::format("{}: got {}, expected a number", field, digits));
}

// What a position of a shuffled part has beside the others; `at` is the window's.
Status ParseShuffle(const json::value& value, ReadPosition* position) {
  if (!value.is_object()) return InvalidArgument("shuffle: expected an object");
  const json::object& object = value.get_object();
  ShuffleOptions& shuffle = position->shuffle.emplace();
  TRY_ASSIGN(const std::string seed, GetString(object, "seed"));
  TRY(ParseDigits("seed", seed, kDecimal, &shuffle.seed));
  TRY_ASSIGN(shuffle.window, CountIn(object, "window"));
  TRY_ASSIGN(position->shuffled.piece, CountIn(object, "piece"));
  TRY_ASSIGN(position->shuffled.windows, CountIn(object, "windows"));
  TRY_ASSIGN(position->shuffled.given, CountIn(object, "given"));
  position->shuffled.position = std::exchange(position->place.position, 0);
  return Status::Ok();
}

// Passes on the fields that are wanted.
class WantedFields final : public FieldVisitor {
 public:
  WantedFields(const std::function<bool(std::string_view)>* wants, FieldVisitor* target)
      : wants_(*wants), target_(target) {}
  void Value(std::string_view name, const TableCell& cell) override {
    if (wants_(name)) target_->Value(name, cell);
  }
  void List(std::string_view name, std::span<const TableCell> values) override {
    if (wants_(name)) target_->List(name, values);
  }
  void LeftOut(std::string_view name) override {
    if (wants_(name)) target_->LeftOut(name);
  }

 private:
  const std::function<bool(std::string_view)>& wants_;
  FieldVisitor* const target_;
};

// The next word of the line; empty at its end, or before a comment.
std::string_view NextWord(std::string_view* line) {
  const size_t begin = std::min(line->find_first_not_of(kBlanks), line->size());
  line->remove_prefix(begin);
  if (line->starts_with('#')) line->remove_prefix(line->size());
  const size_t end = std::min(line->find_first_of(kBlanks), line->size());
  const std::string_view word = line->substr(0, end);
  line->remove_prefix(end);
  return word;
}

bool IsNumber(std::string_view text) {
  double value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

Result<Shard> ShardOf(const Corpus& corpus, RecordFormat format, const PartNumber& number) {
  if (number.part >= number.parts || number.within >= number.of)
    return InvalidArgument(
        fmt::format("part: got {}/{} and {}/{} of it, expected numbers below "
                    "their counts",
                    number.part, number.parts, number.within, number.of));
  if (format != RecordFormat::kParquet)
    return corpus.MakeShardWithin(number.part, {number.parts}, number.within, number.of);
  return MakeRowShard(corpus, number.part * number.of + number.within, number.parts * number.of);
}

// What is left of the shard from this place on.
Shard RestOf(Shard shard, const ShardBoundary& place) {
  const auto done = [&](const Segment& segment) {
    return segment.file < place.file ||
           (segment.file == place.file && place.position >= segment.end);
  };
  std::erase_if(shard.segments, done);
  return shard;
}

std::string OrderOf(const std::optional<ShuffleOptions>& shuffle) {
  if (!shuffle) return "the stored order";
  return fmt::format("the order of seed {} with windows of {}", shuffle->seed, shuffle->window);
}

}  // namespace

std::string TextOf(const ReadPosition& position) {
  const PartNumber& number = position.number;
  json::object object{{"part", number.part},
                      {"parts", number.parts},
                      {"within", number.within},
                      {"of", number.of},
                      {"data", fmt::format("{:016x}", position.data)},
                      {"records", position.records},
                      {"file", position.place.file},
                      {"at", fmt::to_string(position.place.position)}};
  if (position.shuffle) {
    const ShufflePlace& place = position.shuffled;
    object["at"] = fmt::to_string(place.position);
    object["shuffle"] = json::object{{"seed", fmt::to_string(position.shuffle->seed)},
                                     {"window", position.shuffle->window},
                                     {"piece", place.piece},
                                     {"windows", place.windows},
                                     {"given", place.given}};
  }
  return ToText(object);
}

Result<ReadPosition> ParseReadPosition(std::string_view text) {
  const auto parsed = ParseJsonObject(text);
  if (!parsed.ok()) return parsed.status().With("position");
  ReadPosition position;
  const auto read = [&]() -> Status {
    PartNumber& number = position.number;
    TRY_ASSIGN(number.part, CountIn(*parsed, "part"));
    TRY_ASSIGN(number.parts, CountIn(*parsed, "parts"));
    TRY_ASSIGN(number.within, CountIn(*parsed, "within"));
    TRY_ASSIGN(number.of, CountIn(*parsed, "of"));
    TRY_ASSIGN(position.records, CountIn(*parsed, "records"));
    TRY_ASSIGN(position.place.file, CountIn(*parsed, "file"));
    TRY_ASSIGN(const std::string data, GetString(*parsed, "data"));
    TRY_ASSIGN(const std::string at, GetString(*parsed, "at"));
    TRY(ParseDigits("data", data, kHex, &position.data));
    TRY(ParseDigits("at", at, kDecimal, &position.place.position));
    if (const json::value* const shuffle = parsed->if_contains("shuffle"))
      return ParseShuffle(*shuffle, &position);
    return Status::Ok();
  };
  if (const Status status = read(); !status.ok()) return status.With("position");
  return position;
}

Result<std::unique_ptr<RowReader>> RowReader::Open(const Corpus& corpus, RecordFormat format,
                                                   RowOptions options) {
  std::unique_ptr<RowReader> rows(new RowReader(corpus, format, std::move(options)));
  TRY(rows->Start());
  return rows;
}

Status RowReader::Start() {
  TRY_ASSIGN(Shard shard, ShardOf(corpus_, format_, options_.number));
  ReadPosition from;
  if (!options_.from.empty()) {
    TRY_ASSIGN(from, ParseReadPosition(options_.from));
    if (from.data != corpus_.fingerprint())
      return InvalidArgument(
          "position: it is one of other data: the files, their order or their lengths have changed "
          "since it was saved");
    if (from.number != options_.number)
      return InvalidArgument(fmt::format(
          "position: it is one of part {}/{} ({}/{} of it), expected {}/{} ({}/{})",
          from.number.part, from.number.parts, from.number.within, from.number.of,
          options_.number.part, options_.number.parts, options_.number.within, options_.number.of));
    if (from.shuffle != options_.shuffle)
      return InvalidArgument(fmt::format("position: it is one of {}, expected {}",
                                         OrderOf(from.shuffle), OrderOf(options_.shuffle)));
  }
  if (format_ == RecordFormat::kJsonLines) fields_ = MakeJsonFields();
  if (format_ == RecordFormat::kTfRecord) fields_ = MakeTfExampleFields();
  std::optional<uint64_t> inside;  // where the first segment is entered, unless at its begin
  if (options_.shuffle) {
    TRY_ASSIGN(shard, ShufflePieces(corpus_, format_, shard, options_.shuffle->seed));
    std::vector<Segment>& pieces = shard.segments;
    pieces.erase(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(
                                                      from.shuffled.piece, pieces.size())));
    if (!pieces.empty() && from.shuffled.position > pieces.front().begin)
      inside = from.shuffled.position;
  } else if (from.records > 0) {
    shard = RestOf(std::move(shard), from.place);
    if (!shard.segments.empty() && shard.segments.front().file == from.place.file)
      inside = from.place.position;
  }
  reader_ = std::make_unique<RecordReader>(
      corpus_, std::move(shard), format_,
      RecordOptions{.max_bad = options_.max_bad, .checked = false, .wants = options_.wants});
  if (inside) reader_->StartAt(*inside);
  begin_ = from.shuffled;
  records_ = from.records;
  return Status::Ok();
}

ReadPosition RowReader::position() const {
  if (!options_.shuffle)
    return {options_.number, corpus_.fingerprint(), records_, reader_->next_place()};
  return {options_.number,  corpus_.fingerprint(),
          records_,         {},
          options_.shuffle, shuffled_ ? shuffled_->place() : begin_};
}

// The next record of the order that is asked for; of Parquet, with `fields`, without its bytes.
Result<bool> RowReader::NextStored(Record* record, bool fields) {
  if (options_.shuffle && shuffled_ == nullptr)
    shuffled_ = std::make_unique<ShuffledRecords>(reader_.get(), *options_.shuffle, begin_, fields);
  return shuffled_ != nullptr ? shuffled_->Next(record) : reader_->Next(record);
}

Result<bool> RowReader::NextRecord(Record* record) {
  TRY_ASSIGN(const bool more, NextStored(record, false));
  records_ += more ? 1 : 0;
  return more;
}

Result<bool> RowReader::NextRow(RowTarget* target) {
  Record record;
  for (;;) {
    target->BeginRow();
    std::string fault;
    if (format_ == RecordFormat::kParquet && options_.shuffle) {
      TRY_ASSIGN(const bool more, NextStored(&record, true));
      if (!more) return false;
      shuffled_->GiveFields(target);
    } else if (format_ == RecordFormat::kParquet) {
      const ShardBoundary place = reader_->next_place();
      record = {{}, place.file, 0, place.position + 1};
      TRY_ASSIGN(const bool more, reader_->NextFields(target));
      if (!more) return false;
    } else {
      TRY_ASSIGN(const bool more, NextStored(&record, false));
      if (!more) return false;
      fault = ReadFields(record, target);
    }
    if (fault.empty()) fault = target->EndRow();
    if (fault.empty()) {
      ++records_;
      return true;
    }
    TRY(reader_->CountBad(record, std::move(fault)));
  }
}

std::string RowReader::ReadFields(const Record& record, RowTarget* target) {
  switch (format_) {
    case RecordFormat::kCsv:
    case RecordFormat::kTsv:
      return ReadCells(record.bytes, target);
    case RecordFormat::kLibsvm:
    case RecordFormat::kLibffm:
      return ReadFeatures(record.bytes, target);
    case RecordFormat::kText:
      target->Value("line", {.kind = Kind::kText, .text = record.bytes});
      return "";
    default:
      break;
  }
  std::string expected;
  if (options_.wants) {
    WantedFields wanted(&options_.wants, target);
    expected = fields_->Read(record.bytes, &wanted);
  } else {
    expected = fields_->Read(record.bytes, target);
  }
  return expected.empty() ? "" : "expected " + expected;
}

std::string RowReader::ReadCells(std::string_view line, RowTarget* target) {
  const std::vector<std::string>& names = reader_->columns();
  if (wanted_.size() != names.size()) {
    wanted_.clear();
    for (const std::string& name : names) wanted_.push_back(Wants(name));
  }
  const char delimiter = format_ == RecordFormat::kTsv ? '\t' : ',';
  const char* at = line.data();
  const char* const end = at + line.size();
  std::string_view cell;
  size_t column = 0;
  for (; at <= end && column < names.size(); ++column) {
    if (!NextCell(&at, end, delimiter, &room_, &cell)) return "a quote is not closed";
    if (!wanted_[column]) continue;
    target->Value(names[column], cell.empty() ? TableCell() : TableCell{Kind::kParsed, cell});
  }
  if (column == names.size() && at > end) return "";
  return fmt::format("it has {} cells than {}, the number of its file's columns",
                     at <= end ? "more" : "fewer", names.size());
}

std::string RowReader::ReadFeatures(std::string_view line, RowTarget* target) {
  std::string_view label = NextWord(&line);
  if (!IsNumber(label)) return "it does not begin with a number";
  if (label.starts_with('+')) label.remove_prefix(1);
  const bool with_fields = format_ == RecordFormat::kLibffm;
  indices_.clear();
  values_.clear();
  groups_.clear();
  for (std::string_view word = NextWord(&line); !word.empty(); word = NextWord(&line)) {
    const size_t last = word.rfind(':');
    const size_t first = with_fields ? word.find(':') : std::string_view::npos;
    const bool colons = last != std::string_view::npos && (!with_fields || first < last);
    const std::string_view index =
        !colons ? ""
                : (with_fields ? word.substr(first + 1, last - first - 1) : word.substr(0, last));
    const bool good = colons && IsNumber(index) && IsNumber(word.substr(last + 1)) &&
                      (!with_fields || IsNumber(word.substr(0, first)));
    if (!good)
      return fmt::format("expected {} in place of {}",
                         with_fields ? "FIELD:NUMBER:VALUE" : "NUMBER:VALUE",
                         EscapedUtf8(word.substr(0, kShownBytes)));
    indices_.push_back({Kind::kParsed, index});
    values_.push_back({Kind::kParsed, word.substr(last + 1)});
    if (with_fields) groups_.push_back({Kind::kParsed, word.substr(0, first)});
  }
  if (Wants("label")) target->Value("label", {Kind::kParsed, label});
  if (with_fields && Wants("fields")) target->List("fields", groups_);
  if (Wants("indices")) target->List("indices", indices_);
  if (Wants("values")) target->List("values", values_);
  return "";
}

}  // namespace shoal::data
