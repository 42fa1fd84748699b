// UTF-8 as RFC 3629 has it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal {

// Bytes of the valid sequence at the beginning of `text`, from 1 to 4; 0 if there is none. Overlong
// forms, surrogates and what is above U+10FFFF are none.
size_t Utf8Length(std::string_view text);
// The text with every byte that belongs to no valid sequence replaced by U+FFFD.
std::string ValidUtf8(std::string_view bytes);

}  // namespace shoal
