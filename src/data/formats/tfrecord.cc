#include "data/formats/tfrecord.h"

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

}  // namespace shoal::data
