#include "api/client/job_stream.h"

#include <thread>
#include <utility>
#include <vector>

#include "api/rest/job_json.h"
#include "base/base64.h"
#include "base/mutex.h"
#include "net/http/sse_reader.h"

namespace shoal::api {
namespace {

constexpr size_t kMaxEvent = size_t{16} << 20;
// Longer parameters go into a body: servers and proxies limit heads to 8 KiB and more.
constexpr size_t kMaxQuery = 4096;
constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::seconds(3);
// The server writes a comment every 15 s; without one the connection is dead.
constexpr std::chrono::milliseconds kSilence{45'000};

// Between the thread that reads and the loop that calls back.
struct Shared {
  Mutex mu;
  CondVar changed;
  bool ended GUARDED_BY(mu) = false;                       // the owner is gone
  std::shared_ptr<net::HttpStream> stream GUARDED_BY(mu);  // the open one
};

class ReadingJobStream final : public JobStream {
 public:
  ReadingJobStream(const ApiClient* client, net::Loop* loop, JobStreamOptions options,
                   JobStreamCallbacks callbacks)
      : client_(client),
        loop_(loop),
        options_(std::move(options)),
        callbacks_(std::make_shared<JobStreamCallbacks>(std::move(callbacks))) {
    thread_ = std::thread([this] { Run(); });
  }
  ~ReadingJobStream() override {
    {
      const MutexLock lock(shared_->mu);
      shared_->ended = true;
      if (shared_->stream != nullptr) shared_->stream->Cancel();
    }
    shared_->changed.notify_all();
    thread_.join();
  }

 private:
  void Run() {
    TimePoint lost = RealClock::Get()->Now();
    Duration pause = kFirstPause;
    bool told = false;
    while (!ended()) {
      const Status status = ReadOnce(&lost, &pause, &told);
      if (done_ || ended()) return;
      const bool again = status.code() == Code::kUnavailable || status.ok() ||
                         status.code() == Code::kDeadlineExceeded;
      if (!again || RealClock::Get()->Now() - lost > kPatience)
        return Post([status](auto& to) {
          if (to.on_end) to.on_end(status.ok() ? Unavailable("the stream ended early") : status);
        });
      if (!std::exchange(told, true)) Note(status.message() + "; trying again");
      Pause(pause);
      pause = std::min(kLongestPause, pause * 2);
    }
  }

  // Reads until the connection breaks or the job has ended.
  Status ReadOnce(TimePoint* lost, Duration* pause, bool* told) {
    TRY_ASSIGN(std::unique_ptr<net::HttpStream> opened, Open());
    const std::shared_ptr<net::HttpStream> stream = std::move(opened);
    {
      const MutexLock lock(shared_->mu);
      if (shared_->ended) return Status::Ok();
      shared_->stream = stream;
    }
    if (std::exchange(*told, false)) Note("the server " + client_->url() + " answers again");
    *pause = kFirstPause;
    net::SseReader reader(kMaxEvent);
    Status status;
    while (!done_ && !ended()) {
      const Result<std::string> bytes = stream->Next(kSilence);
      *lost = RealClock::Get()->Now();
      if (!bytes.ok()) status = bytes.status();
      if (!bytes.ok() || bytes->empty()) break;
      std::vector<net::SseEvent> events;
      TRY(reader.Feed(*bytes, &events));
      for (const net::SseEvent& event : events) OnEvent(event);
    }
    const MutexLock lock(shared_->mu);
    shared_->stream.reset();
    return status;
  }

  Result<std::unique_ptr<net::HttpStream>> Open() const {
    const std::string target = "/api/v1/jobs/" + net::PercentEncode(options_.id) + "/stream";
    const auto parameters = Parameters();
    const std::string query = QueryText(parameters);
    if (query.size() <= kMaxQuery) return client_->OpenEvents(target + query);
    json::object body;
    for (const auto& [name, value] : parameters)
      if (!value.empty()) body[name] = value;
    body["logs"] = options_.logs;
    body["events"] = options_.events;
    if (options_.selection.attempt) body["attempt"] = *options_.selection.attempt;
    return client_->OpenEvents(target, ToText(body));
  }

  std::vector<std::pair<std::string, std::string>> Parameters() const {
    std::string from;
    for (const auto& [key, offset] : options_.from)
      from += (from.empty() ? "" : ",") + LogName(key) + ":" + std::to_string(offset);
    const controller::LogSelection& chosen = options_.selection;
    std::string task = chosen.role;
    if (chosen.index) task += "-" + std::to_string(*chosen.index);
    return {{"logs", options_.logs ? "true" : "false"},
            {"events", options_.events ? "true" : "false"},
            {"task", task},
            {"attempt", chosen.attempt ? std::to_string(*chosen.attempt) : ""},
            {"from", from},
            {"after", after_ > 0 ? std::to_string(after_) : ""}};
  }

  void OnEvent(const net::SseEvent& event) {
    const Result<json::object> data = ParseJsonObject(event.data);
    if (!data.ok()) return;
    if (event.type == "event") return OnStored(*data);
    if (event.type == "log") return OnLog(*data);
    if (event.type == "end") return OnEnd(*data);
    if (event.type == "note") return Note(GetStringOr(*data, "text", ""));
    if (event.type != "live") return;
    const auto live = rendezvous::EventFromJson(*data);
    if (!live.ok()) return;
    Post([live = *live](auto& to) {
      if (to.on_live) to.on_live(live);
    });
  }

  void OnStored(const json::object& data) {
    const auto stored = ParseEventReply(data);
    if (!stored.ok() || stored->seq <= after_) return;
    after_ = stored->seq;
    Post([stored = *stored](auto& to) {
      if (to.on_event) to.on_event(stored);
    });
  }

  void OnLog(const json::object& data) {
    controller::LogKey key{GetStringOr(data, "role", ""),
                           static_cast<int>(GetIntOr(data, "index", 0)),
                           static_cast<int>(GetIntOr(data, "attempt", 0))};
    const int64_t offset = GetIntOr(data, "offset", 0);
    std::string bytes = GetStringOr(data, "text", "");
    if (const std::string coded = GetStringOr(data, "base64", ""); !coded.empty())
      bytes = DecodeBase64(coded).value_or("");
    options_.from[key] = offset + static_cast<int64_t>(bytes.size());
    Post([key, offset, bytes = std::move(bytes)](auto& to) {
      if (to.on_log) to.on_log(key, offset, bytes);
    });
  }

  void OnEnd(const json::object& data) {
    done_ = true;
    Post([job = ParseJobReply(data)](auto& to) {
      if (to.on_end) to.on_end(job);
    });
  }

  void Note(const std::string& sentence) {
    Post([sentence](auto& to) {
      if (to.on_note) to.on_note(sentence);
    });
  }

  // Calls on the loop's thread, unless the owner is gone by then.
  void Post(std::function<void(JobStreamCallbacks&)> call) {
    loop_->Post([shared = shared_, callbacks = callbacks_, call = std::move(call)] {
      {
        const MutexLock lock(shared->mu);
        if (shared->ended) return;
      }
      call(*callbacks);
    });
  }

  bool ended() const {
    const MutexLock lock(shared_->mu);
    return shared_->ended;
  }
  void Pause(Duration pause) {
    MutexLock lock(shared_->mu);
    shared_->changed.wait_for(lock, pause,
                              [this]() REQUIRES(shared_->mu) { return shared_->ended; });
  }

  const ApiClient* const client_;
  net::Loop* const loop_;
  JobStreamOptions options_;  // of the thread, as are the next two
  int64_t after_ = 0;
  bool done_ = false;
  const std::shared_ptr<JobStreamCallbacks> callbacks_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::thread thread_;
};

}  // namespace

std::unique_ptr<JobStream> JobStream::Open(const ApiClient* client, net::Loop* loop,
                                           JobStreamOptions options, JobStreamCallbacks callbacks) {
  return std::make_unique<ReadingJobStream>(client, loop, std::move(options), std::move(callbacks));
}

}  // namespace shoal::api
