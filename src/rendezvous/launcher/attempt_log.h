// The log of the attempt that runs: bytes go into the job's logs directory where this host sees the
// coordinator's, else through a LogSpool to the coordinator. Copies them to this process's output.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "net/event_loop.h"
#include "rendezvous/logs/log_segment.h"
#include "rendezvous/logs/log_spool.h"
#include "rendezvous/logs/timed_log_writer.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::rendezvous {

// Used on the loop's thread only.
class AttemptLog {
 public:
  // Tells the coordinator the size of a log that is written here. False: there is no connection.
  using ReportGrowth = std::function<bool(int attempt, int64_t bytes)>;

  // `loop` must outlive this. `copy_fd`: the bytes are copied there as far as that does not block,
  // except into a file where this writes the log itself; -1: no copy.
  AttemptLog(net::Loop* loop, std::filesystem::path logs_dir, int copy_fd,
             ReportGrowth report_growth);
  ~AttemptLog();
  AttemptLog(const AttemptLog&) = delete;
  AttemptLog& operator=(const AttemptLog&) = delete;

  // The following bytes belong to `key`. `directory_id` is the identity (DirectoryIdentity) of the
  // coordinator's logs directory. A file is made with the first line.
  void Begin(LogKey key, const std::string& directory_id);
  // False: the program must be paused until HasRoom.
  bool Append(std::string_view text);
  bool HasRoom() const { return spool_.bytes() < kSpoolLimit / 2; }

  struct Finished {
    int64_t bytes = 0;
    bool written_here = false;
  };
  // The attempt that Begin named has ended; its length.
  Finished Finish();

  // The coordinator's logs directory is visible here (that of the last Begin).
  bool shares_directory() const { return shares_directory_; }

  // Sends chunks of the spool while the connection has room.
  void SendTo(CoordinatorConnection* connection);
  // Reports growth since the last report, now and then at intervals.
  void ScheduleGrowthReport();
  bool AllSent(int attempt) const { return spool_.AllSent(attempt); }
  // The connection was lost: what is not acknowledged is sent again.
  void Rewind();
  // The coordinator has stored the attempt's log up to `bytes`; all of it.
  void Ack(int attempt, int64_t bytes) { spool_.Ack(attempt, bytes); }
  void AckAll(int attempt) { spool_.AckAll(attempt); }

 private:
  // False: the bytes go to the coordinator, which reports it if they cannot be stored.
  bool TryWriteHere(std::string_view text);
  Status WriteHere(std::string_view text);
  void Copy(std::string_view bytes) const;

  net::Loop* const loop_;
  const std::filesystem::path logs_dir_;
  const int copy_fd_;
  const ReportGrowth report_growth_;
  mode_t copy_mode_ = 0;
  LogKey key_{"", 0, -1};
  bool shares_directory_ = false;
  bool writes_here_ = false;               // this attempt's log
  std::optional<TimedLogWriter> segment_;  // opened with the first line
  int64_t reported_bytes_ = 0;             // on this connection
  net::Loop::Id growth_timer_ = 0;
  LogSpool spool_;
};

}  // namespace shoal::rendezvous
