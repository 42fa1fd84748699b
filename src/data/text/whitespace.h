// Finds whitespace: the only loop over every byte of the text, with SIMD chosen at run time. Used
// by the tokenizer only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal::data {

// Classifies the 64 · words bytes at `text`, all of which must be readable. Bit i of spaces[w] is
// set if byte 64·w + i is space, tab, carriage return or newline; of newlines[w], if it is a
// newline.
void ScanWhitespace(const char* text, size_t words, uint64_t* spaces, uint64_t* newlines);

}  // namespace shoal::data
