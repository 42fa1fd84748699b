// Publishes to controllers: every recorded event once and in order, the latest progress, and log
// lines straight from the segments, at each controller's pace. Used by coordinator.cc.
//
// A controller that reads slowly, or is frozen, never delays the job and costs no memory: log lines
// stay in their files and recorded events here until its connection has room, and of transient
// events only the latest of each task waits. An attempt's end is published after its last log line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "job/execution/job_dir.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/protocol/connection.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::rendezvous {

// Belongs to the loop's thread.
class EventPublisher {
 public:
  explicit EventPublisher(std::filesystem::path logs)
      : logs_(std::move(logs)), journal_(job::JobDir(logs_.parent_path()).journal()) {}

  // An event with a seq; published once Release reached it.
  void Add(const JobEvent& event) { Add(event.seq, &event, 0); }
  // A record, the event that it stands for (null: none), and the journal's length with it.
  // Controllers that mirror the journal get it up to there, before the event.
  void Add(int64_t seq, const JobEvent* event, int64_t journal_bytes);
  // Records up to this seq may be published.
  void Release(int64_t seq);
  // Publishes at once and keeps nothing, except the latest progress and usage of each task.
  void PublishTransient(const JobEvent& event);
  // The log has `bytes` stored bytes.
  void LogGrew(const LogKey& key, int64_t bytes);
  // The log is complete; its last line may lack a line feed.
  void LogEnded(const LogKey& key);

  // The caller keeps ownership of `connection`, until Remove. InvalidArgument for a bad hello.
  Status Subscribe(Connection* connection, const json::object& hello);
  void Remove(Connection* connection);

 private:
  struct Entry {
    int64_t seq;
    bool ends = false;  // an attempt, named by `key`
    LogKey key;
    std::shared_ptr<const std::string> text;  // null: nothing to tell
    int64_t journal_bytes = 0;
  };
  struct Log {
    int64_t bytes = 0;
    bool ended = false;
  };
  // Events of one kind and task, of which only the latest is kept.
  using Slot = std::tuple<JobEvent::Type, std::string, int>;
  using Texts = std::map<Slot, std::shared_ptr<const std::string>>;
  struct Subscriber {
    Texts late;       // the latest events that did not fit
    size_t next = 0;  // in entries_
    bool logs = false;
    std::map<LogKey, int64_t> offsets;
    std::optional<int64_t> journal;  // bytes of it that were sent; none: not mirrored
  };

  void Pump(Connection* connection, Subscriber* subscriber);
  void PumpEvents(Connection* connection, Subscriber* subscriber);
  bool PumpLog(Connection* connection, const LogKey& key, const Log& log, int64_t* offset);
  // False if it cannot be read.
  bool PumpJournal(Connection* connection, int64_t upto, int64_t* sent);
  bool IsLogDelivered(const Subscriber& subscriber, const LogKey& key) const;
  void PumpAll();

  const std::filesystem::path logs_;
  const std::filesystem::path journal_;
  std::vector<Entry> entries_;
  int64_t released_ = 0;
  Texts latest_;  // progress and usage
  std::map<LogKey, Log> segments_;
  std::map<Connection*, Subscriber> subscribers_;
};

}  // namespace shoal::rendezvous
