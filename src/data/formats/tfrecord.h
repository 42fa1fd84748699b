// TFRecord, TensorFlow's file of records: for each, its length (u64), the length's masked CRC32C
// (u32), the bytes, and their masked CRC32C (u32), little-endian. Source:
// tensorflow/core/lib/io/record_reader.h and tensorflow/core/lib/hash/crc32c.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::data {

inline constexpr size_t kTfRecordHead = 12;
inline constexpr size_t kTfRecordFoot = 4;

// CRC32C, rotated and offset, so that a checksum of data with checksums in it is no fixed point.
uint32_t MaskedCrc(std::string_view bytes);
// Whether `foot`, four bytes, is the masked checksum of `bytes`.
bool MatchesMaskedCrc(std::string_view bytes, std::string_view foot);

// The length in a head of kTfRecordHead bytes; DataLoss if its checksum is wrong.
Result<uint64_t> TfRecordLength(std::string_view head);

// Appends one record.
void AppendTfRecord(std::string_view bytes, std::string* to);

}  // namespace shoal::data
