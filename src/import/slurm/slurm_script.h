// Batch scripts of Slurm (`#SBATCH` lines): the options become roles, resources and the section
// `slurm`, the script itself the command, with srun and scontrol as functions of its shell.
#pragma once

#include <string>
#include <string_view>

#include "import/conversion/importer.h"

namespace shoal::importer {

inline constexpr const char* kSlurmScript = "Slurm batch script";

// It begins with #! and has an #SBATCH line.
bool IsSlurmScript(std::string_view text);
// Everything wrong or lost goes to the builder's diagnostics.
void ImportSlurmScript(std::string_view text, const std::string& file, JobBuilder* builder);

}  // namespace shoal::importer
