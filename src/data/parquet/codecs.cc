#include "data/parquet/codecs.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace shoal::data {
namespace {

Status Damaged() { return DataLoss("its compressed bytes are damaged"); }

// Appends to a result of known size.
class UnpackedBytes {
 public:
  explicit UnpackedBytes(std::string* to) : to_(*to) {}
  bool Append(std::string_view bytes) {
    if (bytes.size() > to_.size() - size_) return false;
    std::memcpy(to_.data() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
    return true;
  }
  // Repeats what stands `distance` bytes back; the two may overlap.
  bool Copy(size_t distance, size_t size) {
    if (distance == 0 || distance > size_ || size > to_.size() - size_) return false;
    char* const to = to_.data() + size_;
    const char* const from = to - distance;
    if (distance >= size) {
      std::memcpy(to, from, size);
    } else {
      for (size_t i = 0; i < size; ++i) to[i] = from[i];
    }
    size_ += size;
    return true;
  }
  bool full() const { return size_ == to_.size(); }

 private:
  std::string& to_;
  size_t size_ = 0;
};

// Takes bytes from the front.
class PackedBytes {
 public:
  explicit PackedBytes(std::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  bool Byte(size_t* value) { return LittleEndian(1, value); }
  bool LittleEndian(size_t bytes, size_t* value) {
    if (rest_.size() < bytes) return false;
    *value = 0;
    for (size_t i = 0; i < bytes; ++i)
      *value |= static_cast<size_t>(static_cast<uint8_t>(rest_[i])) << (8 * i);
    rest_.remove_prefix(bytes);
    return true;
  }
  bool Take(size_t size, std::string_view* bytes) {
    if (rest_.size() < size) return false;
    *bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

 private:
  std::string_view rest_;
};

bool SnappyElement(PackedBytes* in, UnpackedBytes* out) {
  size_t tag = 0;
  if (!in->Byte(&tag)) return false;
  size_t size = (tag >> 2) + 1;
  if ((tag & 3) == 0) {
    if (size > 60) {
      if (!in->LittleEndian(size - 60, &size)) return false;
      ++size;
    }
    std::string_view literal;
    return in->Take(size, &literal) && out->Append(literal);
  }
  size_t distance = 0;
  if ((tag & 3) == 1) {
    if (!in->Byte(&distance)) return false;
    distance |= (tag >> 5) << 8;
    size = ((tag >> 2) & 7) + 4;
  } else if (!in->LittleEndian((tag & 3) == 2 ? 2 : 4, &distance)) {
    return false;
  }
  return out->Copy(distance, size);
}

// A length of which a nibble is known.
bool Lz4Length(PackedBytes* in, size_t* length) {
  if (*length != 15) return true;
  size_t byte = 255;
  while (byte == 255) {
    if (!in->Byte(&byte)) return false;
    *length += byte;
  }
  return true;
}

Status UnpackGzip(std::string_view packed, std::string* to) {
  z_stream zlib{};
  if (::inflateInit2(&zlib, 32 + MAX_WBITS) != Z_OK) return Internal("zlib does not start");
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  zlib.avail_in = static_cast<uInt>(packed.size());
  zlib.next_out = reinterpret_cast<Bytef*>(to->data());
  zlib.avail_out = static_cast<uInt>(to->size());
  int code = Z_OK;
  while (code == Z_OK && zlib.avail_out > 0) {
    code = ::inflate(&zlib, Z_NO_FLUSH);
    // Several members may follow each other.
    if (code == Z_STREAM_END && zlib.avail_in > 0 && zlib.avail_out > 0)
      code = ::inflateReset(&zlib);
  }
  const bool whole = zlib.avail_out == 0 && (code == Z_OK || code == Z_STREAM_END);
  ::inflateEnd(&zlib);
  return whole ? Status::Ok() : Damaged();
}

}  // namespace

Status UnpackSnappy(std::string_view packed, std::string* to) {
  PackedBytes in(packed);
  uint64_t size = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    size_t byte = 0;
    if (!in.Byte(&byte)) return Damaged();
    size |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (size != to->size()) return DataLoss("its compressed bytes have another size than it says");
  UnpackedBytes out(to);
  while (!in.empty()) {
    if (!SnappyElement(&in, &out)) return Damaged();
  }
  return out.full() ? Status::Ok() : Damaged();
}

Status UnpackLz4Block(std::string_view packed, std::string* to) {
  PackedBytes in(packed);
  UnpackedBytes out(to);
  while (!in.empty()) {
    size_t token = 0;
    if (!in.Byte(&token)) return Damaged();
    size_t size = token >> 4;
    std::string_view literal;
    if (!Lz4Length(&in, &size) || !in.Take(size, &literal) || !out.Append(literal))
      return Damaged();
    if (in.empty()) break;  // the last sequence has literals only
    size_t distance = 0;
    size = token & 15;
    if (!in.LittleEndian(2, &distance) || !Lz4Length(&in, &size) || !out.Copy(distance, size + 4))
      return Damaged();
  }
  return out.full() ? Status::Ok() : Damaged();
}

Status Unpack(int codec, std::string_view packed, std::string* to) {
  constexpr std::array<std::string_view, 8> kNames = {
      "none", "Snappy", "gzip", "LZO", "Brotli", "LZ4 with Hadoop's frames", "zstd", "LZ4"};
  switch (codec) {
    case 0:
      if (packed.size() != to->size()) return DataLoss("its size is another one than it says");
      to->assign(packed);
      return Status::Ok();
    case 1:
      return UnpackSnappy(packed, to);
    case 2:
      return UnpackGzip(packed, to);
    case 6: {
      const size_t size = ::ZSTD_decompress(to->data(), to->size(), packed.data(), packed.size());
      return !::ZSTD_isError(size) && size == to->size() ? Status::Ok() : Damaged();
    }
    case 7:
      return UnpackLz4Block(packed, to);
    default:
      return InvalidArgument(fmt::format(
          "it is packed with {}; Snappy, gzip, zstd and LZ4 are read: write it anew with one of "
          "them",
          codec >= 0 && codec < 8 ? kNames[static_cast<size_t>(codec)] : "an unknown codec"));
  }
}

}  // namespace shoal::data
