#include "cli/sql/process/pipe_host.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/utf8.h"
#include "cli/terminal/report.h"
#include "controller/files/expand_data.h"
#include "host/files/snapshot.h"
#include "job/file/parse.h"
#include "job/file/write_yaml.h"

namespace shoal::cli {
namespace {

namespace fs = std::filesystem;

// Contents of a job's files, which the server takes from there.
constexpr const char* kBlobs = "blobs";

// The files of a job as a manifest; their contents are in a cache in the session's directory.
Status AddFiles(const std::string& files, json::object* question) {
  const char* const temporary = std::getenv("TMPDIR");
  if (temporary == nullptr) return Internal("the session has no directory");
  const fs::path blobs = fs::path(temporary) / kBlobs;
  TRY_ASSIGN(host::BlobCache cache, host::BlobCache::Open(blobs));
  TRY_ASSIGN(const host::Snapshot snapshot, host::TakeSnapshot(files, &cache, {blobs}));
  (*question)["manifest"] = host::ToText(snapshot.manifest);
  (*question)["blobs"] = blobs.string();
  return Status::Ok();
}

}  // namespace

Result<json::object> PipeHost::Ask(json::object question) {
  const int64_t number = ++questions_;
  question["event"] = "ask";
  question["ask"] = number;
  question["id"] = request_;
  TRY(PrintOut(JsonLine(question)));
  for (;;) {
    std::optional<sql::SessionRequest> answer = lines_->NextAnswer();
    if (!answer) return Cancelled("the server has ended the session");
    if (answer->id != number) continue;  // to a question that was given up
    TRY(sql::ErrorOf(answer->body));
    return std::move(answer->body);
  }
}

Result<sql::FinishedJob> PipeHost::RunJob(const job::Job& job, const std::string& engine) {
  if (Stopped()) return Cancelled("stopped");
  job::Job absolute = job;
  std::error_code error;
  const std::string here = fs::current_path(error).string();
  job::ResolvePaths({}, here, here, &absolute);
  controller::ExpandData(&absolute);
  json::object question{{"what", "job"}, {"engine", engine}};
  if (!absolute.files.empty()) TRY(AddFiles(absolute.files, &question));
  question["job"] = job::WriteYaml(absolute);
  TRY_ASSIGN(const json::object answer, Ask(std::move(question)));
  return sql::ParseFinishedJob(answer);
}

Result<std::vector<sql::ListedJob>> PipeHost::ListJobs() {
  TRY_ASSIGN(const json::object answer, Ask({{"what", "jobs"}}));
  return sql::ParseListedJobs(answer);
}

Result<std::string> PipeHost::StopJob(const std::string& prefix) {
  TRY_ASSIGN(const json::object answer, Ask({{"what", "stop"}, {"job", EscapedUtf8(prefix)}}));
  return GetString(answer, "job");
}

Status PipeHost::Show(const sql::Grid& grid) {
  return PrintOut(JsonLine(sql::RowsEvent(request_, grid)));
}

void PipeHost::Note(const std::string& sentence) {
  const Status printed =
      PrintOut(JsonLine({{"event", "note"}, {"id", request_}, {"text", EscapedUtf8(sentence)}}));
  static_cast<void>(printed);  // a server that has gone ends the session by its input
}

}  // namespace shoal::cli
