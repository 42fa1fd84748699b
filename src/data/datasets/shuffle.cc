#include "data/datasets/shuffle.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/parquet/parquet_rows.h"
#include "data/text/sequence_digest.h"

namespace shoal::data {
namespace {

constexpr uint64_t kPieces = 256;  // of a shard
constexpr uint64_t kLeastPiece = 256 << 10;
constexpr size_t kBlock = 1 << 20;

// SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"). Not
// the standard library's distributions, whose numbers differ between implementations.
class Numbers {
 public:
  Numbers(uint64_t seed, uint64_t stream) : state_(seed) { state_ = Next() ^ stream; }
  uint64_t Next() {
    state_ += 0x9e37'79b9'7f4a'7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
    return z ^ (z >> 31);
  }
  // Below `limit`, which is above 0.
  uint64_t Below(uint64_t limit) {
    return static_cast<uint64_t>(static_cast<Wide>(Next()) * limit >> 64);
  }

 private:
  uint64_t state_;
};

// Streams of Numbers: the pieces' order, and behind it the windows'.
constexpr uint64_t kOfPieces = 0;
constexpr uint64_t kOfWindows = 1;

template <typename T>
void ShuffleAll(Numbers numbers, std::vector<T>* values) {
  for (size_t i = values->size(); i > 1; --i)
    std::swap((*values)[i - 1], (*values)[numbers.Below(i)]);
}

void CutBytes(const SourceFile& file, const Segment& segment, uint64_t piece,
              std::vector<Segment>* to) {
  const uint64_t end = std::min(segment.end, file.stored_bytes);
  uint64_t begin = segment.begin;
  for (; end - begin > piece; begin += piece) to->push_back({segment.file, begin, begin + piece});
  to->push_back({segment.file, begin, segment.end});
}

Status CutRows(const SourceFile& file, const Segment& segment, std::vector<Segment>* to) {
  TRY_ASSIGN(const auto rows, ParquetRows::Open(file, [](std::string_view) { return false; }));
  uint64_t begin = segment.begin;
  uint64_t border = 0;
  for (const ParquetRowGroup& group : rows->footer().groups) {
    border += group.rows;
    if (border <= begin || border >= segment.end) continue;
    to->push_back({segment.file, begin, border});
    begin = border;
  }
  to->push_back({segment.file, begin, segment.end});
  return Status::Ok();
}

}  // namespace

Result<Shard> ShufflePieces(const Corpus& corpus, RecordFormat format, const Shard& shard,
                            uint64_t seed) {
  Shard pieces{shard.index, shard.count, {}};
  uint64_t bytes = 0;
  for (const Segment& segment : shard.segments) {
    const uint64_t stored = corpus.files()[segment.file].stored_bytes;
    bytes += std::min(segment.end, stored) - std::min(segment.begin, stored);
  }
  for (const Segment& segment : shard.segments) {
    const SourceFile& file = corpus.files()[segment.file];
    if (format == RecordFormat::kParquet) {
      TRY(CutRows(file, segment, &pieces.segments));
    } else if (format == RecordFormat::kTfRecord || file.compression != Compression::kNone) {
      pieces.segments.push_back(segment);
    } else {
      CutBytes(file, segment, std::max(bytes / kPieces, kLeastPiece), &pieces.segments);
    }
  }
  ShuffleAll(Numbers(seed, kOfPieces), &pieces.segments);
  return pieces;
}

std::string_view KeptRows::Keep(std::string_view text) {
  if (texts_.empty() || texts_.back().capacity() - texts_.back().size() < text.size())
    texts_.emplace_back().reserve(std::max(kBlock, text.size()));
  std::string& block = texts_.back();
  const size_t at = block.size();
  block.append(text);
  bytes_ += text.size();
  return std::string_view(block).substr(at);
}

void KeptRows::Add(std::string_view name, Kind kind, std::span<const TableCell> cells) {
  const auto known = names_.try_emplace(std::string(name), 0).first;
  fields_.push_back({&known->first, kind, cells_.size(), cells.size()});
  for (TableCell cell : cells) {
    cell.text = Keep(cell.text);
    cells_.push_back(cell);
  }
  bytes_ += sizeof(Field) + cells.size() * sizeof(TableCell);
}

void KeptRows::Value(std::string_view name, const TableCell& cell) {
  Add(name, Kind::kValue, {&cell, 1});
}
void KeptRows::List(std::string_view name, std::span<const TableCell> values) {
  Add(name, Kind::kList, values);
}
void KeptRows::LeftOut(std::string_view name) { Add(name, Kind::kLeftOut, {}); }

void KeptRows::Give(size_t row, FieldVisitor* visitor) const {
  const size_t end = row + 1 < rows_.size() ? rows_[row + 1] : fields_.size();
  for (size_t i = rows_[row]; i < end; ++i) {
    const Field& field = fields_[i];
    const std::span<const TableCell> cells(cells_.data() + field.first, field.count);
    switch (field.kind) {
      case Kind::kValue:
        visitor->Value(*field.name, cells.front());
        break;
      case Kind::kList:
        visitor->List(*field.name, cells);
        break;
      case Kind::kLeftOut:
        visitor->LeftOut(*field.name);
        break;
    }
  }
}

void KeptRows::Clear() {
  rows_.clear();
  fields_.clear();
  cells_.clear();
  texts_.clear();
  bytes_ = 0;
}

ShuffledRecords::ShuffledRecords(RecordReader* reader, ShuffleOptions options, ShufflePlace from,
                                 bool fields)
    : reader_(*reader),
      options_(options),
      first_piece_(from.piece),
      fields_(fields),
      place_(from) {}

Status ShuffledRecords::Fill() {
  kept_.Clear();
  records_.clear();
  place_.piece = first_piece_ + reader_.next_segment();
  place_.position = reader_.next_place().position;
  while (records_.size() < options_.window && kept_.bytes() < kShuffleBytes) {
    kept_.BeginRow();
    Record record;
    if (fields_) {
      const ShardBoundary place = reader_.next_place();
      record = {{}, place.file, 0, place.position + 1};
      TRY_ASSIGN(const bool more, reader_.NextFields(&kept_));
      if (!more) break;
    } else {
      TRY_ASSIGN(const bool more, reader_.Next(&record));
      if (!more) break;
      record.bytes = kept_.Keep(record.bytes);
    }
    records_.push_back(record);
  }
  order_.resize(records_.size());
  std::iota(order_.begin(), order_.end(), 0);
  ShuffleAll(Numbers(options_.seed, kOfWindows + place_.windows), &order_);
  filled_ = true;
  return Status::Ok();
}

Result<bool> ShuffledRecords::Next(Record* record) {
  if (!filled_) TRY(Fill());
  if (place_.given > order_.size())
    return InvalidArgument("position: it is behind the end of its window");
  if (place_.given == order_.size() && !order_.empty()) {
    ++place_.windows;
    place_.given = 0;
    TRY(Fill());
  }
  if (order_.empty()) return false;
  row_ = order_[place_.given++];
  *record = records_[row_];
  return true;
}

}  // namespace shoal::data
