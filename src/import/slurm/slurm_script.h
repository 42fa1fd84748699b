// Imports Slurm batch scripts (`#SBATCH` lines): options become roles, resources and the section
// `slurm`; the script itself becomes the command, with srun and scontrol as shell functions.
#pragma once

#include <string>
#include <string_view>

#include "import/conversion/job_builder.h"

namespace shoal::importer {

inline constexpr const char* kSlurmScript = "Slurm batch script";

// True for a text that begins with #! and has an #SBATCH line.
bool IsSlurmScript(std::string_view text);
// Builds the job. Errors and losses go to the builder's diagnostics.
void ImportSlurmScript(std::string_view text, const std::string& file, JobBuilder* builder);

}  // namespace shoal::importer
