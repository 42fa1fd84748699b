#include "controller/files/log_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/access/directory_owner.h"
#include "controller/retention/removed_logs.h"
#include "controller/store/file_watch.h"
#include "job/execution/job_dir.h"
#include "rendezvous/logs/log_archive.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::controller {
namespace {

constexpr size_t kPiece = size_t{256} << 10;
constexpr int64_t kPieceBytes = kPiece;
static_assert(kPieceBytes == rendezvous::kArchiveFrame);

std::string NameOfTask(const LogKey& key) { return fmt::format("{}-{}", key.role, key.index); }

bool Matches(const LogSelection& selection, const LogKey& key) {
  return (selection.role.empty() || selection.role == key.role) &&
         (!selection.index || *selection.index == key.index) &&
         (!selection.attempt || *selection.attempt == key.attempt);
}

class DirectoryFollower final : public LogStore::Follower {
 public:
  DirectoryFollower(net::Loop* loop, LogStore store, UniqueFd changes, LogSelection selection,
                    std::map<LogKey, int64_t> from, LogStore::OnBytes on_bytes)
      : loop_(loop),
        store_(std::move(store)),
        changes_(std::move(changes)),
        selection_(std::move(selection)),
        offsets_(std::move(from)),
        on_bytes_(std::move(on_bytes)) {}
  ~DirectoryFollower() override {
    if (watch_ != 0) loop_->Cancel(watch_);
    if (first_ != 0) loop_->Cancel(first_);
  }

  Status Start() {
    TRY_ASSIGN(watch_, loop_->WatchReadable(changes_.get(), [this] {
      if (ConsumeChanges(changes_.get(), "")) Drain();
    }));
    first_ = loop_->After(Duration(0), [this] { Drain(); });
    return Status::Ok();
  }

  void Drain() override {
    const Result<std::vector<LogInfo>> logs = store_.List();
    if (!logs.ok()) return;
    for (const LogInfo& log : *logs) {
      if (Matches(selection_, log.key)) Deliver(log.key);
    }
  }

 private:
  void Deliver(const LogKey& key) {
    int64_t& offset = offsets_[key];
    while (true) {
      const Result<std::string> bytes = store_.Read(key, offset, kPiece);
      if (!bytes.ok() || bytes->empty()) return;
      on_bytes_(key, offset, *bytes);
      offset += static_cast<int64_t>(bytes->size());
    }
  }

  net::Loop* const loop_;
  const LogStore store_;
  UniqueFd changes_;
  const LogSelection selection_;
  std::map<LogKey, int64_t> offsets_;
  const LogStore::OnBytes on_bytes_;
  net::Loop::Id watch_ = 0;
  net::Loop::Id first_ = 0;
};

}  // namespace

Result<LogSelection> ParseLogSelection(std::string_view task) {
  const size_t at = task.find_last_of("-/.");
  int index = 0;
  if (at != std::string_view::npos && at > 0 && at + 1 < task.size()) {
    const char* begin = task.data() + at + 1;
    const char* end = task.data() + task.size();
    const auto [stop, error] = std::from_chars(begin, end, index);
    if (error == std::errc() && stop == end && index >= 0)
      return LogSelection{std::string(task.substr(0, at)), index, {}};
  }
  if (task.empty())
    return InvalidArgument("expected a task such as worker-0 or a role such as worker");
  return LogSelection{std::string(task), {}, {}};
}

LogStore::LogStore(std::filesystem::path job_dir)
    : directory_(job::JobDir(std::move(job_dir)).logs()) {}

Result<std::vector<LogInfo>> LogStore::List() const {
  const FileAccessAs owner(directory_.parent_path());
  std::vector<LogInfo> logs;
  std::error_code error;
  std::filesystem::directory_iterator it(directory_, error);
  if (error == std::errc::no_such_file_or_directory) return logs;
  if (error) return ErrnoStatus(error.value(), directory_.string());
  for (; it != std::filesystem::directory_iterator(); it.increment(error)) {
    if (error) return ErrnoStatus(error.value(), directory_.string());
    const std::string name = it->path().filename().string();
    std::optional<LogKey> key = rendezvous::ParseLogFileName(name);
    if (!key) key = rendezvous::ParseArchiveFileName(name);
    if (!key) continue;
    const auto size = rendezvous::LogSize(directory_, *key);
    if (size.ok()) logs.push_back({*key, *size});
  }
  std::ranges::sort(logs, {}, &LogInfo::key);
  // A log that is being compressed is a segment and an archive for a moment.
  const auto same = std::ranges::unique(logs, {}, &LogInfo::key);
  logs.erase(same.begin(), same.end());
  return logs;
}

