#include "import/job_documents.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "import/conversion/foreign_fields.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

using job::Node;

constexpr const char* kKinds =
    "TFJob, PyTorchJob, MPIJob, XGBoostJob, JAXJob, PaddleJob, MXJob, Volcano's Job and CronJob, "
    "JobSet, TrainJob, RayJob, SparkApplication, Job and CronJob of batch/v1";
constexpr std::string_view kKindNames[] = {
    "TFJob", "PyTorchJob", "MPIJob", "XGBoostJob", "JAXJob", "PaddleJob",       "MXJob",
    "Job",   "CronJob",    "JobSet", "TrainJob",   "RayJob", "SparkApplication"};

// The importers. A new format is one file and one line here.
const std::vector<const Importer*>& Importers() {
  static const std::vector<const Importer*> importers = {
      &BatchJobImporter(),         &KubeflowImporter(), &VolcanoImporter(),
      &JobSetImporter(),           &TrainJobImporter(), &RayJobImporter(),
      &SparkApplicationImporter(), &MarathonImporter(), &MetronomeImporter()};
  return importers;
}

std::string TextOf(const Node& node, const char* field) {
  const Node* found = node.Find(field);
  return found != nullptr && found->kind == Node::Kind::kScalar ? found->text : "";
}

std::string NameOf(const Node& document) {
  const Node* metadata = document.Find("metadata");
  if (metadata == nullptr) return TextOf(document, "id");
  const std::string name = TextOf(*metadata, "name");
  return name.empty() ? NameOfPrefix(TextOf(*metadata, "generateName")) : name;
}

bool IsKubernetes(const Node& document) {
  return document.kind == Node::Kind::kMap && document.Find("apiVersion") != nullptr &&
         document.Find("kind") != nullptr;
}

// kubectl's YAML is 1.1, where a flag may also be written "True", "yes" or "on".
void UseYaml11Flags(Node* node) {
  constexpr std::string_view kTrue[] = {"True", "TRUE", "y",  "Y",  "yes",
                                        "Yes",  "YES",  "on", "On", "ON"};
  constexpr std::string_view kFalse[] = {"False", "FALSE", "n",   "N",   "no",
                                         "No",    "NO",    "off", "Off", "OFF"};
  for (size_t i = 0; i < node->items.size(); ++i) {
    Node& value = node->items[i];
    if (value.kind == Node::Kind::kMap || value.kind == Node::Kind::kList) UseYaml11Flags(&value);
    const bool flag = node->kind == Node::Kind::kMap && value.kind == Node::Kind::kScalar &&
                      !value.quoted && IsFlagName(node->keys[i].text);
    if (!flag) continue;
    if (std::ranges::find(kTrue, value.text) != std::end(kTrue)) value.text = "true";
    if (std::ranges::find(kFalse, value.text) != std::end(kFalse)) value.text = "false";
  }
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// True if `one` becomes `other` by one typo: a letter too many, missing, wrong, or two exchanged.
// Names that differ more may be different kinds and are not suggested.
bool IsOneTypo(const std::string& one, const std::string& other) {
  if (one.size() > other.size()) return IsOneTypo(other, one);
  const auto at = std::ranges::mismatch(one, other);
  const std::string_view left(at.in1, one.end());
  const std::string_view right(at.in2, other.end());
  if (other.size() - one.size() > 1) return false;
  if (one.size() < other.size()) return left == right.substr(1);
  if (left.empty() || left.substr(1) == right.substr(1)) return true;
  return left.size() > 1 && left[0] == right[1] && left[1] == right[0] &&
         left.substr(2) == right.substr(2);
}

std::string DidYouMeanKind(const std::string& kind) {
  for (const std::string_view known : kKindNames) {
    if (IsOneTypo(Lower(kind), Lower(known))) return "; did you mean '" + std::string(known) + "'?";
  }
  return "";
}

// Where a template's first directive is: not a reference of ours, "{{shoal.…}}".
size_t FindDirective(std::string_view text) {
  for (size_t at = text.find("{{"); at != text.npos; at = text.find("{{", at + 2)) {
    if (!text.substr(at).starts_with("{{shoal.")) return at;
  }
  return text.npos;
}

// What to do with a kind that makes jobs of others.
std::string HintForKind(const std::string& kind) {
  if (kind != "Kustomization") return DidYouMeanKind(kind);
  return "; `kubectl kustomize DIRECTORY | shoal run -` runs the job that it makes";
}

// "2 'train' (a TFJob, line 7)".
std::string Describe(const JobDocument& job) {
  return std::to_string(job.number) + (job.name.empty() ? "" : " " + job::PrintableText(job.name)) +
         " (" + WithArticle(job.format) + ", line " + std::to_string(job.document->place.line) +
         ")";
}

}  // namespace

