// The rendezvous' wire: one WebSocket message is either a JSON object with a "type" (control) or a
// log frame (binary). Byte-exact in docs/formats/rendezvous.md.
//
// Spoken by link.cc (launchers, controllers) and peer.cc (the coordinator's side).
#pragma once

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
// Longest message to a coordinator, and from it (a description of a large cluster).
inline constexpr size_t kMaxMessageUp = 1 << 20;
inline constexpr size_t kMaxMessageDown = 64 << 20;
// Data bytes of one log frame; a longer line is cut into several.
inline constexpr size_t kMaxLogData = 64 << 10;
inline constexpr size_t kMaxName = 255;

// ---- Authentication -----------------------------------------------------------------------------

// Each side proves that it has the token without sending it: HMAC-SHA256 under the token of who
// proves and both sides' nonces.
std::string ClientProof(std::string_view token, std::string_view server_nonce,
                        std::string_view client_nonce);
std::string ServerProof(std::string_view token, std::string_view server_nonce,
                        std::string_view client_nonce);
// 64 lower-case hex digits, of a nonce or proof.
bool IsHex64(std::string_view text);

// ---- Control ------------------------------------------------------------------------------------

// A message's text from its type and the rest of its fields.
std::string Message(std::string_view type, json::object fields = {});
// An object whose "type" is a string; InvalidArgument.
Result<json::object> ParseMessage(std::string_view text, std::string* type);

// What a launcher says of itself in its first message.
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
  std::string port_conflict;  // who else listens on one of its ports; empty: nobody
  std::string outputs_lost;   // what of its outputs did not come to the coordinator, and why
  std::string interrupted;  // how others than the coordinator told it to stop before; empty: nobody
};
json::object ToJson(const EndedMessage& message);
Result<EndedMessage> EndedFromJson(const json::object& object);

// In a variable of StartMessage: the attempt's own directory for outputs, which its launcher knows.
inline constexpr std::string_view kOutputMark = "@shoal-output";

struct StartMessage {
  int attempt = 0;
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;
  std::string work_dir;
  double cpu = 0;
  int64_t memory_bytes = 0;
  int64_t grace_ms = 0;
  // Of a task of several processes, by local rank: what each has over `env`. Empty: it is one.
  std::vector<std::vector<std::pair<std::string, std::string>>> processes;
  job::Ready ready;                 // how to see that it serves
  uint16_t port = 0;                // … at this port
  std::vector<std::string> on_log;  // lines that end it
  int64_t watch_ms = 0;             // look so often whether it moves (movement.h); 0: never
  // DirectoryIdentity of where the logs are: whoever sees it writes its own there. Empty: the
  // coordinator does.
  std::string log_directory_id;
};
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

// A part of the coordinator's journal: to a controller that keeps it, and back from it.
struct JournalFrame {
  int64_t offset = 0;
  std::string_view bytes;  // into the frame
};
inline constexpr size_t kMaxJournalData = 256 << 10;
std::string EncodeJournalFrame(int64_t offset, std::string_view bytes);
Result<JournalFrame> DecodeJournalFrame(std::string_view frame);
// Whether a binary message is one, by its first bytes.
bool IsJournalFrame(std::string_view frame);

// Text cut to at most `limit` bytes of valid UTF-8, with what is not replaced by '?'.
std::string CleanText(std::string_view text, size_t limit);

}  // namespace shoal::rendezvous
