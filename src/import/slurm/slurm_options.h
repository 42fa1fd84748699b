// The options of a batch script for Slurm: what its #SBATCH lines say, and what sbatch knows.
// Used by slurm_script.cc.
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

// What becomes of an option of sbatch.
enum class SlurmOptionHandling : uint8_t {
  kRead,    // the importer asks for it
  kPassed,  // to slurm.options as it is
  kWarned,  // is a comment
};

// A row of fields/slurm.tsv.
struct SlurmOption {
  std::string_view name;
  char letter = 0;  // of its short form; 0: none
  bool value = true;
  SlurmOptionHandling use = SlurmOptionHandling::kPassed;
  std::string_view meant = {};    // but of kRead: "when it starts"
  std::string_view instead = {};  // of kWarned
  bool minor = true;
};

// One option as a script gives it, the last of its name.
struct SlurmOptionValue {
  std::string value;
  job::SourceLocation place;
};
using SlurmOptionValues = std::map<std::string, SlurmOptionValue, std::less<>>;

// The #SBATCH lines before the first command, as sbatch reads them. Errors and lines that sbatch
// does not look at are told.
SlurmOptionValues ReadSbatchLines(std::string_view script, Diagnostics* diagnostics);

// What sbatch knows by that name; nullptr for none. `name` may be the beginning of one name only.
const SlurmOption* FindSlurmOption(std::string_view name);

// "30", "30:00", "1:30:00", "2-12", "2-12:30": nothing on bad syntax; 0 for UNLIMITED.
std::optional<std::chrono::seconds> ParseSlurmTime(std::string_view text);
// "4G", "4000" (of MiB): bytes.
std::optional<int64_t> ParseSlurmMemory(std::string_view text);
// "0-9:2,15%4": the numbers in order; nothing on bad syntax or more than `most`.
std::optional<std::vector<int64_t>> ParseSlurmArray(std::string_view text, size_t most);

}  // namespace shoal::importer
