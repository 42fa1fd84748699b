// Reads Thrift's compact protocol, in which Parquet's footer and page heads are written. Bytes are
// hostile: lengths are checked against what is there, depth is bounded. Source:
// thrift/doc/specs/thrift-compact-protocol.md.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace shoal::data {

class ThriftReader {
 public:
  enum Type : uint8_t {
    kStop = 0,
    kTrue = 1,
    kFalse = 2,
    kByte = 3,
    kI16 = 4,
    kI32 = 5,
    kI64 = 6,
    kDouble = 7,
    kBinary = 8,
    kList = 9,
    kSet = 10,
    kMap = 11,
    kStruct = 12,
  };

  explicit ThriftReader(std::string_view bytes) : rest_(bytes) {}
  size_t left() const { return rest_.size(); }

  // OutOfRange if the bytes end too early, here and below; DataLoss for what is no Thrift.
  Result<int64_t> Integer();
  Result<std::string_view> Binary();
  // The number of elements, and their type. Each takes at least one byte.
  Result<size_t> ListHead(uint8_t* type);
  Status Skip(uint8_t type) { return SkipValue(type, 0); }

  // Calls `field(number, type)` for each field of a struct, which reads its value; or returns false
  // if it did not.
  template <typename Field>
  Status Struct(const Field& field) {
    int64_t number = 0;
    for (;;) {
      uint8_t type = kStop;
      TRY(NextField(&number, &type));
      if (type == kStop) return Status::Ok();
      TRY_ASSIGN(const bool read, field(number, type));
      if (!read) TRY(Skip(type));
    }
  }
  // Calls `element()` for each element of a list of structs.
  template <typename Element>
  Status StructList(const Element& element) {
    uint8_t type = kStop;
    TRY_ASSIGN(const size_t count, ListHead(&type));
    if (type != kStruct && count > 0) return DataLoss("a list holds other values than expected");
    for (size_t i = 0; i < count; ++i) TRY(element());
    return Status::Ok();
  }

 private:
  Result<uint8_t> Byte();
  Result<uint64_t> Varint();
  Status NextField(int64_t* number, uint8_t* type);
  Status SkipValue(uint8_t type, int depth);
  Status SkipStruct(int depth);

  std::string_view rest_;
};

}  // namespace shoal::data
