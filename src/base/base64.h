// Base64 (RFC 4648, section 4; section 5 for the alphabet of URLs).
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal {

enum class Base64 : bool { kStandard, kUrl };

// With padding. O(bytes).
std::string EncodeBase64(std::string_view bytes, Base64 alphabet = Base64::kStandard);

// Of the standard alphabet, padded or not; line feeds, carriage returns and blanks are passed over.
// InvalidArgument for anything else.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace shoal
