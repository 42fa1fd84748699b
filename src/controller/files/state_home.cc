#include "controller/files/state_home.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

#include "base/access/directory_owner.h"
#include "base/access/remove_tree.h"
#include "base/file.h"
#include "base/id.h"
#include "job/execution/job_dir.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/journal/journal_record.h"

namespace shoal::controller {
namespace {

std::string Environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

Result<std::filesystem::path> Absolute(const std::string& path) {
  std::error_code error;
  std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return FailedPrecondition(path + ": " + error.message());
  return absolute.lexically_normal();
}

constexpr size_t kVerdictLimit = size_t{64} << 20;

int CountedResumes(const std::filesystem::path& dir) {
  const FileAccessAs owner(dir);
  return std::atoi(ReadFile(job::JobDir(dir).resumes(), 64).value_or("0").c_str());
}

// The verdict is the last record of a coordinator's journal. A suspension may have been decided by
// an earlier coordinator than the last one.
Result<rendezvous::Verdict> VerdictOfJournal(const std::filesystem::path& dir) {
  const std::filesystem::path path = job::JobDir(dir).journal();
  const FileAccessAs owner(dir);
  TRY_ASSIGN(const std::string bytes, ReadFile(path, rendezvous::kMaxJournalBytes));
  TRY_ASSIGN(const rendezvous::JournalContent content, rendezvous::ParseJournal(bytes));
  int resumes = 0;
  std::optional<rendezvous::Verdict> verdict;
  for (const std::string_view record : content.records) {
    TRY_ASSIGN(rendezvous::JournalRecord fact, rendezvous::JournalRecordFromText(record));
    verdict.reset();
    if (fact.kind == rendezvous::JournalRecord::Kind::kResumed) resumes = fact.replicas;
    if (fact.kind == rendezvous::JournalRecord::Kind::kVerdict) verdict = std::move(fact.verdict);
  }
  const bool earlier =
      verdict && verdict->state == JobState::kSuspended && resumes != CountedResumes(dir);
  if (!verdict || earlier) return NotFound(path.string() + " holds no verdict");
  return std::move(*verdict);
}

}  // namespace

Result<std::filesystem::path> FindStateHome() {
  if (const std::string home = Environment("SHOAL_HOME"); !home.empty()) return Absolute(home);
  if (const std::string data = Environment("XDG_DATA_HOME"); !data.empty())
    return Absolute(data + "/shoal");
  if (const std::string home = Environment("HOME"); !home.empty())
    return Absolute(home + "/.local/share/shoal");
  return FailedPrecondition(
      "no directory for the state of jobs: none of SHOAL_HOME, XDG_DATA_HOME and HOME is set; "
      "set SHOAL_HOME to a writable directory");
}

Status WriteWorkDir(const std::filesystem::path& dir, const std::filesystem::path& work_dir) {
  TRY(MakeDirectories(dir, 0700));
  const FileAccessAs owner(dir);
  return WriteFileAtomically(job::JobDir(dir).work_dir(), work_dir.string() + "\n", 0600, false);
}

Status WriteJobDir(const std::filesystem::path& dir, const std::string& id, const json::object& job,
                   const std::filesystem::path& work_dir) {
  TRY(WriteWorkDir(dir, work_dir));
  const FileAccessAs owner(dir);
  for (const auto& earlier : {job::JobDir(dir).coordinator(), job::JobDir(dir).verdict()}) {
    std::error_code ignored;  // a new job has none
    std::filesystem::remove(earlier, ignored);
  }
  TRY(MakeDirectories(job::JobDir(dir).logs(), 0700));
  TRY(WriteFileAtomically(job::JobDir(dir).token(), NewToken() + "\n", 0600, false));
  TRY(WriteFileAtomically(job::JobDir(dir).id(), id + "\n", 0600, false));
  return WriteFileAtomically(job::JobDir(dir).job(), ToText(job) + "\n", 0600, false);
}

bool IsJobDirComplete(const std::filesystem::path& dir) {
  const job::JobDir paths(dir);  // the last file that WriteJobDir writes, and the secret
  std::error_code error;
  return std::filesystem::exists(paths.job(), error) &&
         std::filesystem::exists(paths.token(), error);
}

std::filesystem::path ReadWorkDir(const std::filesystem::path& dir) {
  const FileAccessAs owner(dir);
  std::string text = ReadFile(job::JobDir(dir).work_dir(), 4096).value_or("");
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Status CountResume(const std::filesystem::path& dir) {
  const FileAccessAs owner(dir);
  const std::string text = std::to_string(CountedResumes(dir) + 1) + "\n";
  return WriteFileAtomically(job::JobDir(dir).resumes(), text, 0600, true);
}

Status RemoveScratch(const std::filesystem::path& dir, JobState state) {
  const FileAccessAs owner(dir);
  const job::JobDir paths(dir);
  Status first = RemoveTree(paths.scratch());
  std::error_code error;
  std::filesystem::remove(paths.secrets(), error);  // a resume writes them again
  if (error && first.ok()) first = ErrnoStatus(error.value(), paths.secrets().string());
  if (!job::IsFinal(state)) return first;
  const Status files = RemoveTree(paths.files());
  return first.ok() ? files : first;
}

Result<std::string> ReadToken(const std::filesystem::path& dir) {
  const FileAccessAs owner(dir);
  TRY_ASSIGN(std::string token, ReadFile(job::JobDir(dir).token(), 256));
  while (!token.empty() && token.back() == '\n') token.pop_back();
  return token;
}

Status WriteVerdict(const std::filesystem::path& dir, const rendezvous::Verdict& verdict) {
  const FileAccessAs owner(dir);
  const std::string text = ToPrettyText(rendezvous::VerdictToJson(verdict)) + "\n";
  return WriteFileAtomically(job::JobDir(dir).verdict(), text, 0600, false);
}

Result<rendezvous::Verdict> ReadVerdict(const std::filesystem::path& dir) {
  const FileAccessAs owner(dir);
  TRY_ASSIGN(const std::string text, ReadFile(job::JobDir(dir).verdict(), kVerdictLimit));
  Result<json::object> object = ParseJsonObject(text);
  if (!object.ok()) return object.status().With(job::JobDir(dir).verdict().string());
  Result<rendezvous::Verdict> verdict = rendezvous::VerdictFromJson(*object);
  if (!verdict.ok()) return verdict.status().With(job::JobDir(dir).verdict().string());
  return verdict;
}

Result<rendezvous::Verdict> ReadVerdictOrJournal(const std::filesystem::path& dir) {
  Result<rendezvous::Verdict> verdict = ReadVerdict(dir);
  if (verdict.ok()) return verdict;
  Result<rendezvous::Verdict> decided = VerdictOfJournal(dir);
  return decided.ok() ? decided : verdict;
}

}  // namespace shoal::controller
