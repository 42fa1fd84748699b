#include "controller/series/series_recorder.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <deque>
#include <optional>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "controller/series/series_files.h"

namespace shoal::controller {
namespace {

constexpr size_t kLogBytes = size_t{2} << 20;
constexpr size_t kMaxNumbers = 64;  // of one event

// The time of an event in the form of FormatWall; none for another text.
std::optional<WallTime> TimeOf(const rendezvous::JobEvent& event) {
  std::tm civil{};
  int micros = 0, length = 0;
  const int fields =
      std::sscanf(event.at.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ%n", &civil.tm_year, &civil.tm_mon,
                  &civil.tm_mday, &civil.tm_hour, &civil.tm_min, &civil.tm_sec, &micros, &length);
  if (fields != 7 || static_cast<size_t>(length) != event.at.size()) return std::nullopt;
  civil.tm_year -= 1900;
  civil.tm_mon -= 1;
  const int64_t seconds = ::timegm(&civil);
  return WallTime(std::chrono::seconds(seconds) + std::chrono::microseconds(micros));
}

std::optional<double> NumberIn(const json::value& value) {
  double number = 0;
  if (value.is_double()) {
    number = value.get_double();
  } else if (value.is_int64()) {
    number = static_cast<double>(value.get_int64());
  } else if (value.is_uint64()) {
    number = static_cast<double>(value.get_uint64());
  } else {
    return std::nullopt;
  }
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

}  // namespace

// Thread-safe. Blocks are written in the order of Put.
class SeriesRecorder::Files {
 public:
  explicit Files(std::filesystem::path dir) : dir_(std::move(dir)) {}

  // `begins`: the block is the first of a log.
  void Put(std::string block, bool begins) {
    const MutexLock lock(queue_mu_);
    queue_.emplace_back(std::move(block), begins);
  }

  // Writes the queued blocks.
  void Drain() {
    const MutexLock writing(write_mu_);
    for (;;) {
      std::pair<std::string, bool> next;
      {
        const MutexLock lock(queue_mu_);
        if (queue_.empty()) return;
        next = std::move(queue_.front());
        queue_.pop_front();
      }
      const Status written = Append(next.first, next.second);
      if (written.ok()) continue;
      log_.reset();
      broken_ = true;
      if (!std::exchange(told_, true))
        LogWarning("numbers for the curves of the job are lost: {}", written.message());
    }
  }

  // The present log takes no more: its last block could not be written. Resets it.
  bool TakeBroken() { return broken_.exchange(false); }

 private:
  Status Append(const std::string& block, bool begins) REQUIRES(write_mu_) {
    if (begins) TRY(BeginLog());
    // Later blocks of a log with a gap could use names that the gap has defined.
    if (!log_) return Status::Ok();
    return log_->Append(block);
  }

  Status BeginLog() REQUIRES(write_mu_) {
    log_.reset();
    const FileAccessAs owner(dir_.parent_path());
    TRY(MakeDirectories(dir_, 0700));
    TRY_ASSIGN(const std::vector<SeriesFile> files, ListSeriesFiles(dir_));
    uint64_t last = 0;
    for (const SeriesFile& file : files) last = std::max(last, file.last);
    TRY_ASSIGN(SeriesLogFile log, SeriesLogFile::Create(SeriesLogPath(dir_, last + 1)));
    log_.emplace(std::move(log));
    if (const Status compacted = CompactSeries(dir_, {}); !compacted.ok())
      LogWarning("the series of the job take more space: {}", compacted.message());
    return Status::Ok();
  }

  const std::filesystem::path dir_;
  Mutex write_mu_;  // held during writes, before queue_mu_
  std::optional<SeriesLogFile> log_ GUARDED_BY(write_mu_);
  bool told_ = false;  // likewise
  Mutex queue_mu_;
  std::deque<std::pair<std::string, bool>> queue_ GUARDED_BY(queue_mu_);
  std::atomic<bool> broken_ = false;
};

SeriesRecorder::SeriesRecorder(SeriesRecorderOptions options)
    : options_(std::move(options)), files_(std::make_shared<Files>(options_.dir)) {}

SeriesRecorder::~SeriesRecorder() { options_.loop->Cancel(timer_); }

void SeriesRecorder::AddEvent(const rendezvous::JobEvent& event) {
  using Type = rendezvous::JobEvent::Type;
  if (event.type != Type::kProgress && event.type != Type::kUsage) return;
  TaskState& task = tasks_[{event.role, event.index}];
  std::string& last = event.type == Type::kProgress ? task.progress_at : task.usage_at;
  if (last == event.at) return;
  last = event.at;
  const WallTime at = TimeOf(event).value_or(options_.clock->Wall());
  now_ms_ = std::chrono::duration_cast<std::chrono::milliseconds>(at.time_since_epoch()).count();
  if (event.type == Type::kProgress) AddProgress(event);
  if (event.type == Type::kUsage) AddUsage(event, &task);
  if (encoder_ && encoder_->pending_bytes() >= kBlockBytes) return Write();
  if (encoder_ && encoder_->pending_bytes() > 0 && timer_ == 0) {
    timer_ = options_.loop->After(kWriteDelay, [this] {
      timer_ = 0;
      Write();
    });
  }
}

void SeriesRecorder::AddProgress(const rendezvous::JobEvent& event) {
  const json::value* const unit = event.body.if_contains("unit");
  size_t numbers = 0;
  for (const auto& [name, value] : event.body) {
    const std::optional<double> number = NumberIn(value);
    if (!number || ++numbers > kMaxNumbers) continue;
    // Built-in learners report {"rate": 5e5, "unit": "words"}.
    if (name == "rate" && unit != nullptr && unit->is_string()) {
      Add(event, std::string(unit->get_string()) + "_per_second", *number);
    } else {
      Add(event, name, *number);
    }
  }
}

void SeriesRecorder::AddUsage(const rendezvous::JobEvent& event, TaskState* task) {
  Add(event, "memory_bytes", static_cast<double>(event.rss_bytes));
  Usage& last = task->usage;
  const double seconds = static_cast<double>(now_ms_ - last.ms) / 1000;
  if (last.attempt == event.attempt && seconds > 0 && event.cpu_seconds >= last.cpu_seconds)
    Add(event, "cpu_cores", (event.cpu_seconds - last.cpu_seconds) / seconds);
  last = {event.attempt, now_ms_, event.cpu_seconds};
}

void SeriesRecorder::Add(const rendezvous::JobEvent& event, std::string_view metric, double value) {
  if (!IsMetricName(metric)) return;
  const std::string name = SeriesName(event.role, event.index, metric);
  if (!IsSeriesName(name)) return;
  if (!encoder_) encoder_ = std::make_unique<SeriesLogEncoder>();
  (void)encoder_->Add(name, {now_ms_, value});  // false: the job has kMaxSeries others
}

void SeriesRecorder::Write() {
  options_.loop->Cancel(std::exchange(timer_, 0));
  if (!encoder_) return;
  std::string block = encoder_->TakeBlock();
  if (block.empty()) return;
  const bool begins = log_bytes_ == 0;
  log_bytes_ += block.size();
  files_->Put(std::move(block), begins);
  if (options_.executor == nullptr) {
    files_->Drain();
  } else {
    options_.executor->Execute([files = files_] { files->Drain(); });
  }
  if (log_bytes_ < kLogBytes && !files_->TakeBroken()) return;
  encoder_.reset();  // the next block begins another log
  log_bytes_ = 0;
}

}  // namespace shoal::controller
