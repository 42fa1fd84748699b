// Displays a run on a terminal (status block), a pipe (plain lines) or for a program (one JSON
// object per line). Made by job_runner.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "cli/terminal/async_writer.h"
#include "cli/terminal/progress.h"
#include "controller/store/job_record.h"
#include "rendezvous/client/coordinator_client.h"

namespace shoal::cli {

enum class DisplayKind : uint8_t { kTerminal, kPlain, kJson, kQuiet };

// Must be used on the loop's thread.
class Display {
 public:
  virtual ~Display() = default;
  virtual void OnSubmitted(const std::string& id) = 0;
  virtual void OnState(job::JobState state, const std::string& why) = 0;
  virtual void OnEvent(const rendezvous::JobEvent& event) = 0;
  virtual void OnLog(const rendezvous::LogKey& key, int64_t offset, std::string_view bytes) = 0;
  virtual void OnNote(const std::string& text) = 0;
  // The user asked the job to stop.
  virtual void OnStopping(const std::string& text) = 0;
  // Called every kTick; the terminal also redraws soon after each event.
  virtual void OnTick() = 0;
  // The last call; restores the terminal. `stopped_by`: the user's signal, or empty.
  virtual void OnEnd(const controller::JobRecord& record, const std::string& stopped_by) = 0;
};

// Interval of OnTick.
inline constexpr Duration kTick = std::chrono::milliseconds(150);

// `out` receives all output and must outlive the display; while it is full, only the latest
// progress of each task is kept. `job`: for roles and outputs.
std::unique_ptr<Display> MakeDisplay(DisplayKind kind, AsyncWriter* out, const job::Job& job,
                                     const Clock* clock);

// {"event":"done",…}: the last line of a run with --json.
json::object DoneEvent(const controller::JobRecord& record, const job::Job& job,
                       const std::string& stopped_by);
// "word2vec-7f3a9c succeeded after 12 s: 4.2 M words/s, loss 0.23; the model is in DIR". `saved`:
// the job was stopped and the tasks in its success rule then ended well.
std::string EndSentence(const controller::JobRecord& record, const job::Job& job,
                        const std::string& stopped_by, bool saved);

}  // namespace shoal::cli
