// Merges the output of an attempt's processes into its one log: with several processes each line
// gets its process's number. Also finds the log lines that the job waits for. Used by attempt.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/logs/log_spool.h"

namespace shoal::rendezvous {

// Not thread-safe. Lines are matched up to kWatchedLine bytes.
class TaskOutput {
 public:
  static constexpr size_t kWatchedLine = 4096;
  // With several processes an unterminated line is cut after so many bytes.
  static constexpr size_t kLongestLine = 64 << 10;

  // `patterns`: as policy.h's LineMatches takes them.
  TaskOutput(int processes, std::vector<std::string> patterns);

  // What to append to the log; valid until the next call. With one process the bytes themselves,
  // without a copy; with several "[3] line" for each complete line.
  std::string_view Take(int process, std::string_view bytes);
  // The remaining unterminated lines. Once, at the end.
  std::string_view Finish();

  // The first pattern matched since the last call and not reported before; -1: none.
  int TakeMatch();
  const std::string& last_line(int process) const;

 private:
  struct Process {
    LastLine last;
    std::string held;     // with several processes: the unfinished line
    std::string watched;  // with patterns: the unfinished line
  };
  void Watch(Process* process, std::string_view bytes);
  void LookAt(std::string_view line);
  void Prefix(size_t process, std::string_view bytes);

  const std::vector<std::string> patterns_;
  std::vector<bool> matched_;
  std::vector<int> untold_;
  std::vector<Process> processes_;
  std::string out_;
};

}  // namespace shoal::rendezvous
