// UTF-8 as RFC 3629 has it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal {

// Bytes of the valid sequence at the beginning of `text`, from 1 to 4; 0 if there is none. Overlong
// forms, surrogates and what is above U+10FFFF are none.
size_t Utf8Length(std::string_view text);
// Whether all of it is UTF-8.
bool IsUtf8(std::string_view text);
// UTF-8 with U+FFFD for what is not.
std::string ValidUtf8(std::string_view bytes);
// UTF-8 with \xNN for what is not, to be read by people: "caf\xe9.txt".
std::string EscapedUtf8(std::string_view bytes);

}  // namespace shoal
