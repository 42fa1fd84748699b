// Little-endian bytes, as all our files and frames have them: a writer that appends, a reader that
// never runs over.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/status.h"

namespace shoal {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "frames and files are written as memory holds them");

// Appends to a string that it does not own.
class ByteWriter {
 public:
  explicit ByteWriter(std::string* out) : out_(out) {}
  template <typename T>
  void Put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    out_->append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  // u32 length, then the bytes.
  void PutString(std::string_view bytes) {
    Put(static_cast<uint32_t>(bytes.size()));
    out_->append(bytes);
  }
  void PutRaw(const void* bytes, size_t size) {
    out_->append(static_cast<const char*>(bytes), size);
  }

 private:
  std::string* out_;
};

// Reads from bytes that it does not own. Every read is checked; after a failed one nothing was
// consumed.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}
  size_t remaining() const { return rest_.size(); }

  template <typename T>
  Status Get(T* value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    if (rest_.size() < sizeof *value) return OutOfRange("the bytes end inside a field");
    std::memcpy(value, rest_.data(), sizeof *value);
    rest_.remove_prefix(sizeof *value);
    return Status::Ok();
  }
  // A view into the bytes; OutOfRange if its length exceeds `limit` or what is left.
  Status GetString(std::string_view* bytes, size_t limit) {
    uint32_t size = 0;
    if (rest_.size() < sizeof size) return OutOfRange("the bytes end inside a length");
    std::memcpy(&size, rest_.data(), sizeof size);
    if (size > limit || size > rest_.size() - sizeof size)
      return OutOfRange("a length exceeds its bounds");
    *bytes = rest_.substr(sizeof size, size);
    rest_.remove_prefix(sizeof size + size);
    return Status::Ok();
  }
  Status GetRaw(size_t size, std::string_view* bytes) {
    if (size > rest_.size()) return OutOfRange("the bytes end inside an array");
    *bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return Status::Ok();
  }

 private:
  std::string_view rest_;
};

// CRC-32C (Castagnoli, RFC 3720 §12.1) of `bytes`, continuing `crc`. About 20 GB/s with SSE4.2,
// found at run time.
uint32_t Crc32c(const void* bytes, size_t size, uint32_t crc = 0);

}  // namespace shoal
