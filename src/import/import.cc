#include "import/import.h"

#include <algorithm>
#include <set>
#include <utility>

#include "import/conversion/job_builder.h"
#include "import/job_documents.h"
#include "import/kubernetes/pod_environment.h"
#include "import/slurm/slurm_script.h"
#include "job/file/parse.h"
#include "job/file/write_yaml.h"

namespace shoal::importer {
namespace {

using job::Node;

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

bool HasLineThatBegins(std::string_view text, std::string_view begin) {
  return text.starts_with(begin) || text.find("\n" + std::string(begin)) != std::string_view::npos;
}

// Expands Kubernetes' references in commands, except those that --set has replaced.
void ExpandCommands(const job::Job& before, ImportedJob* imported) {
  for (job::Role& role : imported->job.roles) {
    const job::Role* same = before.FindRole(role.name);
    if (same == nullptr || same->command != role.command || same->args != role.args) continue;
    std::map<std::string, std::string> env = role.env;
    env.insert(imported->job.env.begin(), imported->job.env.end());
    std::set<std::string> unresolved;
    role.command = ExpandCommand(role.command, env, imported->job.framework, &unresolved);
    // An entry point has no shell before it: references whose values are known only when the task
    // starts stay as they are.
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

// The result of one import: the job with its losses, or the collected errors.
Result<std::optional<ImportedJob>> CollectResult(const std::string& format, const std::string& file,
                                                 const job::Errors& errors,
                                                 Diagnostics* diagnostics, JobBuilder* builder) {
  if (!errors.empty()) return errors.ToStatus();
  ImportedJob imported{format, file, builder->Build(), {}, false};
  imported.losses = diagnostics->TakeLosses();
  imported.commandless = builder->TakeRolesWithoutCommand();
  return std::optional<ImportedJob>(std::move(imported));
}

}  // namespace

Result<std::optional<ImportedJob>> ImportText(std::string_view text, const std::string& file,
                                              const std::string& which) {
  job::Errors errors(file, {});
  if (IsSlurmScript(text)) {
    Diagnostics diagnostics(file, &errors);
    JobBuilder builder(file, &diagnostics);
    ImportSlurmScript(text, file, &builder);
    return CollectResult(kSlurmScript, file, errors, &diagnostics, &builder);
  }
  std::vector<Node> documents = job::ParseYamlDocuments(text, &errors);
  if (!errors.empty() && IsTemplate(text)) {
    job::Errors one(file, {});
    ReportTemplate(text, &one);
    return one.ToStatus();
  }
  const std::vector<const Node*> flat = ListDocuments(&documents);
  const std::vector<JobDocument> jobs = FindJobDocuments(flat);
  if (jobs.empty()) {
    job::Errors script(file, {});
    if (ReportScript(text, flat, &script)) return script.ToStatus();
  }
  // ParseJob reports errors of a job file, which has one document.
  if (!errors.empty() && jobs.empty() && !HasLineThatBegins(text, "apiVersion:"))
    return std::optional<ImportedJob>();
  if (!errors.empty()) return errors.ToStatus();
  if (jobs.empty()) {
    if (ReportMarathonPod(flat, &errors)) return errors.ToStatus();
    if (!IsKubernetesOnly(flat)) return std::optional<ImportedJob>();
    ReportNoKnownJob(flat, &errors);
    return errors.ToStatus();
  }
  const JobDocument found = ChooseJobDocument(jobs, which, &errors);
  if (!errors.empty()) return errors.ToStatus();
  Diagnostics diagnostics(file, &errors);
  JobBuilder builder(file, &diagnostics);
  const std::vector<const Node*> parts = found.importer->FindParts(*found.document, flat);
  found.importer->ImportWithParts(*found.document, parts, &builder);
  std::vector<const Node*> others = flat;
  std::erase_if(others,
                [&](const Node* one) { return std::ranges::find(parts, one) != parts.end(); });
  ReportOtherDocuments(others, jobs, found, &diagnostics);
  auto taken = CollectResult(found.format, file, errors, &diagnostics, &builder);
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
  for (const JobDocument& job : FindJobDocuments(ListDocuments(&documents)))
    listed.push_back({job.number, job.name, job.format});
  return listed;
}

Result<ImportedJob> FinishImport(ImportedJob imported, const std::vector<std::string>& overrides) {
  const std::string label = imported.file + " as imported";
  Result<job::Job> job =
      job::ParseJob(job::WriteYaml(imported.job), label, overrides, &imported.places);
  if (!job.ok()) {
    // An error about a container without a command is reported at its place in the foreign file.
    for (const ImportLoss& loss : imported.losses) {
      if (loss.sentence.starts_with("the container has no command and no image")) {
        return InvalidArgument(FormatLoss(imported, loss));
      }
    }
    return InvalidArgument(job.status().message() + "\n(`shoal import " + imported.file +
                           "` prints the job that these lines are of)");
  }
  for (const auto& [name, loss] : imported.commandless) {
    const job::Role* role = job->FindRole(name);
    if (role != nullptr && role->command.empty() && role->replicas > 0)
      return InvalidArgument(FormatLoss(imported, loss));
  }
  const job::Job before = std::exchange(imported.job, std::move(*job));
  imported.job.file = imported.file;
  // All other locations are those of the generated job file.
  std::erase_if(imported.places.at, [](const auto& one) { return one.second.set < 0; });
  if (imported.references) ExpandCommands(before, &imported);
  return imported;
}

Result<ImportedJob> LoadJobFile(const std::string& path, const std::vector<std::string>& overrides,
                                const std::string& which) {
  TRY_ASSIGN(const std::string text, job::ReadJobFile(path));
  TRY_ASSIGN(std::optional<ImportedJob> imported, ImportText(text, path, which));
  if (imported) return FinishImport(std::move(*imported), overrides);
  if (!which.empty()) {
    return InvalidArgument(path + ": --document: got " + job::PrintableText(which) +
                           ", expected none: a job file has one document");
  }
  ImportedJob own{"", path, {}, {}, false};
  TRY_ASSIGN(own.job, job::ParseJob(text, path, overrides, &own.places));
  return own;
}

std::string FormatLoss(const ImportedJob& imported, const ImportLoss& loss) {
  std::string text = imported.file;
  if (loss.place.line > 0) {
    text += ":" + std::to_string(loss.place.line) + ":" + std::to_string(loss.place.column);
  }
  return text + ": " + (loss.field.empty() ? "" : loss.field + ": ") + loss.sentence;
}

std::string WriteImported(const ImportedJob& imported) {
  job::Comments comments;
  if (!imported.format.empty()) {
    size_t kept_less = 0;
    for (const ImportLoss& loss : imported.losses) kept_less += loss.minor ? 0 : 1;
    comments[""].push_back("From " + imported.file + ", " + WithArticle(imported.format) + ". " +
                           (kept_less == 0 ? "Nothing that programs would notice is lost."
                                           : "What is not the same is said at its place."));
  }
  for (const ImportLoss& loss : imported.losses) {
    comments[loss.at].push_back(Replaced(FormatLoss(imported, loss), "\n", " "));
  }
  return job::WriteYaml(imported.job, comments);
}

}  // namespace shoal::importer
