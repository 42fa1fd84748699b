// TFRecord, TensorFlow's file of records: for each, its length (u64), the length's masked CRC32C
// (u32), the bytes, and their masked CRC32C (u32), little-endian. Source:
// tensorflow/core/lib/io/record_reader.h and tensorflow/core/lib/hash/crc32c.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/formats/stream_buffer.h"

namespace shoal::data {

inline constexpr size_t kTfRecordHead = 12;
inline constexpr size_t kTfRecordFoot = 4;

// CRC32C, rotated and offset, so that a checksum of data with checksums in it is no fixed point.
uint32_t MaskedCrc(std::string_view bytes);
// Whether `foot`, four bytes, is the masked checksum of `bytes`.
bool MatchesMaskedCrc(std::string_view bytes, std::string_view foot);

// The length in a head of kTfRecordHead bytes; DataLoss if its checksum is wrong.
Result<uint64_t> TfRecordLength(std::string_view head);

// A record within its framing.
struct TfRecord {
  std::string_view bytes;  // valid until the buffer is used again; empty if it was skipped
  uint64_t begin = 0;      // place of its head in the file
  bool skipped = false;
  bool intact = false;  // its checksum is right
};

inline constexpr size_t kMaxTfRecord = 64 << 20;

// Takes the record at the buffer's place; one whose head is before `from` is skipped and not read.
// False at the file's end, and at the first head at `until` or behind. DataLoss, with the bytes'
// place but no name, where the framing is damaged, since the next record cannot be found.
Result<bool> TakeTfRecord(StreamBuffer* buffer, uint64_t from, uint64_t until, TfRecord* record);

// Appends one record.
void AppendTfRecord(std::string_view bytes, std::string* to);

}  // namespace shoal::data
