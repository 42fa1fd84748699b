#include "controller/files/log_search.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/access/directory_owner.h"
#include "job/execution/job_dir.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::controller {
namespace {

constexpr size_t kPiece = size_t{256} << 10;
constexpr int64_t kOpeningCost = 16 << 10;  // of a log, in bytes that could be searched meanwhile
constexpr char kSeparator = ';';

bool Selected(const LogSelection& selection, const LogKey& key) {
  return (selection.role.empty() || selection.role == key.role) &&
         (!selection.index || *selection.index == key.index) &&
         (!selection.attempt || *selection.attempt == key.attempt);
}

// Takes the part behind the last separator off.
std::optional<std::string_view> TakeLast(std::string_view* text) {
  const size_t at = text->rfind(kSeparator);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view last = text->substr(at + 1);
  text->remove_suffix(last.size() + 1);
  return last;
}

// The line feed is part of a line, unless the line was cut.
int64_t Behind(const LogLine& line) {
  const auto size = static_cast<int64_t>(line.text.size());
  return line.offset + size + (line.text.size() < kLongestLine ? 1 : 0);
}

}  // namespace

Result<LineFilter> MakeLineFilter(const LogSearchRequest& request) {
  LineFilter filter;
  filter.since = request.since;
  filter.until = request.until;
  if (request.grep.empty()) return filter;
  TRY_ASSIGN(LinePattern pattern, LinePattern::Compile(request.grep, request.ignore_case));
  filter.grep = std::make_shared<const LinePattern>(std::move(pattern));
  return filter;
}

Status LogSearch::Resume(std::string_view position) {
  const Status bad = InvalidArgument("the position of the search is none that a search has given");
  const auto offset = TakeLast(&position);
  const auto log = TakeLast(&position);
  const auto job = TakeLast(&position);
  if (!offset || !log || !job) return bad;
  page_ = position;
  resume_job_ = *job;
  if (job->empty()) return Status::Ok();
  const auto key = rendezvous::ParseLogFileName(*log);
  const auto [end, error] =
      std::from_chars(offset->data(), offset->data() + offset->size(), resume_offset_);
  if (!key || error != std::errc() || end != offset->data() + offset->size() || resume_offset_ < 0)
    return bad;
  resume_log_ = *key;
  return Status::Ok();
}

std::string LogSearch::position() const {
  std::string text = page_ + kSeparator;
  if (scanner_ == nullptr) {
    if (resume_job_.empty()) return text + kSeparator + kSeparator;
    return text + resume_job_ + kSeparator + rendezvous::LogFileName(resume_log_) + kSeparator +
           std::to_string(resume_offset_);
  }
  return text + sources_.jobs[job_].job + kSeparator + rendezvous::LogFileName(logs_[log_].key) +
         kSeparator + std::to_string(resume_offset_);
}

std::filesystem::path LogSearch::directory() const {
  return job::JobDir(sources_.jobs[job_].directory).logs();
}

void LogSearch::StartLog(const LogInfo& log) {
  const auto times_from = [path = directory(), key = log.key](int64_t from) {
    const FileAccessAs owner(path.parent_path());
    return rendezvous::ReadLogTimes(path, key, from);
  };
  scanner_ = std::make_unique<LineScanner>(filter_, times_, times_from);
  if (offset_ == 0 && filter_.since) {
    const auto last = times_from(log.bytes);
    const bool older = last.ok() && last->modified < *filter_.since;
    offset_ = older ? log.bytes : OffsetSince(times_from, *filter_.since).value_or(0);
  }
  resume_offset_ = offset_;
}

