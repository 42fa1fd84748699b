#include "rendezvous/protocol/messages.h"

#include <algorithm>
#include <limits>

#include "base/bytes.h"
#include "base/id.h"
#include "base/utf8.h"
#include "rendezvous/logs/last_line.h"

namespace shoal::rendezvous {
namespace {

constexpr uint16_t kLogMagic = 0x4c53;  // "SL"
constexpr uint8_t kLogVersion = 1;
constexpr uint16_t kJournalMagic = 0x4a53;  // "SJ"
constexpr uint16_t kJournalVersion = 1;
constexpr size_t kMaxPorts = 256;

std::string Proof(std::string_view who, std::string_view token, std::string_view server_nonce,
                  std::string_view client_nonce) {
  std::string message = "shoal-rendezvous-1 ";
  message.append(who).append(" ").append(server_nonce).append(" ").append(client_nonce);
  return HmacSha256Hex(token, message);
}

Result<int> GetSmall(const json::object& object, std::string_view field, int least) {
  TRY_ASSIGN(const int64_t value, GetInt(object, field));
  if (value < least || value > std::numeric_limits<int>::max()) {
    return InvalidArgument("field '" + std::string(field) + "': got " + std::to_string(value) +
                           ", expected at least " + std::to_string(least));
  }
  return static_cast<int>(value);
}

Result<std::string> GetName(const json::object& object, std::string_view field) {
  TRY_ASSIGN(std::string text, GetString(object, field));
  if (text.empty() || text.size() > kMaxName) {
    return InvalidArgument("field '" + std::string(field) + "': expected 1 to 255 bytes");
  }
  return text;
}

Result<const json::array*> GetArray(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr || !value->is_array()) {
    return InvalidArgument("field '" + std::string(field) + "': expected an array");
  }
  return &value->get_array();
}

}  // namespace

std::string ClientProof(std::string_view token, std::string_view server_nonce,
                        std::string_view client_nonce) {
  return Proof("client", token, server_nonce, client_nonce);
}

std::string ServerProof(std::string_view token, std::string_view server_nonce,
                        std::string_view client_nonce) {
  return Proof("server", token, server_nonce, client_nonce);
}

