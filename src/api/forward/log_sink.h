// Where lines of logs are forwarded to: OpenSearch (and Elasticsearch) by its bulk API, Loki by its
// push API, syslog by RFC 5424. One call sends one batch and says what became of each line;
// log_forwarder.h repeats.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace shoal::api {

// A line with what it is of. Plain value.
struct ForwardLine {
  std::string job;  // its id
  std::string name;
  std::string team;
  std::string user;
  std::string engine;
  std::string role;
  int index = 0;
  int attempt = 0;     // from 0
  int64_t offset = 0;  // in the attempt's log
  WallTime time{};
  int64_t nanoseconds = 0;  // added to it where lines of the same time must keep their order
  std::string text;         // valid UTF-8, without its line feed
};

// Settings of one forwarder. Plain value.
struct ForwarderConfig {
  enum class Kind : uint8_t { kOpenSearch, kLoki, kSyslog };
  std::string name;
  Kind kind = Kind::kOpenSearch;
  std::string url;                   // http(s)://…, or tcp://, tls://, udp://HOST:PORT of syslog
  std::string index = "shoal-logs";  // OpenSearch: of documents
  std::string tenant;                // Loki: X-Scope-OrgID
  std::map<std::string, std::string> labels;  // Loki: further ones of each stream
  std::string username;                       // HTTP: basic authentication
  std::string password_file;
  std::string token_file;          // HTTP: "Authorization: Bearer"
  std::string authorities_file;    // PEM
  std::vector<std::string> teams;  // empty: all
};

struct SendOutcome {
  // Lines of the batch to be sent again; the others have arrived or were rejected.
  std::vector<size_t> again;
  uint64_t rejected = 0;   // lines that the receiver does not take
  std::string error;       // of what failed or was rejected; empty: nothing
  Duration retry_after{};  // that the receiver asked for; 0: nothing
};

// Used by one thread.
class LogSink {
 public:
  virtual ~LogSink() = default;
  // Blocks, with deadlines.
  virtual SendOutcome Send(const std::vector<const ForwardLine*>& lines) = 0;
};

// Reads the files that the settings name. InvalidArgument for settings that do not fit together.
Result<std::unique_ptr<LogSink>> MakeLogSink(const ForwarderConfig& config);
Result<std::unique_ptr<LogSink>> MakeHttpSink(const ForwarderConfig& config);
Result<std::unique_ptr<LogSink>> MakeSyslogSink(const ForwarderConfig& config);

// The bodies, for tests.
std::string RenderBulk(const std::string& index, const std::vector<const ForwardLine*>& lines);
std::string RenderPush(const std::map<std::string, std::string>& labels,
                       const std::vector<const ForwardLine*>& lines);
// `host`: of this machine.
std::string RenderSyslog(const ForwardLine& line, const std::string& host);

}  // namespace shoal::api
