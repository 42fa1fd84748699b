#include "data/parquet/thrift_reader.h"

namespace shoal::data {
namespace {

constexpr int kMaxThriftDepth = 32;

Status EndsEarly() { return OutOfRange("it ends too early"); }

}  // namespace

Result<uint8_t> ThriftReader::Byte() {
  if (rest_.empty()) return EndsEarly();
  const auto byte = static_cast<uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return byte;
}

Result<uint64_t> ThriftReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    TRY_ASSIGN(const uint8_t byte, Byte());
    value |= static_cast<uint64_t>(byte & 0x7f) << (shift < 64 ? shift : 63);
    if (byte < 0x80) return value;
  }
  return DataLoss("a number has more than ten bytes");
}

Result<int64_t> ThriftReader::Integer() {
  TRY_ASSIGN(const uint64_t zigzag, Varint());
  return static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
}

Result<std::string_view> ThriftReader::Binary() {
  TRY_ASSIGN(const uint64_t size, Varint());
  if (size > rest_.size()) return EndsEarly();
  const std::string_view bytes = rest_.substr(0, static_cast<size_t>(size));
  rest_.remove_prefix(bytes.size());
  return bytes;
}

Result<size_t> ThriftReader::ListHead(uint8_t* type) {
  TRY_ASSIGN(const uint8_t head, Byte());
  *type = head & 0x0f;
  uint64_t count = head >> 4;
  if (count == 15) {
    TRY_ASSIGN(count, Varint());
  }
  if (count > rest_.size()) return EndsEarly();
  return static_cast<size_t>(count);
}

Status ThriftReader::NextField(int64_t* number, uint8_t* type) {
  TRY_ASSIGN(const uint8_t head, Byte());
  *type = head & 0x0f;
  if (*type == kStop) return Status::Ok();
  if (*type > kStruct) return DataLoss("a field has an unknown type");
  if (head >> 4 != 0) {
    *number += head >> 4;
  } else {
    TRY_ASSIGN(*number, Integer());
  }
  if (*number < 0 || *number > INT16_MAX) return DataLoss("a field has a wrong number");
  return Status::Ok();
}

Status ThriftReader::SkipStruct(int depth) {
  int64_t number = 0;
  for (;;) {
    uint8_t type = kStop;
    TRY(NextField(&number, &type));
    if (type == kStop) return Status::Ok();
    TRY(SkipValue(type, depth + 1));
  }
}

Status ThriftReader::SkipValue(uint8_t type, int depth) {
  if (depth > kMaxThriftDepth) return DataLoss("values are nested too deeply");
  switch (type) {
    case kTrue:
    case kFalse:
      return Status::Ok();  // the value is the type; within lists see below
    case kByte:
      return Byte().status();
    case kI16:
    case kI32:
    case kI64:
      return Varint().status();
    case kDouble:
      if (rest_.size() < 8) return EndsEarly();
      rest_.remove_prefix(8);
      return Status::Ok();
    case kBinary:
      return Binary().status();
    case kList:
    case kSet: {
      uint8_t element = kStop;
      TRY_ASSIGN(const size_t count, ListHead(&element));
      const bool boolean = element == kTrue || element == kFalse;
      for (size_t i = 0; i < count; ++i)
        TRY(SkipValue(boolean ? uint8_t{kByte} : element, depth + 1));
      return Status::Ok();
    }
    case kMap: {
      TRY_ASSIGN(const uint64_t count, Varint());
      if (count == 0) return Status::Ok();
      TRY_ASSIGN(const uint8_t types, Byte());
      if (count > rest_.size()) return EndsEarly();
      for (uint64_t i = 0; i < count; ++i) {
        TRY(SkipValue(types >> 4, depth + 1));
        TRY(SkipValue(types & 0x0f, depth + 1));
      }
      return Status::Ok();
    }
    case kStruct:
      return SkipStruct(depth);
    default:
      return DataLoss("a value has an unknown type");
  }
}

}  // namespace shoal::data
