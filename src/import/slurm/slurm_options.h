// Options of a Slurm batch script: its #SBATCH lines, and the table of sbatch's options. Used by
// slurm_script.cc.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/conversion/field_reader.h"

namespace shoal::importer {

// How the import treats an option of sbatch.
enum class SlurmOptionHandling : uint8_t {
  kRead,    // the importer interprets it
  kPassed,  // passed to slurm.options unchanged
  kWarned,  // not kept; a comment names it
};

// A row of fields/slurm.tsv.
struct SlurmOption {
  std::string_view name;
  char letter = 0;  // short form; 0: none
  bool value = true;
  SlurmOptionHandling use = SlurmOptionHandling::kPassed;
  std::string_view meant = {};    // except for kRead: "when it starts"
  std::string_view instead = {};  // for kWarned
  bool minor = true;
};

// The value of one option in a script; the last occurrence counts.
struct SlurmOptionValue {
  std::string value;
  job::SourceLocation place;
};
using SlurmOptionValues = std::map<std::string, SlurmOptionValue, std::less<>>;

// Reads the #SBATCH lines before the first command, as sbatch does. Reports errors, and #SBATCH
// lines that sbatch ignores.
SlurmOptionValues ReadSbatchLines(std::string_view script, Diagnostics* diagnostics);

// Finds an option by its name or an unambiguous prefix of it; nullptr if there is none.
const SlurmOption* FindSlurmOption(std::string_view name);

// Parses "30", "30:00", "1:30:00", "2-12", "2-12:30": nullopt for bad syntax; 0 for UNLIMITED.
std::optional<std::chrono::seconds> ParseSlurmTime(std::string_view text);
// Parses "4G" or "4000" (MiB) to bytes.
std::optional<int64_t> ParseSlurmMemory(std::string_view text);
// Parses "0-9:2,15%4" to the indices in order; nullopt for bad syntax or more than `most` indices.
std::optional<std::vector<int64_t>> ParseSlurmArray(std::string_view text, size_t most);

}  // namespace shoal::importer
