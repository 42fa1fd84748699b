#include "data/formats/tfrecord.h"

#include <fmt/format.h>

#include <cstring>

#include "base/bytes.h"

namespace shoal::data {

uint32_t MaskedCrc(std::string_view bytes) {
  constexpr uint32_t kDelta = 0xa282ead8;
  const uint32_t crc = Crc32c(bytes.data(), bytes.size());
  return ((crc >> 15) | (crc << 17)) + kDelta;
}

bool MatchesMaskedCrc(std::string_view bytes, std::string_view foot) {
  uint32_t stored = 0;
  if (foot.size() != sizeof stored) return false;
  std::memcpy(&stored, foot.data(), sizeof stored);
  return stored == MaskedCrc(bytes);
}

Result<uint64_t> TfRecordLength(std::string_view head) {
  uint64_t length = 0;
  if (head.size() != kTfRecordHead) return DataLoss("the head of a record is cut off");
  std::memcpy(&length, head.data(), sizeof length);
  if (!MatchesMaskedCrc(head.substr(0, sizeof length), head.substr(sizeof length)))
    return DataLoss("the checksum of its length is wrong: the file is damaged, or no TFRecord");
  return length;
}

void AppendTfRecord(std::string_view bytes, std::string* to) {
  ByteWriter out(to);
  const uint64_t length = bytes.size();
  out.Put(length);
  out.Put(MaskedCrc(std::string_view(reinterpret_cast<const char*>(&length), sizeof length)));
  out.PutRaw(bytes.data(), bytes.size());
  out.Put(MaskedCrc(bytes));
}

Result<bool> TakeTfRecord(StreamBuffer* buffer, uint64_t from, uint64_t until, TfRecord* record) {
  *record = {};
  record->begin = buffer->place();
  TRY_ASSIGN(const bool head, buffer->Ensure(kTfRecordHead));
  if (record->begin >= until) return false;
  const Status ends = DataLoss("the file ends inside a record");
  if (!head) return buffer->unused().empty() ? Result<bool>(false) : Result<bool>(ends);
  TRY_ASSIGN(const uint64_t length, TfRecordLength(buffer->unused().substr(0, kTfRecordHead)));
  if (length > kMaxTfRecord)
    return DataLoss(fmt::format("it has {} bytes, more than {} MiB", length, kMaxTfRecord >> 20));
  const auto size = static_cast<size_t>(length);
  const size_t all = kTfRecordHead + size + kTfRecordFoot;
  record->skipped = record->begin < from;
  TRY_ASSIGN(const bool whole, record->skipped ? buffer->Skip(all) : buffer->Ensure(all));
  if (!whole) return ends;
  if (record->skipped) return true;
  const std::string_view framed = buffer->unused().substr(0, all);
  record->bytes = framed.substr(kTfRecordHead, size);
  record->intact = MatchesMaskedCrc(record->bytes, framed.substr(kTfRecordHead + size));
  buffer->Use(all);
  return true;
}

}  // namespace shoal::data
