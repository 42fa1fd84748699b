// What goes into the coordinator's rules and what comes out: the events and actions of
// coordinator_core.h. Plain data.
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
// A connection of a launcher: the shell numbers them from 1 and never uses a number twice.
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
  std::string node = {};     // how its engine, else its system, calls the host; empty: not known
};
struct LauncherDisconnected {
  MemberId member = 0;
};
struct PortsLeased {
  MemberId member = 0;
  std::string host;
  std::vector<uint16_t> ports;
};
struct LauncherHeartbeat {  // a heartbeat or anything else
  MemberId member = 0;
  int attempt = -1;
  // For how long that attempt's program has stood still (movement.h); none: that is not known.
  std::optional<Millis> still = std::nullopt;
  bool storing = false;  // that attempt's program has ended, its outputs are being stored
};
// What a program that stands still is doing (diagnostics.h): the answer to kInspect.
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
  int log_rule = -1;             // that a line of it matched, of its role's on_log; -1: none
  std::string port_conflict;     // who else listens on one of its ports; empty: nobody
  std::string interrupted = {};  // how others than the coordinator told it to stop; empty: nobody
};
// Somebody else listens on one of its ports; told again on every connection.
struct PortConflict {
  MemberId member = 0;
  int attempt = 0;
  std::string text;
};
// Its launcher has seen that it serves (Role::ready); told again on every connection.
struct ProgramReady {
  MemberId member = 0;
  int attempt = 0;
};
struct ProgramResult {
  MemberId member = 0;
  int attempt = 0;
  int number = 0;  // of the attempt's results: 0, 1, … ; one that is told again is ignored
  json::object body;
};
struct Tick {};
struct ControllerConnected {};
struct ControllerDisconnected {};
// None is connected, and the process that is to be it lives (it may be stopped by a signal).
struct ControllerAlive {};
struct Command {
  StopMode mode = StopMode::kDrain;
  std::string reason;
};
// All programs are to save and end, and to be started again some day, by another coordinator.
struct Suspend {
  std::string reason;
};
// How many tasks an elastic role is to have.
struct Scale {
  std::string role;
  int replicas = 0;
  std::string reason;
};
// The engine's word.
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
    kWelcome,   // member holds the place of `task`; `lease`: it is to lease its ports
    kWait,      // member waits for the place; text: for whom
    kRefuse,    // text; close; `excluded`: of its host, another is to be found
    kStart,     // the program of `task`, `attempt`, in the current generation
    kDescribe,  // the current description to member, or to all (0)
    kDrain,     // SIGTERM now, SIGKILL after the grace; text: why; signal
    kKill,      // SIGKILL now; `abandon`: nor are outputs waited for that are being stored
    kInspect,   // say what the program of `attempt` is doing
    kAck,       // the end of `attempt` is stored
    kRelease,   // nothing is left to do for member: it may exit with 0
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
  int signal = 0;         // of kDrain: before SIGTERM, which then follows after the grace; 0: none
  // Not before the record of this number is on disk; 0: at once.
  int64_t after = 0;
  std::string text;
  JournalRecord record;
};

struct CoreLimits {
  Millis suspect{5'000};
  Millis dead{30'000};
  Millis controller_loss{5'000};
  Millis controller_start{10'000};     // until the first one comes
  Millis kill_timeout{5'000};          // a task that does not end after SIGKILL is given up as lost
  Millis elastic_join_window{10'000};  // for more than an elastic role's min to join
  Millis port_conflict_grace{500};     // SIGTERM to SIGKILL where another process has the port
  int max_port_conflicts = 50;         // more than these in a job's life fail it
  Millis linger{5'000};                // after the verdict, for its acknowledgement
  bool holds_verdict = false;          // for as long, though its controller has gone
  Millis diagnostics{5'000};           // for the launchers to say what a stalled job is doing
  int max_inspected_tasks = 200;       // so many tasks of a stalled job are asked
  size_t max_diagnostics_bytes = 16 << 10;  // of one task, kept
};

}  // namespace shoal::rendezvous