bool IsHex64(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string Message(std::string_view type, json::object fields) {
  fields["type"] = type;
  return ToText(fields);
}

Result<json::object> ParseMessage(std::string_view text, std::string* type) {
  TRY_ASSIGN(json::object object, ParseJsonObject(text));
  TRY_ASSIGN(*type, GetString(object, "type"));
  return object;
}

json::object ToJson(const TaskHello& hello) {
  return {{"kind", "task"},
          {"role", hello.role},
          {"index", hello.index},
          {"incarnation", hello.incarnation},
          {"instance", hello.instance},
          {"pid", hello.pid},
          {"generation", hello.generation},
          {"last_attempt", hello.last_attempt},
          {"has_program", hello.has_program},
          {"node", hello.node}};
}

Result<TaskHello> TaskHelloFromJson(const json::object& object) {
  TaskHello hello;
  TRY_ASSIGN(hello.role, GetName(object, "role"));
  TRY_ASSIGN(hello.index, GetSmall(object, "index", -1));
  TRY_ASSIGN(hello.incarnation, GetSmall(object, "incarnation", 0));
  TRY_ASSIGN(hello.instance, GetName(object, "instance"));
  TRY_ASSIGN(hello.last_attempt, GetSmall(object, "last_attempt", -1));
  TRY_ASSIGN(hello.has_program, GetBool(object, "has_program"));
  hello.node = CleanText(GetStringOr(object, "node", ""), kMaxName);
  hello.pid = GetIntOr(object, "pid", 0);
  hello.generation = GetIntOr(object, "generation", 0);
  return hello;
}

json::object ToJson(const LeasedMessage& message) {
  json::array ports;
  for (const uint16_t port : message.ports) ports.push_back(int64_t{port});
  return {{"host", message.host}, {"ports", std::move(ports)}};
}

Result<LeasedMessage> LeasedFromJson(const json::object& object) {
  LeasedMessage message;
  TRY_ASSIGN(message.host, GetName(object, "host"));
  TRY_ASSIGN(const json::array* ports, GetArray(object, "ports"));
  if (ports->size() > kMaxPorts) return InvalidArgument("field 'ports': too many");
  for (const json::value& port : *ports) {
    if (!port.is_int64() || port.get_int64() < 1 || port.get_int64() > 65535) {
      return InvalidArgument("field 'ports': expected numbers from 1 to 65535");
    }
    message.ports.push_back(static_cast<uint16_t>(port.get_int64()));
  }
  return message;
}

json::object ToJson(const EndedMessage& message) {
  json::object object{{"attempt", message.attempt},
                      {"end", job::ToJson(message.end)},
                      {"last_line", message.last_line},
                      {"log_bytes", message.log_bytes}};
  if (message.log_rule >= 0) object["log_rule"] = message.log_rule;
  if (!message.port_conflict.empty()) object["stolen"] = message.port_conflict;
  if (!message.outputs_lost.empty()) object["outputs_lost"] = message.outputs_lost;
  if (!message.interrupted.empty()) object["interrupted"] = message.interrupted;
  return object;
}

Result<EndedMessage> EndedFromJson(const json::object& object) {
  EndedMessage message;
  TRY_ASSIGN(message.attempt, GetSmall(object, "attempt", 0));
  const json::value* end = object.if_contains("end");
  if (end == nullptr || !end->is_object())
    return InvalidArgument("field 'end': expected an object");
  TRY_ASSIGN(message.end, job::TaskEndFromJson(end->get_object()));
  message.last_line = CleanText(GetStringOr(object, "last_line", ""), kLastLineBytes);
  TRY_ASSIGN(message.log_bytes, GetInt(object, "log_bytes"));
  message.port_conflict = CleanText(GetStringOr(object, "stolen", ""), 300);
  message.outputs_lost = CleanText(GetStringOr(object, "outputs_lost", ""), 500);
  message.interrupted = CleanText(GetStringOr(object, "interrupted", ""), 200);
  message.log_rule =
      static_cast<int>(std::clamp<int64_t>(GetIntOr(object, "log_rule", -1), -1, 1000));
  return message;
}

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

json::array ToJson(const Variables& variables) {
  json::array array;
  for (const auto& [name, value] : variables) {
    array.push_back(json::array{json::string(name), json::string(value)});
  }
  return array;
}

Status ReadVariables(const json::value& value, std::string_view field, Variables* out) {
  const Status wrong =
      InvalidArgument("field '" + std::string(field) + "': expected an array of pairs of strings");
  if (!value.is_array()) return wrong;
  for (const json::value& pair : value.get_array()) {
    const bool good = pair.is_array() && pair.get_array().size() == 2 &&
                      pair.get_array()[0].is_string() && pair.get_array()[1].is_string();
    if (!good) return wrong;
    out->emplace_back(pair.get_array()[0].get_string(), pair.get_array()[1].get_string());
  }
  return Status::Ok();
}

json::array ToJson(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& text : texts) array.push_back(json::string(text));
  return array;
}

Status ReadTexts(const json::object& object, std::string_view field,
                 std::vector<std::string>* out) {
  TRY_ASSIGN(const json::array* texts, GetArray(object, field));
  for (const json::value& text : *texts) {
    if (!text.is_string()) {
      return InvalidArgument("field '" + std::string(field) + "': expected strings");
    }
    out->emplace_back(text.get_string());
  }
  return Status::Ok();
}

constexpr std::pair<job::ReadyBy, std::string_view> kReadyBys[] = {
    {job::ReadyBy::kTcp, "tcp"},
    {job::ReadyBy::kHttp, "http"},
    {job::ReadyBy::kCommand, "command"},
    {job::ReadyBy::kLog, "log"},
};

