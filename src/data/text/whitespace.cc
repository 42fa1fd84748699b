// Compiled once for each of Highway's instruction sets; the best one is chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/text/whitespace.cc"
#include <hwy/foreach_target.h>
// (Highway's order: foreach_target first.)
#include <hwy/highway.h>

#include "data/text/whitespace.h"

HWY_BEFORE_NAMESPACE();
namespace shoal::data {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR  // one byte is a vector, of which the mask is a whole byte too

void Scan(const char* text, size_t words, uint64_t* spaces, uint64_t* newlines) {
  for (size_t w = 0; w < words; ++w) {
    spaces[w] = newlines[w] = 0;
    for (size_t i = 0; i < 64; ++i) {
      const char c = text[64 * w + i];
      const uint64_t bit = uint64_t{1} << i;
      if (c == '\n') newlines[w] |= bit;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') spaces[w] |= bit;
    }
  }
}

#else

void Scan(const char* text, size_t words, uint64_t* spaces, uint64_t* newlines) {
  const hn::CappedTag<uint8_t, 64> d;
  const size_t lanes = hn::Lanes(d);
  const auto space = hn::Set(d, ' ');
  const auto tab = hn::Set(d, '\t');
  const auto newline = hn::Set(d, '\n');
  const auto carriage = hn::Set(d, '\r');
  const auto* bytes = reinterpret_cast<const uint8_t*>(text);
  for (size_t w = 0; w < words; ++w) {
    alignas(8) uint8_t space_bits[8 + 8] = {};
    alignas(8) uint8_t newline_bits[8 + 8] = {};
    for (size_t i = 0; i < 64; i += lanes) {
      const auto block = hn::LoadU(d, bytes + 64 * w + i);
      const auto is_newline = hn::Eq(block, newline);
      const auto is_space = hn::Or(hn::Or(hn::Eq(block, space), hn::Eq(block, tab)),
                                   hn::Or(hn::Eq(block, carriage), is_newline));
      hn::StoreMaskBits(d, is_space, space_bits + i / 8);
      hn::StoreMaskBits(d, is_newline, newline_bits + i / 8);
    }
    hwy::CopyBytes<8>(space_bits, spaces + w);
    hwy::CopyBytes<8>(newline_bits, newlines + w);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace shoal::data
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shoal::data {
namespace {
HWY_EXPORT(Scan);
}  // namespace

void ScanWhitespace(const char* text, size_t words, uint64_t* spaces, uint64_t* newlines) {
  HWY_DYNAMIC_DISPATCH(Scan)(text, words, spaces, newlines);
}

}  // namespace shoal::data
#endif
