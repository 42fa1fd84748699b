#include "api/server/submit_document.h"

#include <set>
#include <utility>

#include "api/catalog/gates.h"
#include "api/server/uploads.h"
#include "base/private_files.h"
#include "controller/groups/job_groups.h"
#include "job/spec/members.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

// Members that write to the same place would overwrite one another.
Status CheckOutputs(const PlannedDocument& document, const std::vector<job::Job>& members) {
  std::set<std::string> paths;
  for (const job::Job& member : members) {
    for (const auto& [name, path] : member.outputs) {
      if (paths.insert(path).second) continue;
      return InvalidArgument(Located(document, "outputs." + name,
                                     "got " + path +
                                         " for several members, expected a path of its own for "
                                         "each, such as " +
                                         path + "-{{matrix.index}}"));
    }
  }
  return Status::Ok();
}

Status CheckJobOf(const Backend& backend, const ParsedJob& parsed) {
  job::Job job = parsed.job;
  job.files.clear();                       // they are checked when they are made
  const FileAccessAs rights(parsed.user);  // its sentences must not tell of others' files
  return controller::ValidateJob(job, ValidationOf(backend, parsed));
}

Status CheckMembers(const Backend& backend, PlannedDocument* document) {
  TRY_ASSIGN(const auto members, job::MembersOf(document->made.job.triggers));
  document->members = members.size();
  std::vector<job::Job> made;
  for (const size_t index : job::MembersToCheck(members)) {
    TRY_ASSIGN(ParsedJob parsed, PrepareJob(backend, document->source, index));
    TRY(CheckJobOf(backend, parsed));
    made.push_back(std::move(parsed.job));
  }
  return CheckOutputs(*document, made);
}

Status SubmitGroup(const Backend& backend, PlannedDocument* document, const fs::path& tree) {
  if (document->source.text.size() > kMaxStoredText)
    return InvalidArgument(
        "got a file of more than 512 KiB, expected a shorter one: it is stored "
        "with the group");
  controller::GroupRecord group;
  group.id = document->id;
  group.name = document->made.job.name;
  group.triggers = document->made.job.triggers;
  group.submitted = backend.clock->Wall();
  group.keep = document->made.job.limits.keep_records;
  group.members.assign(document->members, static_cast<char>(controller::MemberState::kWaiting));
  // Members are made from it until the group ends.
  if (!tree.empty()) TRY(KeepFiles(backend, tree, controller::kGroupFolder, &document->source));
  group.source = document->source;
  return backend.groups->Create(group);
}

}  // namespace

std::string Located(const PlannedDocument& document, const std::string& field,
                    const std::string& sentence) {
  return document.made.locations.Prefix(kJobFileName, field) + field + ": " + sentence;
}

Result<PlannedDocument> PlanDocument(const Backend& backend,
                                     const controller::StoredSubmission& source) {
  PlannedDocument document;
  document.source = source;
  TRY_ASSIGN(document.made, PrepareJob(backend, source));
  if (document.made.job.triggers.has_members()) {
    TRY(CheckMembers(backend, &document));
  } else {
    TRY(CheckJobOf(backend, document.made));
  }
  return document;
}

void SetAfter(const std::vector<job::Dependency>& after, controller::StoredSubmission* source) {
  if (after.empty()) return;
  json::array list;
  for (const job::Dependency& one : after) {
    constexpr std::string_view kWhen[] = {"succeeded", "failed", "ended"};
    list.push_back(json::object{{"job", one.job}, {"when", kWhen[static_cast<size_t>(one.when)]}});
  }
  source->set.push_back("after=" + ToText(list));
}

Result<fs::path> MakeFiles(const Backend& backend, const PlannedDocument& document) {
  if (document.manifest.empty() || document.made.job.files.empty()) return fs::path();
  TRY_ASSIGN(const host::Manifest manifest, host::ParseManifest(document.manifest));
  return backend.uploads->MakeTree(document.source.team, manifest);
}

Status KeepFiles(const Backend& backend, const fs::path& tree, const std::string& folder,
                 controller::StoredSubmission* source) {
  const std::string place = folder + "/" + tree.filename().string();
  const fs::path kept = backend.home.root() / place;
  TRY(MakeDirectories(kept.parent_path(), 0700));
  std::error_code error;
  fs::rename(tree, kept, error);
  if (error)
    return Unavailable("the files cannot be moved to " + kept.string() + ": " + error.message());
  source->tree = place;  // relative, since a backup may be restored elsewhere
  return Status::Ok();
}

Status SubmitDocument(const Backend& backend, PlannedDocument* document, const fs::path& tree,
                      const controller::JobLabels& labels) {
  if (document->grouped()) return SubmitGroup(backend, document, tree);
  controller::SubmitOptions options;
  options.engine = document->made.engine;
  options.team = document->source.team;
  options.user = document->source.user;
  options.id = document->id;
  options.labels = labels;
  options.work_dir = document->made.directory;
  options.validation = ValidationOf(backend, document->made);
  job::Job job = document->made.job;
  if (!tree.empty()) job.files = tree.string();
  TRY(backend.tables.gates->Keep(job, options.team, options.user));
  const Status submitted = backend.supervisor->Submit(job, options).status();
  if (!submitted.ok()) backend.tables.gates->Forget(job);
  return submitted;
}

}  // namespace shoal::api
