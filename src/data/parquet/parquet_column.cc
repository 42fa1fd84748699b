#include "data/parquet/parquet_column.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "data/parquet/codecs.h"
#include "data/parquet/parquet_rows.h"
#include "data/parquet/thrift_reader.h"

namespace shoal::data {
namespace {

constexpr size_t kBlock = 1 << 20;
constexpr size_t kMaxHead = 16u << 20;  // with statistics of long texts

enum PageType { kDataPage = 0, kIndexPage = 1, kDictionaryPage = 2, kDataPageV2 = 3 };
enum Encoding { kPlain = 0, kPlainDictionary = 2, kRle = 3, kRleDictionary = 8 };

}  // namespace

struct ParquetColumnReader::PageHead {
  int64_t type = -1;
  int64_t unpacked = -1;
  int64_t stored = -1;
  int64_t crc = 0;
  bool has_crc = false;
  int64_t values = -1;
  int64_t encoding = -1;
  int64_t definition_encoding = kRle;
  int64_t repetition_encoding = kRle;
  int64_t definition_bytes = 0;  // of version 2, as the next
  int64_t repetition_bytes = 0;
  bool is_packed = true;
};

bool ParquetColumnReader::IsTexts() const {
  const bool bytes =
      column_.type == ParquetType::kBytes || column_.type == ParquetType::kFixedBytes;
  return bytes && column_.meaning == ParquetMeaning::kPlain;
}

size_t ParquetColumnReader::SizeOf(const ParquetValues& values) const {
  if (IsTexts()) return values.texts.size();
  return std::max(values.integers.size(), values.reals.size());
}

TableCell ParquetColumnReader::CellAt(const ParquetValues& values, size_t i) const {
  using Kind = TableCell::Kind;
  if (IsTexts()) return {.kind = Kind::kText, .text = values.texts[i]};
  if (column_.type == ParquetType::kBoolean)
    return {
        .kind = Kind::kText, .text = values.integers[i] != 0 ? "true" : "false", .boolean = true};
  if (!values.integers.empty()) return {.kind = Kind::kInteger, .integer = values.integers[i]};
  const bool narrow =
      column_.type == ParquetType::kFloat || column_.meaning == ParquetMeaning::kFloat16;
  return {.kind = narrow ? Kind::kFloat : Kind::kReal, .real = values.reals[i]};
}

Status ParquetColumnReader::Enter(const ParquetChunk& chunk) {
  chunk_ = chunk;
  window_.clear();
  used_ = 0;
  window_at_ = chunk.begin;
  values_left_ = chunk.values;
  dictionary_.reset();
  page_.reset();
  slots_ = slot_ = value_ = 0;
  return Status::Ok();
}

// Reads until `size` bytes are there behind `used_`, or the chunk ends.
Status ParquetColumnReader::Ensure(size_t size) {
  if (window_.size() - used_ >= size) return Status::Ok();
  window_.erase(0, used_);
  window_at_ += used_;
  used_ = 0;
  const uint64_t end = chunk_.begin + chunk_.bytes;
  const uint64_t at = window_at_ + window_.size();
  const size_t want = std::max(size - window_.size(), kBlock);
  const size_t got = static_cast<size_t>(std::min<uint64_t>(want, end - at));
  const size_t before = window_.size();
  window_.resize(before + got);
  TRY(file_.Read(at, window_.data() + before, got));
  bytes_read_ += got;
  return Status::Ok();
}

Result<ParquetColumnReader::PageHead> ParquetColumnReader::ReadHead() {
  for (size_t room = 4096;; room *= 4) {
    TRY(Ensure(room));
    const std::string_view bytes = std::string_view(window_).substr(used_);
    ThriftReader in(bytes);
    PageHead head;
    const auto take = [&in](int64_t* to) -> Result<bool> {
      TRY_ASSIGN(*to, in.Integer());
      return true;
    };
    const auto data_head = [&](int64_t number, uint8_t type) -> Result<bool> {
      if (type != ThriftReader::kI32) return false;
      if (number == 1) return take(&head.values);
      if (number == 2) return take(&head.encoding);
      if (number == 3 && head.type == kDataPage) return take(&head.definition_encoding);
      if (number == 4 && head.type == kDataPage) return take(&head.repetition_encoding);
      return false;
    };
    const auto data_head_2 = [&](int64_t number, uint8_t type) -> Result<bool> {
      if (number == 7) head.is_packed = type != ThriftReader::kFalse;
      if (type != ThriftReader::kI32) return false;
      if (number == 1) return take(&head.values);
      if (number == 4) return take(&head.encoding);
      if (number == 5) return take(&head.definition_bytes);
      if (number == 6) return take(&head.repetition_bytes);
      return false;
    };
    const Status read = in.Struct([&](int64_t number, uint8_t type) -> Result<bool> {
      if (type == ThriftReader::kI32 && number == 1) return take(&head.type);
      if (type == ThriftReader::kI32 && number == 2) return take(&head.unpacked);
      if (type == ThriftReader::kI32 && number == 3) return take(&head.stored);
      if (type == ThriftReader::kI32 && number == 4) {
        head.has_crc = true;
        return take(&head.crc);
      }
      if (type != ThriftReader::kStruct) return false;
      if (number != 5 && number != 7 && number != 8) return false;
      TRY(number == 8 ? in.Struct(data_head_2) : in.Struct(data_head));
      return true;
    });
    if (!read.ok() && read.code() == Code::kOutOfRange && bytes.size() >= room && room < kMaxHead)
      continue;
    if (!read.ok()) return DataLoss("the head of a page is not readable: " + read.message());
    used_ += bytes.size() - in.left();
    return head;
  }
}

Status ParquetColumnReader::UnpackPage(const PageHead& head, std::string_view stored,
                                       std::string* to) const {
  const auto size = static_cast<size_t>(head.unpacked);
  to->resize(size);
  if (head.type != kDataPageV2) return Unpack(chunk_.codec, stored, to);
  // Levels of version 2 are not packed.
  const auto levels = static_cast<size_t>(head.definition_bytes + head.repetition_bytes);
  if (!head.is_packed || chunk_.codec == 0) return Unpack(0, stored, to);
  std::string values(size - levels, '\0');
  // A page of nulls only may have no packed bytes at all.
  if (!values.empty()) TRY(Unpack(chunk_.codec, stored.substr(levels), &values));
  to->assign(stored.substr(0, levels));
  *to += values;
  return Status::Ok();
}

Result<bool> ParquetColumnReader::NextPage() {
  for (;;) {
    if (values_left_ == 0) return false;
    TRY(Ensure(1));
    if (window_.size() == used_) return DataLoss("its pages end before its values");
    TRY_ASSIGN(const PageHead head, ReadHead());
    const auto limit = static_cast<int64_t>(kMaxParquetPage);
    if (head.stored < 0 || head.unpacked < 0 || head.stored > limit || head.unpacked > limit)
      return DataLoss("a page has a wrong size, or more than 256 MiB");
    const auto stored_size = static_cast<size_t>(head.stored);
    TRY(Ensure(stored_size));
    if (window_.size() - used_ < stored_size) return DataLoss("a page ends behind its column");
    const std::string_view stored = std::string_view(window_).substr(used_, stored_size);
    used_ += stored_size;
    if (head.type == kIndexPage) continue;
    if (head.type != kDataPage && head.type != kDataPageV2 && head.type != kDictionaryPage)
      return DataLoss("a page has an unknown type");
    const uLong crc =
        ::crc32(0, reinterpret_cast<const Bytef*>(stored.data()), static_cast<uInt>(stored.size()));
    if (head.has_crc && static_cast<uint32_t>(head.crc) != static_cast<uint32_t>(crc))
      return DataLoss("the checksum of a page is wrong");
    if (head.values < 0 || head.values > static_cast<int64_t>(kMaxParquetPageValues))
      return DataLoss("a page has a wrong number of values, or more than 16 million");
    const int64_t levels = head.definition_bytes + head.repetition_bytes;
    if (head.definition_bytes < 0 || head.repetition_bytes < 0 || levels > head.stored ||
        levels > head.unpacked)
      return DataLoss("the levels of a page do not fit into it");
    if (head.type == kDictionaryPage) {
      TRY(TakeDictionary(head, stored));
      continue;
    }
    // Texts of the row that goes on stay valid.
    if (page_ != nullptr) old_pages_.push_back(std::move(page_));
    page_ = std::make_unique<Page>();
    TRY(UnpackPage(head, stored, &page_->bytes));
    TRY(TakeData(head));
    if (slots_ > values_left_) return DataLoss("its pages have more values than its column");
    values_left_ -= slots_;
    if (slots_ > 0) return true;
  }
}

Status ParquetColumnReader::TakeDictionary(const PageHead& head, std::string_view stored) {
  if (dictionary_ != nullptr) return DataLoss("it has two dictionaries");
  if (head.encoding != kPlain && head.encoding != kPlainDictionary)
    return DataLoss("its dictionary has a wrong encoding");
  dictionary_ = std::make_unique<Page>();
  TRY(UnpackPage(head, stored, &dictionary_->bytes));
  return DecodeValues(column_, kPlain, dictionary_->bytes, static_cast<size_t>(head.values),
                      &dictionary_->values);
}

Status ParquetColumnReader::ReadLevels(std::string_view bytes, int highest, size_t count,
                                       std::vector<uint32_t>* levels) const {
  TRY(DecodeRuns(bytes, static_cast<int>(std::bit_width(static_cast<unsigned>(highest))), count,
                 levels));
  const auto most = static_cast<uint32_t>(highest);
  if (std::ranges::any_of(*levels, [&](uint32_t level) { return level > most; }))
    return DataLoss("a level is higher than its column's");
  return Status::Ok();
}

Status ParquetColumnReader::TakeLevels(const PageHead& head, std::string_view* page) {
  definitions_.clear();
  repetitions_.clear();
  struct Part {
    int highest;
    int64_t encoding;
    int64_t bytes;
    std::vector<uint32_t>* levels;
  };
  for (const Part& part :
       {Part{column_.repetitions, head.repetition_encoding, head.repetition_bytes, &repetitions_},
        Part{column_.definitions, head.definition_encoding, head.definition_bytes,
             &definitions_}}) {
    size_t size = static_cast<size_t>(part.bytes);
    if (head.type == kDataPage && part.highest > 0) {
      if (part.encoding != kRle)
        return InvalidArgument("its levels are encoded in the old way, which is not read");
      uint32_t length = 0;
      if (page->size() < sizeof length) return DataLoss("its levels end too early");
      std::memcpy(&length, page->data(), sizeof length);
      page->remove_prefix(sizeof length);
      size = length;
    }
    if (size > page->size()) return DataLoss("its levels end too early");
    if (part.highest > 0) TRY(ReadLevels(page->substr(0, size), part.highest, slots_, part.levels));
    page->remove_prefix(size);
  }
  return Status::Ok();
}

Status ParquetColumnReader::TakeData(const PageHead& head) {
  slots_ = static_cast<size_t>(head.values);
  slot_ = value_ = 0;
  std::string_view page = page_->bytes;
  TRY(TakeLevels(head, &page));
  const auto highest = static_cast<uint32_t>(column_.definitions);
  const size_t count =
      definitions_.empty()
          ? slots_
          : static_cast<size_t>(std::count(definitions_.begin(), definitions_.end(), highest));
  indices_.clear();
  indexed_ = head.encoding == kPlainDictionary || head.encoding == kRleDictionary;
  if (!indexed_)
    return DecodeValues(column_, static_cast<int>(std::clamp<int64_t>(head.encoding, -1, 100)),
                        page, count, &page_->values);
  if (count == 0) return Status::Ok();
  if (dictionary_ == nullptr) return DataLoss("a page needs a dictionary, and there is none");
  if (page.empty()) return DataLoss("its values end too early");
  TRY(DecodeRuns(page.substr(1), static_cast<uint8_t>(page.front()), count, &indices_));
  const size_t size = SizeOf(dictionary_->values);
  if (std::ranges::any_of(indices_, [size](uint32_t i) { return i >= size; }))
    return DataLoss("a value is behind the end of the dictionary");
  return Status::Ok();
}

Result<bool> ParquetColumnReader::HasSlot() {
  if (slot_ < slots_) return true;
  return NextPage();
}

TableCell ParquetColumnReader::Take() {
  const bool present =
      definitions_.empty() || definitions_[slot_] == static_cast<uint32_t>(column_.definitions);
  ++slot_;
  if (!present) return {};
  const size_t i = value_++;
  return indexed_ ? CellAt(dictionary_->values, indices_[i]) : CellAt(page_->values, i);
}

Status ParquetColumnReader::NextRow(std::vector<TableCell>* values) {
  old_pages_.clear();
  TRY_ASSIGN(bool more, HasSlot());
  if (!more) return DataLoss("it has fewer values than its row group has rows");
  if (column_.repetitions == 0) {
    values->push_back(Take());
    return Status::Ok();
  }
  if (!repetitions_.empty() && repetitions_[slot_] != 0)
    return DataLoss("its first value belongs to no row");
  do {
    const bool element = definitions_.empty() ||
                         definitions_[slot_] >= static_cast<uint32_t>(column_.list_definition);
    const TableCell cell = Take();
    if (element) values->push_back(cell);
    TRY_ASSIGN(more, HasSlot());
  } while (more && repetitions_[slot_] > 0);
  return Status::Ok();
}

}  // namespace shoal::data
