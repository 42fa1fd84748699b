// The compressions of Parquet's pages. Private to this folder and its tests.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::data {

// Unpacks into `to`, whose size is that of the result. `codec` is the format's CompressionCodec:
// none, Snappy, gzip, zstd and LZ4_RAW are read. DataLoss for damaged bytes and other sizes;
// InvalidArgument names another codec.
Status Unpack(int codec, std::string_view packed, std::string* to);

// Snappy's format without frames (google/snappy, format_description.txt).
Status UnpackSnappy(std::string_view packed, std::string* to);
// LZ4's block format (lz4/doc/lz4_Block_format.md).
Status UnpackLz4Block(std::string_view packed, std::string* to);

}  // namespace shoal::data
