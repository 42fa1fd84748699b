// Input and output of the coordinator's rules: events and actions of coordinator_core.h. Plain
// data.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "job/execution/state.h"
#include "rendezvous/journal/journal_record.h"

namespace shoal::rendezvous {

using Millis = std::chrono::milliseconds;
// A connection of a launcher: numbered from 1, never reused.
using MemberId = uint64_t;

// ---- Events -------------------------------------------------------------------------------------

struct LauncherJoined {
  MemberId member = 0;
  std::string role;
  int index = -1;  // -1: any
  int incarnation = 0;
  std::string instance;      // names the launcher's process; the same over its reconnections
  int64_t generation = 0;    // that it knows
  int last_attempt = -1;     // whose program it was last told to start
  bool has_program = false;  // that attempt runs, or its end was not acknowledged
  std::string node = {};     // host name as its engine, else its system, gives it; or empty
};
struct LauncherDisconnected {
  MemberId member = 0;
};
struct PortsLeased {
  MemberId member = 0;
  std::string host;
  std::vector<uint16_t> ports;
};
struct LauncherHeartbeat {  // any message
  MemberId member = 0;
  int attempt = -1;
  // For how long that attempt's program has been idle (launcher/activity_tracker.h); none: unknown.
  std::optional<Millis> still = std::nullopt;
  bool storing = false;  // that attempt's program has ended, its outputs are being stored
};
// The answer to kInspect: what the processes of a stalled program are doing
// (launcher/stall_diagnostics.h).
struct StallDiagnostics {
  MemberId member = 0;
  int attempt = 0;
  std::optional<Millis> still = std::nullopt;
  json::object body;
};
// Its log lines are stored already.
struct ProgramEnded {
  MemberId member = 0;
  int attempt = 0;
  job::TaskEnd end;
  std::string last_line;
  int log_rule = -1;             // index of the role's on_log rule that a line matched; -1: none
  std::string port_conflict;     // describes another process that has one of its ports; or empty
  std::string interrupted = {};  // describes a stop request not from the coordinator; or empty
};
// Another process has one of its ports; repeated on every connection.
struct PortConflict {
  MemberId member = 0;
  int attempt = 0;
  std::string text;
};
// The program is ready (Role::ready); repeated on every connection.
struct ProgramReady {
  MemberId member = 0;
  int attempt = 0;
};
struct ProgramResult {
  MemberId member = 0;
  int attempt = 0;
  int number = 0;  // of the attempt's results: 0, 1, …; repetitions are ignored
  json::object body;
};
struct Tick {};
struct ControllerConnected {};
struct ControllerDisconnected {};
// No controller is connected, but its process lives (a signal may have paused it).
struct ControllerAlive {};
struct Command {
  StopMode mode = StopMode::kDrain;
  std::string reason;
};
// All programs save and end, to be started again by a later coordinator.
struct Suspend {
  std::string reason;
};
// Sets the size of an elastic role.
struct Scale {
  std::string role;
  int replicas = 0;
  std::string reason;
};
// Reported by the engine.
struct LauncherLost {
  std::string role;
  int index = 0;
  int incarnation = 0;
  std::string reason;
};
struct LauncherRefused {
  std::string role;
  int index = 0;
  std::string reason;
};
struct VerdictAcknowledged {};

using Event =
    std::variant<LauncherJoined, LauncherDisconnected, PortsLeased, LauncherHeartbeat,
                 StallDiagnostics, ProgramEnded, ProgramReady, PortConflict, ProgramResult, Tick,
                 ControllerConnected, ControllerDisconnected, ControllerAlive, Command, Suspend,
                 Scale, LauncherLost, LauncherRefused, VerdictAcknowledged>;

// ---- Actions ------------------------------------------------------------------------------------

struct Action {
  enum class Kind : uint8_t {
    kRecord,    // record: append to the journal, then tell the controllers
    kWelcome,   // member serves `task`; `lease`: it is to lease ports
    kWait,      // member waits for an occupied slot; text: why
    kRefuse,    // text; close; `excluded`: because of its host
    kStart,     // the program of `task`, `attempt`, in the current generation
    kDescribe,  // the current description to member, or to all (0)
    kDrain,     // SIGTERM now, SIGKILL after the grace; text: why; signal
    kKill,      // SIGKILL now; `abandon`: do not wait for outputs either
    kInspect,   // say what the program of `attempt` is doing
    kAck,       // the end of `attempt` is stored
    kRelease,   // member may exit with 0
    kNote,      // text, to the controllers; not recorded
    kWriteVerdict,
    kExit,
  };
  Kind kind = Kind::kNote;
  MemberId member = 0;
  int task = -1;
  int attempt = 0;
  bool lease = false;
  Millis grace{0};        // of kDrain
  bool abandon = false;   // of kKill
  bool excluded = false;  // of kRefuse
  int signal = 0;         // of kDrain: sent first, SIGTERM after the grace; 0: none
  // Waits until this record is on disk; 0: at once.
  int64_t after = 0;
  std::string text;
  JournalRecord record;
};

struct CoreLimits {
  Millis suspect{5'000};
  Millis dead{30'000};
  Millis controller_loss{5'000};
  Millis controller_start{10'000};     // until the first controller connects
  Millis kill_timeout{5'000};          // a task that does not end after SIGKILL is given up as lost
  Millis elastic_join_window{10'000};  // for tasks above an elastic role's minimum
  Millis port_conflict_grace{500};     // SIGTERM to SIGKILL where another process has the port
  int max_port_conflicts = 50;         // more than these in a job's life fail it
  Millis linger{5'000};                // after the verdict, for its acknowledgement
  bool holds_verdict = false;          // waits as long even if the controller has gone
  Millis diagnostics{5'000};           // for launchers to answer kInspect
  int max_inspected_tasks = 200;       // of a stalled job
  size_t max_diagnostics_bytes = 16 << 10;  // recorded of one task
};

}  // namespace shoal::rendezvous
