// What controllers are told: every recorded event once and in order, the latest progress, and log
// lines straight from the segments, each controller at its own pace. Used by coordinator.cc.
//
// A controller that reads slowly, or is frozen, is never waited for and costs no memory: its log
// lines stay in the files and recorded events here until its connection has room, and of what is
// not recorded only the latest of each task waits. An attempt's end is told after its last log
// line.
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

  // An event with a seq; told once Release reached it.
  void Add(const JobEvent& event) { Add(event.seq, &event, 0); }
  // A record of this number, the event that it is (none: null), and how long the journal is with
  // it: who keeps the journal is given it up to there, before the event.
  void Add(int64_t seq, const JobEvent* event, int64_t journal_bytes);
  // Everything up to this seq may be told.
  void Release(int64_t seq);
  // Told at once, not kept, but for the latest progress and usage of each task.
  void PublishTransient(const JobEvent& event);
  // So many bytes of the log are stored.
  void LogGrew(const LogKey& key, int64_t bytes);
  // No more will come: its last line may lack a line feed.
  void LogEnded(const LogKey& key);

  // `connection` stays the caller's, until Remove. InvalidArgument for a bad hello.
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
  // What takes the place of the one before: of one kind and task.
  using Slot = std::tuple<JobEvent::Type, std::string, int>;
  using Texts = std::map<Slot, std::shared_ptr<const std::string>>;
  struct Subscriber {
    Texts late;       // the latest that there was no room for
    size_t next = 0;  // in entries_
    bool logs = false;
    std::map<LogKey, int64_t> offsets;
    std::optional<int64_t> journal;  // so much of it was sent; nothing: it does not want it
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
