// CRC-32C: three interleaved hardware streams where the processor has SSE4.2, else a table.
#include <array>

#include "base/bytes.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace shoal {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t Software(const unsigned char* at, size_t size, uint32_t crc) {
  for (size_t i = 0; i < size; ++i) crc = (crc >> 8) ^ kTable[(crc ^ at[i]) & 0xff];
  return crc;
}

#if defined(__x86_64__)

// Bytes of each of the three streams of one round: long ones while there is much left, then short.
constexpr size_t kLong = 1024, kShort = 128;

// What `Stream` zero bytes do to a CRC is linear in its 32 bits: four tables of 256.
template <size_t Stream>
struct ZeroShift {
  std::array<std::array<uint32_t, 256>, 4> tables{};
  ZeroShift() {
    for (uint32_t byte = 0; byte < 4; ++byte) {
      for (uint32_t value = 0; value < 256; ++value) {
        uint32_t crc = value << (8 * byte);
        for (size_t i = 0; i < Stream; ++i) crc = (crc >> 8) ^ kTable[crc & 0xff];
        tables[byte][value] = crc;
      }
    }
  }
  uint32_t operator()(uint32_t crc) const {
    return tables[0][crc & 0xff] ^ tables[1][(crc >> 8) & 0xff] ^ tables[2][(crc >> 16) & 0xff] ^
           tables[3][crc >> 24];
  }
};

uint64_t Load(const unsigned char* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// As many rounds of three streams as fit.
template <size_t Stream>
__attribute__((target("sse4.2"))) uint32_t Rounds(const unsigned char** from, size_t* size,
                                                  uint32_t crc) {
  static const ZeroShift<Stream> shift;
  const unsigned char* at = *from;
  for (; *size >= 3 * Stream; *size -= 3 * Stream, at += 3 * Stream) {
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < Stream; i += 8) {
      a = _mm_crc32_u64(a, Load(at + i));
      b = _mm_crc32_u64(b, Load(at + Stream + i));
      c = _mm_crc32_u64(c, Load(at + 2 * Stream + i));
    }
    crc = shift(shift(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b)) ^
          static_cast<uint32_t>(c);
  }
  *from = at;
  return crc;
}

__attribute__((target("sse4.2"))) uint32_t Hardware(const unsigned char* at, size_t size,
                                                    uint32_t crc) {
  crc = Rounds<kLong>(&at, &size, crc);
  crc = Rounds<kShort>(&at, &size, crc);
  uint64_t wide = crc;
  for (; size >= 8; at += 8, size -= 8) wide = _mm_crc32_u64(wide, Load(at));
  crc = static_cast<uint32_t>(wide);
  for (; size > 0; ++at, --size) crc = _mm_crc32_u8(crc, *at);
  return crc;
}

#endif

}  // namespace

uint32_t Crc32c(const void* bytes, size_t size, uint32_t crc) {
  const auto* at = static_cast<const unsigned char*>(bytes);
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2") != 0;
  if (has_sse42) return ~Hardware(at, size, ~crc);
#endif
  return ~Software(at, size, ~crc);
}

}  // namespace shoal
