// A line or a text from standard input that a terminal does not show.
#pragma once

#include <string>

#include "base/status.h"

namespace shoal::cli {

// On a terminal: prints `prompt` to stderr and reads one line without echo, without its line end.
// Otherwise reads all of standard input, at most `limit` bytes (ResourceExhausted), and leaves out
// one line end at its end.
Result<std::string> ReadHidden(const std::string& prompt, size_t limit);

}  // namespace shoal::cli
