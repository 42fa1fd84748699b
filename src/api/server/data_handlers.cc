#include <fcntl.h>
#include <sys/stat.h>

#include <charconv>
#include <optional>
#include <utility>

#include "api/rest/job_json.h"
#include "api/server/file_reply.h"
#include "api/server/handlers.h"
#include "api/server/uploads.h"
#include "base/access/directory_owner.h"
#include "controller/files/log_store.h"
#include "controller/files/outputs.h"
#include "job/execution/job_dir.h"

namespace shoal::api {
namespace {

constexpr int kOk = 200;
constexpr int64_t kDefaultRead = int64_t{1} << 20;

controller::LogStore LogsOf(const Backend& backend, const Call& call) {
  return controller::LogStore(backend.home.job_dir(call.job->id));
}

// "worker-0" and "1" of the path.
Result<controller::LogKey> KeyOf(const Call& call) {
  const std::string name =
      call.arguments.PathText("task") + "." + call.arguments.PathText("attempt");
  if (const auto key = ParseLogName(name)) return *key;
  return NotFound("job " + call.job->id + " has no log " + name.substr(0, 80));
}

json::object FileReply(const UploadStatus& status) {
  return {{"sha256", status.sha256}, {"received", status.received}, {"complete", status.complete}};
}

void AnswerFile(const CallPtr& call, const Result<UploadStatus>& status) {
  if (!status.ok()) return call->answer(Problem(status.status()));
  call->answer(JsonReply(kOk, FileReply(*status)));
}

}  // namespace

void ListLogs(const Backend& backend, const CallPtr& call) {
  const controller::LogStore store = LogsOf(backend, *call);
  const auto logs = store.List();
  if (!logs.ok()) return call->answer(Problem(logs.status()));
  json::array items;
  for (const controller::LogInfo& log : *logs) items.push_back(LogToReply(log));
  json::object reply{{"items", std::move(items)}};
  if (const std::string removed = store.Removed(); !removed.empty()) reply["removed"] = removed;
  call->answer(JsonReply(kOk, reply));
}

namespace {

// At most `limit` bytes. The store gives less at a time where a log is compressed.
Result<std::string> ReadUpTo(const controller::LogStore& logs, const controller::LogKey& key,
                             int64_t offset, size_t limit) {
  std::string all;
  while (all.size() < limit) {
    TRY_ASSIGN(std::string bytes,
               logs.Read(key, offset + static_cast<int64_t>(all.size()), limit - all.size()));
    if (bytes.empty()) break;
    if (all.empty()) {
      all = std::move(bytes);
    } else {
      all += bytes;
    }
  }
  return all;
}

}  // namespace

void ReadLog(const Backend& backend, const CallPtr& call) {
  const auto key = KeyOf(*call);
  if (!key.ok()) return call->answer(Problem(key.status()));
  const controller::LogStore logs = LogsOf(backend, *call);
  int64_t offset = call->arguments.Integer("offset", 0);
  if (call->arguments.Has("tail")) {
    const auto tail = logs.TailOffset(*key, static_cast<int>(call->arguments.Integer("tail", 0)));
    if (!tail.ok()) return call->answer(Problem(tail.status()));
    offset = *tail;
  }
  auto bytes = ReadUpTo(logs, *key, offset,
                        static_cast<size_t>(call->arguments.Integer("limit", kDefaultRead)));
  if (!bytes.ok()) return call->answer(Problem(bytes.status()));
  const auto end = offset + static_cast<int64_t>(bytes->size());
  call->answer({kOk,
                {{"Content-Type", "application/octet-stream"},
                 {"X-Content-Type-Options", "nosniff"},
                 {"Shoal-Offset", std::to_string(offset)},
                 {"Shoal-Next-Offset", std::to_string(end)}},
                std::move(*bytes)});
}

void ListOutputs(const Backend& backend, const CallPtr& call) {
  const auto files = controller::ListOutputs(backend.home.job_dir(call->job->id));
  if (!files.ok()) return call->answer(Problem(files.status()));
  json::array items;
  for (const controller::OutputFile& file : *files) items.push_back(OutputToReply(file));
  const json::value* const declared = call->job->job.if_contains("outputs");
  call->answer(JsonReply(kOk, json::object{{"items", std::move(items)},
                                           {"declared", declared != nullptr && declared->is_object()
                                                            ? *declared
                                                            : json::value(json::object())}}));
}

namespace {

Result<UniqueFd> OpenOutput(const std::filesystem::path& job_dir, const std::filesystem::path& root,
                            const std::string& path) {
  const FileAccessAs owner(job_dir);
  return OpenBelow(root, path);
}

}  // namespace

void ReadOutput(const Backend& backend, const CallPtr& call) {
  const std::string path = call->arguments.Text("path");
  call->details = {{"path", path}};
  const auto key = KeyOf(*call);
  if (!key.ok()) return call->answer(Problem(key.status()));
  const std::filesystem::path root =
      job::JobDir(backend.home.job_dir(call->job->id)).outputs() / LogName(*key);
  Result<UniqueFd> file = OpenOutput(backend.home.job_dir(call->job->id), root, path);
  if (!file.ok()) return call->answer(Problem(file.status()));
  SendFile(backend, call, std::move(*file), call->arguments.Integer("offset", 0),
           call->arguments.Integer("limit", INT64_MAX));
}

void FindMissingFiles(const Backend& backend, const CallPtr& call) {
  const auto missing = backend.uploads->FindMissing(call->team, call->arguments.Texts("digests"));
  if (!missing.ok()) return call->answer(Problem(missing.status()));
  json::array items;
  for (const UploadStatus& one : *missing)
    items.push_back({{"sha256", one.sha256}, {"received", one.received}});
  call->answer(JsonReply(kOk, json::object{{"missing", std::move(items)}}));
}

void GetFile(const Backend& backend, const CallPtr& call) {
  AnswerFile(call, backend.uploads->Find(call->team, call->arguments.PathText("sha256")));
}

void PutFile(const Backend& backend, const CallPtr& call) {
  UploadPiece piece;
  piece.offset = call->arguments.Integer("offset", 0);
  piece.size = call->arguments.Integer("size", 0);
  piece.bytes = call->request().body;
  AnswerFile(call, backend.uploads->Append(call->team, call->arguments.PathText("sha256"), piece));
}

}  // namespace shoal::api
