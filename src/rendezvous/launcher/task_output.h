// What the processes of one attempt print, on its way into the attempt's one log: of several
// processes each line gets its process's number, and lines that the job waits for are seen. Used by
// attempt.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/logs/log_spool.h"

namespace shoal::rendezvous {

// Plain data structure; not thread-safe. Lines are looked at up to kWatchedLine bytes.
class TaskOutput {
 public:
  static constexpr size_t kWatchedLine = 4096;
  // Of several processes a line without an end is cut after so many bytes.
  static constexpr size_t kLongestLine = 64 << 10;

  // `patterns` as policy.h's LineMatches takes them.
  TaskOutput(int processes, std::vector<std::string> patterns);

  // What goes into the log now; valid until the next call. Of a single process it is what was
  // printed, without a copy; of several "[3] line" for each whole line.
  std::string_view Take(int process, std::string_view bytes);
  // What was held back for want of a line's end. Once, at the end.
  std::string_view Finish();

  // The first pattern that a line matched since the last call, of those that were not told yet; -1:
  // none. Each is told once.
  int TakeMatch();
  const std::string& last_line(int process) const;

 private:
  struct Process {
    LastLine last;
    std::string held;     // of several: the line under way
    std::string watched;  // with patterns: the same
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