std::string WithArticle(const std::string& format) {
  const bool vowel =
      format.starts_with("MX") || format.starts_with("MPI") || format.starts_with("X");
  return (vowel ? "an " : "a ") + format;
}

bool ReportScript(std::string_view text, const std::vector<const Node*>& documents,
                  job::Errors* errors) {
  const bool map = !documents.empty() && documents.front()->kind == Node::Kind::kMap;
  if (!text.starts_with("#!") || map) return false;
  constexpr std::pair<const char*, const char*> kOthers[] = {
      {"PBS", "PBS"}, {"BSUB", "LSF"},      {"$ -", "Grid Engine"}, {"PJM", "PJM"},
      {"OAR", "OAR"}, {"COBALT", "Cobalt"}, {"flux:", "Flux"},      {"MSUB", "Moab"},
  };
  std::string system;
  for (const auto& [word, name] : kOthers) {
    if (text.find("\n#" + std::string(word)) != std::string_view::npos) system = name;
  }
  errors->Add({1, 1}, "",
              (system.empty() ? "got a script without lines for a batch system"
                              : "got a batch script of " + system) +
                  ", expected one of Slurm (#SBATCH) or a job file: write its options as #SBATCH "
                  "lines, or run it by a job file with command: [bash, FILE]");
  return true;
}

std::vector<const Node*> ListDocuments(std::vector<Node>* documents) {
  std::erase_if(*documents, [](const Node& one) { return one.kind == Node::Kind::kNull; });
  for (Node& document : *documents) {
    if (IsKubernetes(document)) UseYaml11Flags(&document);
  }
  const bool apps = documents->size() > 1 && std::ranges::all_of(*documents, [](const Node& one) {
                      return MarathonImporter().DetectKind(one) == "Marathon app";
                    });
  if (apps) {
    Node list;
    list.kind = Node::Kind::kList;
    list.place = documents->front().place;
    list.items = std::exchange(*documents, {});
    documents->push_back(std::move(list));
  }
  std::vector<const Node*> flat;
  for (const Node& document : *documents) {
    const Node* items = document.Find("items");
    if (IsKubernetes(document) && TextOf(document, "kind") == "List" && items != nullptr &&
        items->kind == Node::Kind::kList) {
      for (const Node& item : items->items) flat.push_back(&item);
    } else {
      flat.push_back(&document);
    }
  }
  return flat;
}

std::vector<JobDocument> FindJobDocuments(const std::vector<const Node*>& documents) {
  std::vector<JobDocument> jobs;
  int number = 0;
  for (const Node* document : documents) {
    ++number;
    for (const Importer* importer : Importers()) {
      std::string format = importer->DetectKind(*document);
      if (format.empty()) continue;
      jobs.push_back({importer, document, std::move(format), NameOf(*document), number});
      break;
    }
  }
  return jobs;
}