// Goes to the log behind the present one. False at the end.
Result<bool> LogSearch::NextLog() {
  while (true) {
    if (!listed_) {
      TRY_ASSIGN(sources_, next_sources_(page_));
      listed_ = true;
      const auto wanted = std::ranges::find(sources_.jobs, resume_job_, &LogSource::job);
      job_ = resume_job_.empty() ? 0 : static_cast<size_t>(wanted - sources_.jobs.begin());
      opened_ = false;
    }
    if (job_ >= sources_.jobs.size()) {
      if (sources_.next.empty()) return false;
      page_ = sources_.next;
      resume_job_.clear();
      listed_ = false;
      continue;
    }
    if (!opened_) {
      logs_ = LogStore(sources_.jobs[job_].directory).List().value_or({});
      std::erase_if(logs_, [&](const LogInfo& log) { return !Selected(selection_, log.key); });
      const bool resumed = sources_.jobs[job_].job == resume_job_;
      log_ = 0;
      while (resumed && log_ < logs_.size() && logs_[log_].key < resume_log_) ++log_;
      const bool same = resumed && log_ < logs_.size() && logs_[log_].key == resume_log_;
      offset_ = same ? resume_offset_ : 0;
      opened_ = true;
    }
    if (log_ < logs_.size()) {
      StartLog(logs_[log_]);
      return true;
    }
    ++job_;
    opened_ = false;
  }
}

Status LogSearch::Open(const LogKey& key) {
  auto segment = OpenFile(directory() / rendezvous::LogFileName(key), O_RDONLY);
  if (segment.ok()) {
    file_ = std::move(*segment);
    return Status::Ok();
  }
  if (segment.status().code() != Code::kNotFound) return segment.status();
  TRY_ASSIGN(auto archive,
             rendezvous::LogArchive::Open(directory() / rendezvous::ArchiveFileName(key)));
  archive_.emplace(std::move(archive));
  return Status::Ok();
}

// The next piece of the log, in one buffer: a new one for each piece takes longer than the search,
// since the kernel clears its pages.
Result<std::string_view> LogSearch::Read(const LogKey& key) {
  const FileAccessAs owner(directory().parent_path());
  if (!file_.valid() && !archive_) TRY(Open(key));
  if (archive_) return archive_->Read(offset_);
  buffer_.resize(kPiece);
  const ssize_t got = ::pread(file_.get(), buffer_.data(), kPiece, offset_);
  if (got < 0) return ErrnoStatus(errno, rendezvous::LogFileName(key));
  const std::string_view piece(buffer_.data(), static_cast<size_t>(got));
  if (piece.find('\0') == std::string_view::npos) return piece;
  // Zeros may be those of a hole, which reads as a line.
  TRY_ASSIGN(buffer_, rendezvous::ReadSegment(directory(), key, offset_, kPiece));
  return std::string_view(buffer_);
}

Result<bool> LogSearch::Step(int64_t bytes, const OnFoundLine& on_found) {
  bool stopped = false;
  bool at_end = false;  // of the log as it was listed: its unfinished last line needs one more read
  while ((bytes > 0 || std::exchange(at_end, false)) && !stopped) {
    if (scanner_ == nullptr) {
      TRY_ASSIGN(const bool more, NextLog());
      if (!more) return false;
    }
    const LogKey key = logs_[log_].key;
    const auto on_line = [&](const LogLine& line) {
      resume_offset_ = Behind(line);
      stopped = !on_found({sources_.jobs[job_].job, key, line});
      return !stopped;
    };
    const Result<std::string_view> piece = Read(key);
    bool done = !piece.ok() || piece->empty();
    if (done) {
      (void)scanner_->Finish(on_line);
    } else {
      // It fails if the log is removed, with its times.
      done = !scanner_->Add(offset_, *piece, on_line).ok();
      offset_ += static_cast<int64_t>(piece->size());
      if (bytes > 0) at_end = offset_ >= logs_[log_].bytes;
      bytes -= static_cast<int64_t>(piece->size());
      if (!stopped) resume_offset_ = scanner_->at();
    }
    if (stopped) {
      offset_ = resume_offset_;
      StartLog(logs_[log_]);
    } else if (done) {
      bytes -= kOpeningCost;
      scanner_.reset();
      file_.Reset();
      archive_.reset();
      resume_job_.clear();
      offset_ = 0;
      ++log_;
      TRY_ASSIGN(const bool more, NextLog());
      if (!more) return false;
    }
  }
  return true;
}

}  // namespace shoal::controller