Result<std::vector<LogInfo>> LogStore::Select(const LogSelection& selection) const {
  TRY_ASSIGN(const std::vector<LogInfo> all, List());
  return SelectLogs(all, selection, all.empty() ? Removed() : "");
}

std::string LogStore::Removed() const {
  const FileAccessAs owner(directory_.parent_path());
  const auto removed = ReadRemovedLogs(directory_);
  return removed ? SentenceOf(*removed) : std::string();
}

Result<std::vector<LogInfo>> SelectLogs(const std::vector<LogInfo>& all,
                                        const LogSelection& selection, const std::string& removed) {
  if (!removed.empty()) return NotFound("the logs of this job were " + removed);
  std::vector<LogInfo> chosen;
  std::string there;
  for (const LogInfo& log : all) {
    there += fmt::format("{}{} (attempt {})", there.empty() ? "" : ", ", NameOfTask(log.key),
                         log.key.attempt + 1);
    if (!Matches(selection, log.key)) continue;
    // Sorted by attempt: a later attempt replaces the earlier one.
    const bool later = !selection.attempt && !chosen.empty() &&
                       chosen.back().key.role == log.key.role &&
                       chosen.back().key.index == log.key.index;
    if (later) {
      chosen.back() = log;
    } else {
      chosen.push_back(log);
    }
  }
  const bool any = selection.role.empty() && !selection.attempt;
  if (!chosen.empty() || any) return chosen;
  return NotFound(fmt::format(
      "{}{}{} has printed nothing; there {}", selection.role.empty() ? "the job" : selection.role,
      selection.index ? "-" + std::to_string(*selection.index) : "",
      selection.attempt ? ", attempt " + std::to_string(*selection.attempt + 1) + "," : "",
      there.empty() ? "are no lines of any task" : "are lines of " + there));
}

Result<std::string> LogStore::Read(const LogKey& key, int64_t offset, size_t limit) const {
  const FileAccessAs owner(directory_.parent_path());
  return rendezvous::ReadLog(directory_, key, offset, limit);
}

Result<int64_t> LogStore::TailOffset(const LogKey& key, int lines) const {
  const FileAccessAs owner(directory_.parent_path());
  const auto size = rendezvous::LogSize(directory_, key);
  if (size.status().code() == Code::kNotFound)
    return NotFound(NameOfTask(key) + " has printed nothing");
  if (!size.ok()) return size.status();
  int64_t at = *size;
  if (lines <= 0) return at;
  int found = 0;
  // Scans backwards. The line feed at the very end ends the last line and does not begin a new one.
  for (bool last = true; at > 0;) {
    // At a multiple of the frames of compressed logs, so that each is read as a whole.
    const int64_t begin = (at - 1) / kPieceBytes * kPieceBytes;
    TRY_ASSIGN(const std::string piece, Read(key, begin, static_cast<size_t>(at - begin)));
    for (size_t i = piece.size(); i-- > 0;) {
      if (piece[i] != '\n') {
        last = false;
        continue;
      }
      if (std::exchange(last, false)) continue;
      if (++found == lines) return begin + static_cast<int64_t>(i) + 1;
    }
    at = begin;
  }
  return 0;
}

Result<std::unique_ptr<LogStore::Follower>> LogStore::Follow(net::Loop* loop,
                                                             LogSelection selection,
                                                             std::map<LogKey, int64_t> from,
                                                             OnBytes on_bytes) const {
  UniqueFd changes;
  {
    const FileAccessAs owner(directory_.parent_path());
    TRY(MakeDirectories(directory_, 0700));
    TRY_ASSIGN(changes, OpenDirectoryWatch(directory_));
  }
  auto follower = std::make_unique<DirectoryFollower>(
      loop, *this, std::move(changes), std::move(selection), std::move(from), std::move(on_bytes));
  TRY(follower->Start());
  return std::unique_ptr<Follower>(std::move(follower));
}

}  // namespace shoal::controller
