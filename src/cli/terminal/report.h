// Error output of all subcommands: "shoal: <sentence>" on standard error and the exit code of
// design.md §12; and their standard output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace shoal::cli {

// Prints the error with "shoal: " before each line and returns the exit code of its code.
int PrintError(const Status& status);
// Prints a sentence that is not an error to standard error, in the same form.
void PrintNote(std::string_view sentence);

// The name nearest to `word`, with at most a third of the letters wrong; empty if there is none.
std::string NearestName(std::string_view word, const std::vector<std::string>& names);

// JSON for standard output: one line, or several for people. The result is valid UTF-8 even if file
// names and words are not.
std::string JsonLine(const json::value& value);
std::string JsonLines(const json::value& value);

// Writes all of `text` to standard output, unbuffered. On a terminal, control characters except
// colours are removed; other outputs receive the bytes unchanged. The end of the reader (`shoal
// jobs | head -1`) is no error.
[[nodiscard]] Status PrintOut(std::string_view text);
// PrintOut as the last step of a command: returns `code`, or the exit code of a write error.
[[nodiscard]] int PrintResult(std::string_view text, int code = 0);

// For commands whose purpose is an effect (a job, a file): if standard output was closed (`>&-`),
// replaces it by /dev/null, so that the exit code reports the effect. A command whose purpose is
// its output fails instead (main.cc). Call before other threads write.
void DiscardIfStdoutIsClosed();
// PrintResult for the sentence that confirms such an effect.
[[nodiscard]] int PrintConfirmation(std::string_view text);

}  // namespace shoal::cli
