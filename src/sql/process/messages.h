// The lines between a session's process (`shoal sql-session`) and the program that started it: a
// server, the Python client or the notebook's kernel. One JSON object a line in both directions
// (docs/formats/sql-session.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "sql/session/grid.h"
#include "sql/session/host.h"
#include "sql/session/path_rules.h"

namespace shoal::sql {

// Of a line to the process: a script of 16 MiB whose bytes are all escaped.
inline constexpr size_t kMaxRequestLine = size_t{112} << 20;
inline constexpr size_t kMaxShownRows = 1'000'000;

struct SessionRequest {
  enum class Kind : uint8_t {
    kBegin,     // of a server: the first line
    kRun,       // statements
    kStop,      // what runs
    kComplete,  // names that may stand at a place
    kInspect,   // about the name at a place
    kAnswer,    // to a question of the process
  };
  Kind kind = Kind::kRun;
  int64_t id = 0;     // repeated in the events that follow from it
  std::string text;   // statements
  std::string name;   // of the script, in messages
  size_t cursor = 0;  // a byte of the text
  size_t rows = 20;   // of a result; 0: all
  size_t bytes = 0;   // of a result's cells, about; 0: any
  json::object body;  // the whole object
};

// InvalidArgument says what is wrong with the line. Never fails otherwise.
Result<SessionRequest> ParseSessionRequest(std::string_view line);

// What a session may do, of a kBegin.
struct SessionBegin {
  std::string directory;  // the working directory
  PathRules paths;
  QueryCaps caps;
};
Result<SessionBegin> ParseSessionBegin(const json::object& body);

// {"event":"rows","id":1,"columns":[…],"types":[…],"rows":[[…]],"more":false}
json::object RowsEvent(int64_t id, const Grid& grid);
// {"event":"finished","id":1,"ok":true}, or with "code" and "error".
json::object FinishedEvent(int64_t id, const Status& status);

// Answers of the server.
Result<FinishedJob> ParseFinishedJob(const json::object& body);
std::vector<ListedJob> ParseListedJobs(const json::object& body);
// The error of an answer; OK without one.
Status ErrorOf(const json::object& body);

}  // namespace shoal::sql