json::object ReadyToJson(const job::Ready& ready, uint16_t port) {
  json::object object{{"port", port},
                      {"path", ready.path},
                      {"command", ToJson(ready.command)},
                      {"line", ready.line},
                      {"every_ms", ready.every.count()},
                      {"timeout_ms", ready.timeout.count()}};
  for (const auto& [by, name] : kReadyBys) {
    if (by == ready.by) object["by"] = name;
  }
  return object;
}

Status ReadReady(const json::value& value, StartMessage* message) {
  if (!value.is_object()) return InvalidArgument("field 'ready': expected an object");
  const json::object& object = value.get_object();
  TRY_ASSIGN(const std::string how, GetString(object, "by"));
  for (const auto& [by, name] : kReadyBys) {
    if (name == how) message->ready.by = by;
  }
  if (message->ready.by == job::ReadyBy::kStart) return InvalidArgument("field 'by' is unknown");
  TRY_ASSIGN(const int port, GetSmall(object, "port", 0));
  if (port > 65535) return InvalidArgument("field 'port' is out of its range");
  message->port = static_cast<uint16_t>(port);
  TRY_ASSIGN(message->ready.path, GetString(object, "path"));
  TRY(ReadTexts(object, "command", &message->ready.command));
  TRY_ASSIGN(message->ready.line, GetString(object, "line"));
  TRY_ASSIGN(const int every, GetSmall(object, "every_ms", 1));
  TRY_ASSIGN(const int64_t timeout, GetInt(object, "timeout_ms"));
  message->ready.every = std::chrono::milliseconds(every);
  message->ready.timeout = std::chrono::milliseconds(timeout);
  return Status::Ok();
}

}  // namespace

void SetOwnProgram(const std::string& program, StartMessage* message) {
  std::ranges::replace(message->argv, kOwnProgram, program);
  std::ranges::replace(message->ready.command, kOwnProgram, program);
  for (auto& [name, value] : message->env) {
    if (value == kOwnProgram) value = program;
  }
}

json::object ToJson(const StartMessage& message) {
  json::object object{{"attempt", message.attempt},  {"argv", ToJson(message.argv)},
                      {"env", ToJson(message.env)},  {"work_dir", message.work_dir},
                      {"cpu", message.cpu},          {"memory_bytes", message.memory_bytes},
                      {"grace_ms", message.grace_ms}};
  if (!message.processes.empty()) {
    json::array processes;
    for (const Variables& one : message.processes) processes.push_back(ToJson(one));
    object["processes"] = std::move(processes);
  }
  if (message.ready.by != job::ReadyBy::kStart) {
    object["ready"] = ReadyToJson(message.ready, message.port);
  }
  if (!message.on_log.empty()) object["on_log"] = ToJson(message.on_log);
  if (message.watch_ms > 0) object["watch_ms"] = message.watch_ms;
  if (!message.log_directory_id.empty()) object["logs_at"] = message.log_directory_id;
  return object;
}

Result<StartMessage> StartFromJson(const json::object& object) {
  StartMessage message;
  TRY_ASSIGN(message.attempt, GetSmall(object, "attempt", 0));
  TRY(ReadTexts(object, "argv", &message.argv));
  if (message.argv.empty()) return InvalidArgument("field 'argv': expected a command");
  TRY_ASSIGN(const json::array* env, GetArray(object, "env"));
  TRY(ReadVariables(*env, "env", &message.env));
  message.work_dir = GetStringOr(object, "work_dir", "");
  message.cpu = GetDoubleOr(object, "cpu", 0);
  message.memory_bytes = GetIntOr(object, "memory_bytes", 0);
  TRY_ASSIGN(message.grace_ms, GetInt(object, "grace_ms"));
  if (object.contains("processes")) {
    TRY_ASSIGN(const json::array* processes, GetArray(object, "processes"));
    for (const json::value& one : *processes) {
      TRY(ReadVariables(one, "processes", &message.processes.emplace_back()));
    }
  }
  if (const json::value* ready = object.if_contains("ready")) TRY(ReadReady(*ready, &message));
  if (object.contains("on_log")) TRY(ReadTexts(object, "on_log", &message.on_log));
  message.watch_ms = GetIntOr(object, "watch_ms", 0);
  message.log_directory_id = GetStringOr(object, "logs_at", "");
  return message;
}

