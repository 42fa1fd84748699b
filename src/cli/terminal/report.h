// How every subcommand speaks of failure: "shoal: <sentence>" on standard error and the exit code
// of design.md §12.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace shoal::cli {

// Prints the error, "shoal: " before each of its lines, and gives the exit code of its kind.
int PrintError(const Status& status);
// A sentence that is no error.
void PrintNote(std::string_view sentence);

// The name nearest to `word` if it is near enough to be meant (at most a third of its letters
// wrong); empty if none is.
std::string NearestName(std::string_view word, const std::vector<std::string>& names);

// For standard output with --json: one line, or many for people. Always UTF-8 that every parser
// takes, whatever names of files and words it holds.
std::string JsonLine(const json::value& value);
std::string JsonLines(const json::value& value);

// All of `text` to standard output, unbuffered. A terminal gets no control characters but colours
// (file names and words may hold any), everybody else the bytes as they are. A reader that has gone
// (`shoal jobs | head -1`) is no error.
[[nodiscard]] Status PrintOut(std::string_view text);
// PrintOut at the end of a command: gives the exit code, `code` unless the output was not written.
[[nodiscard]] int PrintResult(std::string_view text, int code = 0);

}  // namespace shoal::cli
