#include "dialect/import/import.h"

#include <set>
#include <utility>

#include "dialect/import/documents.h"
#include "dialect/import/importer.h"
#include "dialect/import/pod_environment.h"
#include "dialect/import/slurm_script.h"
#include "job/parse.h"
#include "job/write.h"

namespace shoal::dialect {
namespace {

using job::Node;

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// A command that --set gave is left as it is.
void ExpandCommands(const job::Job& before, Imported* imported) {
  for (job::Role& role : imported->job.roles) {
    const job::Role* same = before.FindRole(role.name);
    if (same == nullptr || same->command != role.command || same->args != role.args) continue;
    std::map<std::string, std::string> env = role.env;
    env.insert(imported->job.env.begin(), imported->job.env.end());
    std::set<std::string> unresolved;
    role.command = ExpandCommand(role.command, env, imported->job.framework, &unresolved);
    // No shell stands before an entry point, so that what is known at the start only stays.
    for (std::string& word : role.args) word = ExpandReferences(word, env, &unresolved);
    std::string list;
    for (const std::string& name : unresolved) {
      if (LooksLikeVariable(name)) list += (list.empty() ? "$(" : ", $(") + name + ")";
    }
    if (list.empty()) continue;
    const std::string at = "roles." + role.name;
    imported->losses.push_back({{},
                                at + ".command",
                                list +
                                    " stays as it is: no variable of that name is known here; "
                                    "give it with --set " +
                                    at + ".env.NAME=VALUE",
                                at + ".command",
                                false,
                                ""});
  }
  imported->references = false;
}

// What becomes of a file that is of a dialect, when it has been read.
Result<std::optional<Imported>> Taken(const std::string& dialect, const std::string& file,
                                      const job::Errors& errors, Notes* notes,
                                      JobBuilder* builder) {
  if (!errors.empty()) return errors.ToStatus();
  Imported imported{dialect, file, builder->Take(), {}, false};
  imported.losses = notes->TakeLosses();
  imported.commandless = builder->TakeCommandless();
  return std::optional<Imported>(std::move(imported));
}

}  // namespace

Result<std::optional<Imported>> ImportText(std::string_view text, const std::string& file,
                                           const std::string& which) {
  job::Errors errors(file, {});
  if (IsSlurmScript(text)) {
    Notes notes(file, &errors);
    JobBuilder builder(file, &notes);
    ImportSlurmScript(text, file, &builder);
    return Taken(kSlurmScript, file, errors, &notes, &builder);
  }
  std::vector<Node> documents = job::ParseYamlDocuments(text, &errors);
  if (!errors.empty()) return std::optional<Imported>();  // ParseJob says it
  const std::vector<const Node*> flat = Flatten(&documents);
  const std::vector<FoundJob> jobs = FindJobs(flat);
  if (jobs.empty()) {
    if (!AllKubernetes(flat)) return std::optional<Imported>();
    RefuseDocuments(flat, &errors);
    return errors.ToStatus();
  }
  const FoundJob found = ChooseJob(jobs, which, &errors);
  if (!errors.empty()) return errors.ToStatus();
  Notes notes(file, &errors);
  JobBuilder builder(file, &notes);
  found.importer->Import(*found.document, &builder);
  TellSurroundings(flat, jobs, found, &notes);
  auto taken = Taken(found.dialect, file, errors, &notes, &builder);
  const bool words =
      found.importer == &MarathonImporter() || found.importer == &MetronomeImporter();
  if (taken.ok()) (*taken)->references = !words;
  return taken;
}

std::vector<JobInFile> ListJobs(std::string_view text) {
  job::Errors errors("", {});
  std::vector<JobInFile> listed;
  if (IsSlurmScript(text)) return listed;
  std::vector<Node> documents = job::ParseYamlDocuments(text, &errors);
  if (!errors.empty()) return listed;
  for (const FoundJob& job : FindJobs(Flatten(&documents)))
    listed.push_back({job.number, job.name, job.dialect});
  return listed;
}

Result<Imported> Finish(Imported imported, const std::vector<std::string>& overrides) {
  const std::string label = imported.file + " as imported";
  Result<job::Job> job =
      job::ParseJob(job::WriteYaml(imported.job), label, overrides, &imported.places);
  if (!job.ok()) {
    // A container without a command is better told where it stands.
    for (const Loss& loss : imported.losses) {
      if (loss.sentence.starts_with("the container has no command and no image")) {
        return InvalidArgument(TellLoss(imported, loss));
      }
    }
    return InvalidArgument(job.status().message() + "\n(`shoal import " + imported.file +
                           "` prints the job that these lines are of)");
  }
  for (const auto& [name, loss] : imported.commandless) {
    const job::Role* role = job->FindRole(name);
    if (role != nullptr && role->command.empty() && role->replicas > 0)
      return InvalidArgument(TellLoss(imported, loss));
  }
  const job::Job before = std::exchange(imported.job, std::move(*job));
  imported.job.file = imported.file;
  // The others are places of the job file that it was imported as.
  std::erase_if(imported.places.at, [](const auto& one) { return one.second.set < 0; });
  if (imported.references) ExpandCommands(before, &imported);
  return imported;
}

Result<Imported> LoadJobFile(const std::string& path, const std::vector<std::string>& overrides,
                             const std::string& which) {
  TRY_ASSIGN(const std::string text, job::ReadJobFile(path));
  TRY_ASSIGN(std::optional<Imported> imported, ImportText(text, path, which));
  if (imported) return Finish(std::move(*imported), overrides);
  if (!which.empty()) {
    return InvalidArgument(path + ": --document: got " + job::Shown(which) +
                           ", expected none: a job file has one document");
  }
  Imported own{"", path, {}, {}, false};
  TRY_ASSIGN(own.job, job::ParseJob(text, path, overrides, &own.places));
  return own;
}

std::string TellLoss(const Imported& imported, const Loss& loss) {
  std::string text = imported.file;
  if (loss.place.line > 0) {
    text += ":" + std::to_string(loss.place.line) + ":" + std::to_string(loss.place.column);
  }
  return text + ": " + (loss.field.empty() ? "" : loss.field + ": ") + loss.sentence;
}

std::string WriteImported(const Imported& imported) {
  job::Comments comments;
  if (!imported.dialect.empty()) {
    size_t kept_less = 0;
    for (const Loss& loss : imported.losses) kept_less += loss.minor ? 0 : 1;
    comments[""].push_back("From " + imported.file + ", " + WithArticle(imported.dialect) + ". " +
                           (kept_less == 0 ? "Nothing that programs would notice is lost."
                                           : "What is not the same is said at its place."));
  }
  for (const Loss& loss : imported.losses) {
    comments[loss.at].push_back(Replaced(TellLoss(imported, loss), "\n", " "));
  }
  return job::WriteYaml(imported.job, comments);
}

}  // namespace shoal::dialect
