// The wire format of the rendezvous: a WebSocket message is either a JSON object with a "type"
// (control) or a log frame (binary). Byte-exact in docs/formats/rendezvous.md.
//
// Used by coordinator_connection.cc (launchers, controllers) and connection.cc (the coordinator).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "job/execution/state.h"
#include "job/spec/job.h"
#include "rendezvous/logs/log_segment.h"

namespace shoal::rendezvous {

inline constexpr int kProtocolVersion = 1;
inline constexpr std::string_view kPath = "/shoal/rendezvous";
// Longest message to a coordinator, and from it (the description of a large cluster).
inline constexpr size_t kMaxMessageUp = 1 << 20;
inline constexpr size_t kMaxMessageDown = 64 << 20;
inline constexpr size_t kMaxName = 255;

// ---- Authentication -----------------------------------------------------------------------------

// Each side proves that it has the token without sending it: HMAC-SHA256 of both nonces, with the
// token as key and a prefix that names the side.
std::string ClientProof(std::string_view token, std::string_view server_nonce,
                        std::string_view client_nonce);
std::string ServerProof(std::string_view token, std::string_view server_nonce,
                        std::string_view client_nonce);
// 64 lower-case hex digits, of a nonce or proof.
bool IsHex64(std::string_view text);

// ---- Control ------------------------------------------------------------------------------------

// Serializes a message with a type and further fields.
std::string Message(std::string_view type, json::object fields = {});
// InvalidArgument unless the text is an object whose "type" is a string.
Result<json::object> ParseMessage(std::string_view text, std::string* type);

// A launcher's first message.
struct TaskHello {
  std::string role;
  int index = -1;  // -1: any
  int incarnation = 0;
  std::string instance;
  int64_t pid = 0;
  int64_t generation = 0;
  int last_attempt = -1;
  bool has_program = false;
  std::string node = {};  // of its host, as its engine or its system calls it; empty: not known
};
json::object ToJson(const TaskHello& hello);
Result<TaskHello> TaskHelloFromJson(const json::object& object);

struct LeasedMessage {
  std::string host;
  std::vector<uint16_t> ports;
};
json::object ToJson(const LeasedMessage& message);
Result<LeasedMessage> LeasedFromJson(const json::object& object);

struct EndedMessage {
  int attempt = 0;
  job::TaskEnd end;
  std::string last_line;
  int64_t log_bytes = 0;      // that the attempt printed; all of them were sent before
  int log_rule = -1;          // of StartMessage::on_log, that a line of it matched first; -1: none
  std::string port_conflict;  // describes another process that has one of its ports; or empty
  std::string outputs_lost;   // outputs that the coordinator does not have, and why
  std::string interrupted;    // describes a stop request not from the coordinator; or empty
};
json::object ToJson(const EndedMessage& message);
Result<EndedMessage> EndedFromJson(const json::object& object);

// Placeholder in variables of StartMessage for the attempt's output directory, which only its
// launcher knows.
inline constexpr std::string_view kOutputMark = "@shoal-output";

// Stands for the launcher's own executable among the words of a command and as a variable's value,
// where tasks do not have it at the coordinator's path (on Kubernetes, with an image of the job's).
inline constexpr const char* kOwnProgram = "@shoal";

struct StartMessage {
  int attempt = 0;
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;
  std::string work_dir;
  double cpu = 0;
  int64_t memory_bytes = 0;
  int64_t grace_ms = 0;
  // For a task of several processes: the variables of each, by local rank, on top of `env`.
  std::vector<std::vector<std::pair<std::string, std::string>>> processes;
  job::Ready ready;                 // the readiness check
  uint16_t port = 0;                // that it uses
  std::vector<std::string> on_log;  // patterns of lines that end it
  int64_t watch_ms = 0;             // activity sampling interval (activity_tracker.h); 0: none
  // DirectoryIdentity of the log directory: a launcher that sees the same directory writes its log
  // itself. Empty: the coordinator writes it.
  std::string log_directory_id;
};
// StartMessage::watch_ms for a job with this stall limit, 0 for none: a stall is detected at most a
// twentieth late, and a program's own periodic work falls into every interval.
inline std::chrono::milliseconds ActivitySampleInterval(std::chrono::milliseconds stall) {
  using std::chrono::milliseconds;
  if (stall.count() == 0) return milliseconds(0);
  return std::clamp(stall / 20, milliseconds(1'000), milliseconds(30'000));
}
// Replaces kOwnProgram in the commands and variables of the message by this path.
void SetOwnProgram(const std::string& program, StartMessage* message);
json::object ToJson(const StartMessage& message);
Result<StartMessage> StartFromJson(const json::object& object);

// ---- Log lines ----------------------------------------------------------------------------------

struct LogFrame {
  LogKey key;
  int64_t offset = 0;
  std::string_view bytes;  // into the frame
};
std::string EncodeLogFrame(const LogKey& key, int64_t offset, std::string_view bytes);
Result<LogFrame> DecodeLogFrame(std::string_view frame);

// ---- The journal --------------------------------------------------------------------------------

// A part of the coordinator's journal: to a controller that mirrors it, and back from it.
struct JournalFrame {
  int64_t offset = 0;
  std::string_view bytes;  // into the frame
};
inline constexpr size_t kMaxJournalData = 256 << 10;
std::string EncodeJournalFrame(int64_t offset, std::string_view bytes);
Result<JournalFrame> DecodeJournalFrame(std::string_view frame);
// Whether a binary message is a journal frame, by its first bytes.
bool IsJournalFrame(std::string_view frame);

// Cuts text to at most `limit` bytes of valid UTF-8; other bytes become '?'.
std::string CleanText(std::string_view text, size_t limit);

}  // namespace shoal::rendezvous
