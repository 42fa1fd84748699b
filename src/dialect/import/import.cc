#include "dialect/import/import.h"

#include <set>
#include <utility>

#include "dialect/import/importer.h"
#include "dialect/import/pod_environment.h"
#include "dialect/import/slurm_script.h"
#include "job/parse.h"
#include "job/write.h"

namespace shoal::dialect {
namespace {

using job::Node;

// All dialects with files. A new one is one file and one line here.
const std::vector<const Importer*>& Importers() {
  static const std::vector<const Importer*> importers = {&BatchJobImporter(), &KubeflowImporter(),
                                                         &VolcanoImporter(), &MarathonImporter(),
                                                         &MetronomeImporter()};
  return importers;
}

constexpr const char* kKinds =
    "TFJob, PyTorchJob, MPIJob, XGBoostJob, MXJob, Volcano's Job and the Job of batch/v1";

std::string TextOf(const Node& node, const char* field) {
  const Node* found = node.Find(field);
  return found != nullptr && found->kind == Node::Kind::kScalar ? found->text : "";
}

bool IsKubernetes(const Node& document) {
  return document.kind == Node::Kind::kMap && document.Find("apiVersion") != nullptr &&
         document.Find("kind") != nullptr;
}

// "a TFJob", "an MPIJob".
std::string WithArticle(const std::string& dialect) {
  const bool vowel =
      dialect.starts_with("MX") || dialect.starts_with("MPI") || dialect.starts_with("X");
  return (vowel ? "an " : "a ") + dialect;
}

// The job among a file's documents.
struct Found {
  const Importer* importer = nullptr;
  const Node* document = nullptr;
  std::string dialect;
};

// Kubernetes' lists are documents too.
std::vector<const Node*> Flatten(const std::vector<Node>& documents) {
  std::vector<const Node*> flat;
  for (const Node& document : documents) {
    const Node* items = document.Find("items");
    if (IsKubernetes(document) && TextOf(document, "kind") == "List" && items != nullptr &&
        items->kind == Node::Kind::kList) {
      for (const Node& item : items->items) flat.push_back(&item);
    } else if (document.kind != Node::Kind::kNull) {
      flat.push_back(&document);
    }
  }
  return flat;
}

Found FindJob(const std::vector<const Node*>& documents, job::Errors* errors) {
  Found found;
  for (const Node* document : documents) {
    for (const Importer* importer : Importers()) {
      std::string dialect = importer->Recognise(*document);
      if (dialect.empty()) continue;
      if (found.importer != nullptr) {
        errors->Add(document->place, "",
                    "got a second job, " + WithArticle(dialect) +
                        ", expected one a file; the first is at line " +
                        std::to_string(found.document->place.line) + "; put each into a file");
        return found;
      }
      found = {importer, document, std::move(dialect)};
      break;
    }
  }
  return found;
}

// A file of Kubernetes without a job that is known here.
void Refuse(const std::vector<const Node*>& documents, job::Errors* errors) {
  for (const Node* document : documents) {
    const Node* kind = document->Find("kind");
    const std::string version = TextOf(*document, "apiVersion");
    errors->Add(
        kind->place, "kind",
        "got kind " + job::Shown(kind->text) + " of apiVersion " + job::Shown(version) +
            ", expected a job of a kind that can be imported: " + kKinds +
            job::DidYouMean(kind->text, {"TFJob", "PyTorchJob", "MPIJob", "XGBoostJob", "MXJob"}));
  }
}

void LoseOthers(const std::vector<const Node*>& documents, const Found& found, Notes* notes) {
  for (const Node* document : documents) {
    if (document == found.document) continue;
    const Node* metadata = document->Find("metadata");
    const std::string kind = TextOf(*document, "kind");
    notes->Lose(document->place, "",
                "the file also has " + (kind.empty() ? "something else" : "a " + job::Shown(kind)) +
                    (metadata != nullptr ? " " + job::Shown(TextOf(*metadata, "name")) : "") +
                    "; not kept: only the job is imported; have what it gives ready on the machine",
                "");
  }
}

// True if it can only be meant for Kubernetes.
bool AllKubernetes(const std::vector<const Node*>& documents) {
  for (const Node* document : documents) {
    if (!IsKubernetes(*document)) return false;
  }
  return !documents.empty();
}

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
    if (same == nullptr || same->command != role.command) continue;
    std::map<std::string, std::string> env = role.env;
    env.insert(imported->job.env.begin(), imported->job.env.end());
    std::set<std::string> unresolved;
    role.command = ExpandCommand(role.command, env, imported->job.framework, &unresolved);
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
  return std::optional<Imported>(std::move(imported));
}

}  // namespace

Result<std::optional<Imported>> ImportText(std::string_view text, const std::string& file) {
  job::Errors errors(file, {});
  if (IsSlurmScript(text)) {
    Notes notes(file, &errors);
    JobBuilder builder(file, &notes);
    ImportSlurmScript(text, file, &builder);
    return Taken(kSlurmScript, file, errors, &notes, &builder);
  }
  const std::vector<Node> documents = job::ParseYamlDocuments(text, &errors);
  if (!errors.empty()) return std::optional<Imported>();  // ParseJob says it
  const std::vector<const Node*> flat = Flatten(documents);
  const Found found = FindJob(flat, &errors);
  if (found.importer == nullptr) {
    if (!AllKubernetes(flat)) return std::optional<Imported>();
    Refuse(flat, &errors);
    return errors.ToStatus();
  }
  Notes notes(file, &errors);
  JobBuilder builder(file, &notes);
  if (errors.empty()) found.importer->Import(*found.document, &builder);
  LoseOthers(flat, found, &notes);
  auto taken = Taken(found.dialect, file, errors, &notes, &builder);
  const bool words =
      found.importer == &MarathonImporter() || found.importer == &MetronomeImporter();
  if (taken.ok()) (*taken)->references = !words;
  return taken;
}

Result<Imported> Finish(Imported imported, const std::vector<std::string>& overrides) {
  const std::string label = imported.file + " as imported";
  Result<job::Job> job =
      job::ParseJob(job::WriteYaml(imported.job), label, overrides, &imported.places);
  if (!job.ok()) {
    // A container without a command is better told where it stands.
    for (const Loss& loss : imported.losses) {
      if (loss.sentence.starts_with("the container has no command")) {
        return InvalidArgument(TellLoss(imported, loss));
      }
    }
    return InvalidArgument(job.status().message() + "\n(`shoal import " + imported.file +
                           "` prints the job that these lines are of)");
  }
  const job::Job before = std::exchange(imported.job, std::move(*job));
  imported.job.file = imported.file;
  // The others are places of the job file that it was imported as.
  std::erase_if(imported.places.at, [](const auto& one) { return one.second.set < 0; });
  if (imported.references) ExpandCommands(before, &imported);
  return imported;
}

Result<Imported> LoadJobFile(const std::string& path, const std::vector<std::string>& overrides) {
  TRY_ASSIGN(const std::string text, job::ReadJobFile(path));
  TRY_ASSIGN(std::optional<Imported> imported, ImportText(text, path));
  if (imported) return Finish(std::move(*imported), overrides);
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
