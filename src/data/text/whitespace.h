// Where the spaces are: the one loop over every byte of the text, with SIMD chosen at run time.
// Only the tokenizer calls it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shoal::data {

// For each of the 64 · words bytes at `text`, all of which must be readable: bit i of spaces[w] is
// set if byte 64·w + i is space, tab, carriage return or newline; of newlines[w], if it is newline.
void ScanWhitespace(const char* text, size_t words, uint64_t* spaces, uint64_t* newlines);

}  // namespace shoal::data
