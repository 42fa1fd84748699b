// Checks of fields for single engines whose invalid values would otherwise fail, or act wrongly,
// after the job was accepted.
#include <algorithm>

#include "job/file/decode.h"
#include "job/text/units.h"

namespace shoal::job {
namespace {

constexpr size_t kShortestPrefix = 3;  // of an option's name that is cut short

// An sbatch option that a job must not set, by its full name.
struct RefusedOption {
  std::string_view name;
  const char* remedy;
};

constexpr RefusedOption kRefusedOptions[] = {
    {"array", "Slurm would start the whole job several times; give the role replicas"},
    {"chdir", "the engine finds a job by its directory; let the command change to another"},
    {"test-only", "nothing would be started; see shoal plan --engine slurm"},
    {"wrap", "the job's own script is what runs; write it as the command"},
};

bool IsId(std::string_view text) {
  constexpr int64_t kMost = 4'294'967'294;  // the largest UID; the one above it means none
  const auto number = ParseInteger(text);
  const bool digits = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  return digits && number && *number <= kMost;
}

// True for UID or UID:GID.
bool IsUser(std::string_view text) {
  const size_t colon = text.find(':');
  return IsId(text.substr(0, colon)) &&
         (colon == std::string_view::npos || IsId(text.substr(colon + 1)));
}

// Sentence about an invalid entry of slurm.options; empty if it is valid.
std::string WrongWith(const std::string& option) {
  const std::string got = "got " + PrintableText(option) + ", expected ";
  if (!option.starts_with("--") || option.size() < 3)
    return got + "an option of sbatch such as --licenses=matlab";
  const bool plain = std::ranges::none_of(option, [](unsigned char c) {
    return c <= ' ' || c == '\'' || c == '"' || c == '\\' || c == '#';
  });
  if (!plain) return got + "no spaces, quotes, backslashes or '#'";
  const std::string name = option.substr(2, option.find('=') - 2);
  for (const RefusedOption& refused : kRefusedOptions) {
    if (name.size() >= kShortestPrefix && refused.name.starts_with(name))
      return got + "none of --" + std::string(refused.name) + ": " + refused.remedy;
  }
  return "";
}

}  // namespace

void ValidateEngines(const JobDraft& draft, Errors* errors) {
  const auto wrong = [&](const std::string& path, const std::string& sentence) {
    errors->Add(draft.LocationOf(path), path, sentence);
  };
  const auto check = [&](const std::string& path, const SlurmSettings& ask) {
    for (const std::string& option : ask.options) {
      const std::string sentence = WrongWith(option);
      if (!sentence.empty()) wrong(path, sentence);
    }
  };
  const Job& job = draft.job;
  if (!job.container.user.empty() && !IsUser(job.container.user)) {
    wrong("container.user", "got " + PrintableText(job.container.user) +
                                ", expected UID or UID:GID in numbers, such as 1000:1000; `id` "
                                "prints those of a name");
  }
  check("slurm.options", job.slurm);
  for (const Role& role : job.roles) check("roles." + role.name + ".slurm.options", role.slurm);
}

}  // namespace shoal::job
