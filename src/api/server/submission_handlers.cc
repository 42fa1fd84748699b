// `POST /api/v1/submissions`: every job of a file. Several YAML documents wait for one another by
// name, and one with a matrix or a sweep becomes a group.
#include <filesystem>
#include <map>
#include <utility>

#include "api/rest/job_json.h"
#include "api/server/handlers.h"
#include "api/server/idempotency.h"
#include "api/server/prepare_job.h"
#include "api/server/readiness.h"
#include "api/server/submit_document.h"
#include "api/server/uploads.h"
#include "base/id.h"
#include "controller/admission/dependencies.h"
#include "controller/groups/job_groups.h"
#include "job/file/parse.h"
#include "job/spec/job_graph.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

constexpr int kCreated = 201;
constexpr size_t kIdDigits = 6;

Result<std::vector<PlannedDocument>> PlanDocuments(const Backend& backend, const Call& call) {
  const controller::StoredSubmission whole = SubmissionOf(backend, call);
  TRY_ASSIGN(const std::vector<size_t> numbers, job::ListDocuments(whole.text, kJobFileName));
  if (numbers.empty()) return PrepareJob(backend, whole).status();  // it says what is missing
  const std::vector<std::string> manifests = call.arguments.Texts("manifests");
  std::vector<PlannedDocument> documents;
  for (size_t i = 0; i < numbers.size(); ++i) {
    controller::StoredSubmission source = whole;
    if (numbers.size() > 1) source.document = numbers[i];
    TRY_ASSIGN(PlannedDocument document, PlanDocument(backend, source));
    if (i < manifests.size()) document.manifest = manifests[i];
    if (!document.made.job.files.empty() && document.manifest.empty())
      return InvalidArgument(Located(document, "files",
                                     "the request has no manifest; upload the files first, as "
                                     "`shoal submit` does (docs/rest.md)"));
    documents.push_back(std::move(document));
  }
  return documents;
}

// The documents in an order in which each follows those that it names.
Result<std::vector<size_t>> OrderDocuments(const std::vector<PlannedDocument>& documents) {
  std::vector<job::GraphJob> jobs;
  for (const PlannedDocument& one : documents)
    jobs.push_back({one.made.job.name, one.made.job.triggers.after});
  job::GraphError error;
  std::vector<size_t> order = job::OrderOf(jobs, &error);
  if (order.empty())
    return InvalidArgument(
        Located(documents[error.job], error.of_name ? "name" : "after", error.sentence));
  return order;
}

// Puts ids in place of the names of `after`: of documents of the file, and of other jobs.
Status ResolveAfter(const Backend& backend, const std::map<std::string, std::string>& ids,
                    PlannedDocument* document) {
  std::vector<job::Dependency>& after = document->made.job.triggers.after;
  std::vector<job::Dependency> others;
  for (job::Dependency& one : after) {
    const auto found = ids.find(one.job);
    if (found != ids.end()) {
      one.job = found->second;
      continue;
    }
    others.assign(1, one);
    if (const Status known =
            controller::ResolveDependencies(backend.store, document->source.team, &others);
        !known.ok())
      return Status(known.code(),
                    document->made.locations.Prefix(kJobFileName, "after") + known.message());
    one.job = others.front().job;
  }
  SetAfter(after, &document->source);
  return Status::Ok();
}

controller::JobLabels LabelsOf(const std::string& key) {
  controller::JobLabels labels;
  if (!key.empty()) labels[kIdempotencyLabel] = key;
  return labels;
}

// A part of the first request, which a repetition completes.
bool IsRepetition(const Backend& backend, const PlannedDocument& document,
                  const std::string& label) {
  if (label.empty()) return false;
  if (document.grouped()) {
    const auto group = controller::ReadGroup(backend.store, document.id);
    return group.ok() && group->source.user == document.source.user &&
           group->source.text == document.source.text;
  }
  const auto job = backend.store->GetJob(document.id);
  if (!job.ok()) return false;
  const auto found = job->labels.find(kIdempotencyLabel);
  return found != job->labels.end() && found->second == label;
}

void StopAll(const Backend& backend, const std::vector<PlannedDocument>& documents,
             const std::vector<size_t>& submitted) {
  const std::string why = "another job of its file could not be submitted";
  for (const size_t i : submitted) {
    const PlannedDocument& document = documents[i];
    if (document.grouped()) {
      (void)backend.groups->Stop(document.id, why, true);
    } else {
      backend.supervisor->Kill(document.id, why, [](const Status&) {});
    }
  }
}

Result<json::array> SubmitDocuments(const Backend& backend, const Call& call,
                                    const std::string& label) {
  TRY(backend.readiness->CheckDisk());
  TRY_ASSIGN(std::vector<PlannedDocument> documents, PlanDocuments(backend, call));
  TRY_ASSIGN(const std::vector<size_t> order, OrderDocuments(documents));
  std::map<std::string, std::string> ids;
  std::vector<size_t> submitted;
  const auto submit = [&](size_t i) -> Status {
    PlannedDocument& document = documents[i];
    document.id = NewJobId(document.made.job.name);
    if (!label.empty()) {  // a repetition makes the same ids
      const std::string digest = Sha256Hex(label + "\n" + std::to_string(i));
      document.id.replace(document.id.size() - kIdDigits, kIdDigits, digest, 0, kIdDigits);
    }
    TRY(ResolveAfter(backend, ids, &document));
    TRY_ASSIGN(const fs::path tree, MakeFiles(backend, document));
    const Status made = SubmitDocument(backend, &document, tree, LabelsOf(label));
    std::error_code ignored;
    if (!tree.empty()) fs::remove_all(tree, ignored);
    if (made.code() == Code::kAlreadyExists && IsRepetition(backend, document, label))
      return Status::Ok();
    return made;
  };
  for (const size_t i : order) {
    if (const Status made = submit(i); !made.ok()) {
      StopAll(backend, documents, submitted);
      return made;
    }
    submitted.push_back(i);
    ids[documents[i].made.job.name] = documents[i].id;
  }
  json::array items;
  for (const PlannedDocument& document : documents) {
    json::object item{{"id", document.id},
                      {"name", document.made.job.name},
                      {"kind", document.grouped() ? "group" : "job"}};
    if (document.grouped()) item["members"] = document.members;
    items.push_back(std::move(item));
  }
  return items;
}

void AnswerItems(const CallPtr& call, const json::array& items, bool again) {
  if (!items.empty()) call->target = items.front().as_object().at("id").as_string();
  net::HttpServerReply reply = JsonReply(kCreated, json::object{{"items", items}});
  if (again) reply.headers.emplace_back("Idempotency-Replayed", "true");
  call->answer(std::move(reply));
}

}  // namespace

void SubmitAll(const Backend& backend, const CallPtr& call) {
  const std::string key(call->request().Header("idempotency-key"));
  std::optional<Reservation> reservation;
  if (!key.empty()) {
    Result<Reservation> reserved =
        Reserve(backend, {call->principal.user, key, call->request().body});
    if (!reserved.ok()) return call->answer(Problem(reserved.status()));
    if (const auto before = ParseJson(reserved->job); before.ok() && before->is_array())
      return AnswerItems(call, before->get_array(), true);
    reservation = std::move(*reserved);
  }
  const auto items =
      SubmitDocuments(backend, *call, reservation ? reservation->record_key : std::string());
  if (!items.ok()) {
    if (reservation) Release(backend, *reservation);
    return call->answer(JobProblem(items.status()));
  }
  if (reservation) Fulfil(backend, *reservation, ToText(*items));
  AnswerItems(call, *items, false);
}

}  // namespace shoal::api