std::string EncodeLogFrame(const LogKey& key, int64_t offset, std::string_view bytes) {
  std::string frame;
  frame.reserve(21 + key.role.size() + bytes.size());
  ByteWriter writer(&frame);
  writer.Put(kLogMagic);
  writer.Put(kLogVersion);
  writer.Put(static_cast<uint8_t>(key.role.size()));
  writer.Put(static_cast<uint32_t>(key.index));
  writer.Put(static_cast<uint32_t>(key.attempt));
  writer.Put(static_cast<uint64_t>(offset));
  writer.PutRaw(key.role.data(), key.role.size());
  writer.PutRaw(bytes.data(), bytes.size());
  return frame;
}

Result<LogFrame> DecodeLogFrame(std::string_view bytes) {
  constexpr uint32_t kMaxInt = std::numeric_limits<int>::max();
  ByteReader reader(bytes);
  uint16_t magic = 0;
  uint8_t version = 0, name_bytes = 0;
  uint32_t index = 0, attempt = 0;
  uint64_t offset = 0;
  TRY(reader.Get(&magic));
  TRY(reader.Get(&version));
  if (magic != kLogMagic || version != kLogVersion) {
    return InvalidArgument("not a log frame of version 1");
  }
  TRY(reader.Get(&name_bytes));
  TRY(reader.Get(&index));
  TRY(reader.Get(&attempt));
  TRY(reader.Get(&offset));
  std::string_view role, data;
  TRY(reader.GetRaw(name_bytes, &role));
  TRY(reader.GetRaw(reader.remaining(), &data));
  if (role.empty() || index > kMaxInt || attempt > kMaxInt || data.size() > kMaxLogData ||
      offset > uint64_t{1} << 60) {
    return InvalidArgument("a field of a log frame is out of its range");
  }
  LogFrame frame;
  frame.key = {std::string(role), static_cast<int>(index), static_cast<int>(attempt)};
  frame.offset = static_cast<int64_t>(offset);
  frame.bytes = data;
  return frame;
}

std::string EncodeJournalFrame(int64_t offset, std::string_view bytes) {
  std::string frame;
  frame.reserve(12 + bytes.size());
  ByteWriter writer(&frame);
  writer.Put(kJournalMagic);
  writer.Put(kJournalVersion);
  writer.Put(static_cast<uint64_t>(offset));
  writer.PutRaw(bytes.data(), bytes.size());
  return frame;
}

bool IsJournalFrame(std::string_view frame) { return frame.starts_with("SJ"); }

Result<JournalFrame> DecodeJournalFrame(std::string_view bytes) {
  ByteReader reader(bytes);
  uint16_t magic = 0, version = 0;
  uint64_t offset = 0;
  TRY(reader.Get(&magic));
  TRY(reader.Get(&version));
  if (magic != kJournalMagic || version != kJournalVersion)
    return InvalidArgument("not a journal frame of version 1");
  TRY(reader.Get(&offset));
  JournalFrame frame;
  TRY(reader.GetRaw(reader.remaining(), &frame.bytes));
  if (frame.bytes.size() > kMaxJournalData || offset > uint64_t{1} << 40)
    return InvalidArgument("a field of a journal frame is out of its range");
  frame.offset = static_cast<int64_t>(offset);
  return frame;
}

std::string CleanText(std::string_view text, size_t limit) {
  std::string clean;
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    const size_t take = std::max<size_t>(length, 1);
    if (clean.size() + take > limit) break;
    const bool control = length == 1 && static_cast<unsigned char>(text[0]) < 0x20;
    if (length == 0) {
      clean += '?';
    } else if (control) {
      clean += ' ';
    } else {
      clean.append(text.substr(0, length));
    }
    text.remove_prefix(take);
  }
  return clean;
}

}  // namespace shoal::rendezvous
