// Events and logs of one job: stored events are read from the store, log bytes from the job's
// files, each from the follower's own position, so that a slow peer costs no memory.

#include <algorithm>
#include <utility>
#include <vector>

#include "api/rest/job_json.h"
#include "api/server/follower.h"
#include "base/base64.h"
#include "base/utf8.h"
#include "controller/files/cleanup_lock.h"
#include "job/execution/state.h"

namespace shoal::api {
namespace {

using controller::LogInfo;
using controller::LogKey;

constexpr int kEventsAtOnce = 200;
constexpr size_t kLogPiece = size_t{64} << 10;
constexpr size_t kMaxNamedLogs = 64;  // in the position of an event
constexpr Duration kCleanupPoll = std::chrono::milliseconds(20);
constexpr int kCleanupPolls = 500;  // 10 s

class JobFollower final : public Follower {
 public:
  JobFollower(const FollowerSources& sources, JobFollowRequest request, std::shared_ptr<Sink> sink)
      : sources_(sources),
        request_(std::move(request)),
        sink_(std::move(sink)),
        logs_(sources.home.job_dir(request_.job)) {}

  const std::string& job() const override { return request_.job; }
  bool wants_logs() const override { return request_.logs; }
  void OnStored() override { events_left_ = true; }
  void OnLog() override { logs_left_ = true; }
  Sink& sink() override { return *sink_; }

  void OnLive(std::string_view event, const json::value& data) override {
    if (request_.events && !sink_->full()) (void)sink_->Write(event, "", data);
  }

  bool Pump() override {
    if (!PumpEvents() || !PumpLogs()) return false;
    if (sink_->full() || !ended_ || events_left_ || logs_left_) return true;
    return !End();
  }

 private:
  // False if the peer has gone or the job is no longer in the store.
  bool PumpEvents() {
    while (events_left_ && !sink_->full()) {
      const auto events = sources_.store->ReadEvents(request_.job, request_.after, kEventsAtOnce);
      if (!events.ok()) return false;
      for (const controller::Event& event : *events) {
        request_.after = event.seq;
        if (event.type == "ended") ended_ = true;
        if (event.type == "ended") logs_left_ = request_.logs;
        if (!request_.events) continue;
        if (!sink_->Write("event", Position(), EventToReply(request_.job, event))) return false;
      }
      events_left_ = static_cast<int>(events->size()) == kEventsAtOnce;
    }
    if (!events_left_ && !std::exchange(caught_up_, true)) CheckEnd();
    return true;
  }

  // A client that connects again may have the job's last event already, and no other will come.
  void CheckEnd() {
    const auto job = sources_.store->GetJob(request_.job);
    if (!job.ok() || !job::IsFinal(job->state) || job->last_seq > request_.after) return;
    ended_ = true;
    logs_left_ = request_.logs;
  }

  bool PumpLogs() {
    if (!request_.logs || !logs_left_ || sink_->full()) return true;
    const auto chosen = Choose();
    bool rest = false;
    for (const LogInfo& log : chosen) {
      auto [offset, fresh] = request_.from.try_emplace(log.key, 0);
      if (fresh && request_.tail >= 0 && !started_)
        offset->second = logs_.TailOffset(log.key, request_.tail).value_or(0);
      while (offset->second < log.bytes && !sink_->full()) {
        if (!WritePiece(log.key, &offset->second)) return false;
      }
      rest = rest || offset->second < log.bytes;
    }
    started_ = true;
    logs_left_ = rest;
    return true;
  }

  // The selected logs: as `shoal logs -f` selects, the logs of all attempts that appear.
  std::vector<LogInfo> Choose() const {
    auto all = logs_.List();
    if (!all.ok()) return {};
    const controller::LogSelection& wanted = request_.selection;
    std::erase_if(*all, [&](const LogInfo& log) {
      return (!wanted.role.empty() && log.key.role != wanted.role) ||
             (wanted.index && log.key.index != *wanted.index) ||
             (wanted.attempt && log.key.attempt != *wanted.attempt);
    });
    return *all;
  }

  // False if the peer has gone or the log cannot be read.
  bool WritePiece(const LogKey& key, int64_t* offset) {
    Result<std::string> bytes = logs_.Read(key, *offset, kLogPiece);
    if (!bytes.ok() || bytes->empty()) return false;
    // Pieces end with a line where they can, so that they are valid UTF-8.
    const size_t line = bytes->rfind('\n');
    if (bytes->size() == kLogPiece && line != std::string::npos) bytes->resize(line + 1);
    json::object data{
        {"role", key.role}, {"index", key.index}, {"attempt", key.attempt}, {"offset", *offset}};
    *offset += static_cast<int64_t>(bytes->size());
    if (IsUtf8(*bytes)) {
      data["text"] = *bytes;
    } else {
      data["base64"] = EncodeBase64(*bytes);
    }
    return sink_->Write("log", Position(), data);
  }

  // "EVENT;worker-0.0:1234,…": a client that connects again sends it back as Last-Event-ID.
  std::string Position() const {
    std::string text = std::to_string(request_.after);
    if (!request_.logs || request_.from.size() > kMaxNamedLogs) return text;
    char separator = ';';
    for (const auto& [key, offset] : request_.from) {
      text += separator + LogName(key) + ":" + std::to_string(offset);
      separator = ',';
    }
    return text;
  }

  // True once the end is written: after the controller has removed the job's resources.
  bool End() {
    if (polls_ < kCleanupPolls &&
        controller::IsCleanupRunning(sources_.home.job_dir(request_.job))) {
      ++polls_;
      sources_.pump_later(request_.job, kCleanupPoll);
      return false;
    }
    const auto job = sources_.store->GetJob(request_.job);
    if (job.ok()) (void)sink_->Write("end", "", JobToReply(*job, false));
    sink_->Finish();
    return true;
  }

  const FollowerSources& sources_;
  JobFollowRequest request_;
  const std::shared_ptr<Sink> sink_;
  const controller::LogStore logs_;
  bool events_left_ = true;
  bool logs_left_ = true;
  bool caught_up_ = false;  // the events that were there at the beginning have been read
  bool started_ = false;    // the logs that were there at the beginning have their offsets
  bool ended_ = false;
  int polls_ = 0;
};

}  // namespace

std::unique_ptr<Follower> MakeJobFollower(const FollowerSources& sources, JobFollowRequest request,
                                          std::shared_ptr<Sink> sink) {
  return std::make_unique<JobFollower>(sources, std::move(request), std::move(sink));
}

}  // namespace shoal::api