JobDocument ChooseJobDocument(const std::vector<JobDocument>& jobs, const std::string& which,
                              job::Errors* errors) {
  if (which.empty() && jobs.size() == 1) return jobs.front();
  const auto number = job::ParseInteger(which);
  std::vector<const JobDocument*> chosen;
  std::string list;
  for (const JobDocument& job : jobs) {
    list += (list.empty() ? "" : ", ") + Describe(job);
    if (!which.empty() && (job.name == which || job.number == number)) chosen.push_back(&job);
  }
  if (chosen.size() == 1) return *chosen.front();
  if (which.empty()) {
    errors->Add(jobs[1].document->place, "",
                "got " + std::to_string(jobs.size()) +
                    " jobs, expected one: choose with --document: " + list +
                    "; `shoal run` without it runs them one after another");
  } else {
    errors->Add({}, "--document",
                "got " + job::PrintableText(which) +
                    ", expected the number of a document or the name of " +
                    (chosen.empty() ? "a job" : "one job") + " in the file: " + list);
  }
  return {};
}

bool IsKubernetesOnly(const std::vector<const Node*>& documents) {
  return !documents.empty() &&
         std::ranges::all_of(documents, [](const Node* one) { return IsKubernetes(*one); });
}

void ReportNoKnownJob(const std::vector<const Node*>& documents, job::Errors* errors) {
  for (const Node* document : documents) {
    const Node* kind = document->Find("kind");
    const std::string version = TextOf(*document, "apiVersion");
    errors->Add(kind->place, "kind",
                "got kind " + job::PrintableText(kind->text) + " of apiVersion " +
                    job::PrintableText(version) +
                    ", expected a job of a kind that can be imported: " + kKinds +
                    HintForKind(kind->text));
  }
}

bool IsTemplate(std::string_view text) {
  const bool object = text.starts_with("apiVersion:") || text.find("\napiVersion:") != text.npos;
  return object && FindDirective(text) != text.npos;
}

void ReportTemplate(std::string_view text, job::Errors* errors) {
  const size_t at = std::min(FindDirective(text), text.size());
  const std::string_view before = text.substr(0, at);
  const auto line = std::count(before.begin(), before.end(), '\n');
  const size_t begin = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  errors->Add({static_cast<int>(line) + 1, static_cast<int>(at - begin) + 1}, "",
              "got a template with '{{ … }}', expected the manifest that it makes: "
              "`helm template CHART | shoal run -` renders it");
}

bool ReportMarathonPod(const std::vector<const Node*>& documents, job::Errors* errors) {
  for (const Node* document : documents) {
    const Node* containers = document->Find("containers");
    const bool pod = containers != nullptr && containers->kind == Node::Kind::kList &&
                     document->Find("id") != nullptr;
    if (!pod) continue;
    errors->Add(containers->place, "containers",
                "got a pod of Marathon, expected an app: its containers share one network and "
                "their volumes, which tasks do not; make an app of each container");
    return true;
  }
  return false;
}

void ReportOtherDocuments(const std::vector<const Node*>& documents,
                          const std::vector<JobDocument>& jobs, const JobDocument& job,
                          Diagnostics* diagnostics) {
  for (const Node* document : documents) {
    const bool is_job =
        std::ranges::any_of(jobs, [&](const JobDocument& one) { return one.document == document; });
    if (is_job) continue;
    const std::string kind = TextOf(*document, "kind");
    const std::string name = NameOf(*document);
    diagnostics->AddLoss(
        document->place, "",
        "the file also has " + (kind.empty() ? "something else" : "a " + job::PrintableText(kind)) +
            (name.empty() ? "" : " " + job::PrintableText(name)) +
            "; not made: only the job is run; with --engine kubernetes make it before, with "
            "kubectl, elsewhere have what it gives ready on the machine",
        "");
  }
  for (const JobDocument& other : jobs) {
    if (other.document == job.document) continue;
    diagnostics->AddMinorLoss(
        other.document->place, "",
        "another job of the file: " + Describe(other) + "; not imported with this one", "");
  }
}

}  // namespace shoal::importer
