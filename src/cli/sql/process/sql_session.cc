// `shoal sql-session`: a session of SQL whose statements come as lines on standard input and whose
// results are lines on standard output (docs/formats/sql-session.md). A server starts one for each
// session of its users, the Python client and the notebook's kernel start one without a server.

#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/utf8.h"
#include "cli/sql/process/pipe_host.h"
#include "cli/sql/process/request_lines.h"
#include "cli/sql/sql_commands.h"
#include "cli/sql/sql_host.h"
#include "cli/terminal/report.h"
#include "sql/complete/complete.h"
#include "sql/complete/inspect.h"
#include "sql/query/query_process.h"
#include "sql/session/session.h"

namespace shoal::cli {
namespace {

using Kind = sql::SessionRequest::Kind;

// Beside that of a query: the limit of a query's process, which is a child, must fit in as well.
constexpr uint64_t kOwnMemory = uint64_t{4} << 30;

// A host without a server: jobs are those of the command, and their events are lines beside the
// others.
class LocalHost final : public sql::Host {
 public:
  LocalHost(const Context& context, const std::string& engine) : host_(context, {engine, false}) {}

  Result<sql::FinishedJob> RunJob(const job::Job& job, const std::string& engine) override {
    return host_.RunJob(job, engine);
  }
  Result<std::vector<sql::ListedJob>> ListJobs() override { return host_.ListJobs(); }
  Result<std::string> StopJob(const std::string& prefix) override { return host_.StopJob(prefix); }
  std::string Program() override { return host_.Program(); }
  Status Show(const sql::Grid& grid) override {
    return PrintOut(JsonLine(sql::RowsEvent(request_, grid)));
  }
  void Note(const std::string& sentence) override {
    const Status printed =
        PrintOut(JsonLine({{"event", "note"}, {"id", request_}, {"text", EscapedUtf8(sentence)}}));
    static_cast<void>(printed);  // the end of the reader ends the session by its input
  }
  bool Stopped() override { return host_.Stopped(); }

  void Stop() { host_.Interrupt(); }
  void BeginRequest(int64_t id) {
    host_.ForgetStop();
    request_ = id;
  }

 private:
  SqlHost host_;
  int64_t request_ = 0;
};

Status AnswerComplete(const sql::SessionRequest& request, const sql::SessionState& state) {
  const sql::Completion completion = sql::Complete(request.text, request.cursor, state);
  json::array candidates;
  for (const std::string& one : completion.candidates) candidates.emplace_back(EscapedUtf8(one));
  return PrintOut(JsonLine({{"event", "completion"},
                            {"id", request.id},
                            {"begin", completion.begin},
                            {"candidates", std::move(candidates)}}));
}

Status AnswerInspect(const sql::SessionRequest& request, const sql::SessionState& state) {
  return PrintOut(
      JsonLine({{"event", "inspection"},
                {"id", request.id},
                {"text", EscapedUtf8(sql::Inspect(request.text, request.cursor, state))}}));
}

template <typename SomeHost>
Status AnswerRequest(const sql::SessionRequest& request, SomeHost* host, sql::Session* session) {
  if (request.kind == Kind::kComplete) return AnswerComplete(request, session->state());
  if (request.kind == Kind::kInspect) return AnswerInspect(request, session->state());
  host->BeginRequest(request.id);
  session->SetShown({request.rows, request.bytes});
  const Status ended =
      session->Run(std::make_shared<const sql::ScriptText>(request.name, request.text));
  return PrintOut(JsonLine(sql::FinishedEvent(request.id, ended)));
}

template <typename SomeHost>
void Serve(RequestLines* lines, SomeHost* host, sql::Session* session) {
  while (const auto request = lines->Next()) {
    if (request->kind == Kind::kBegin) continue;
    if (!AnswerRequest(*request, host, session).ok()) return;  // the reader has gone
  }
}

int ServeHere(const Context& context, const std::string& engine) {
  Context as_json = context;
  as_json.json = true;
  LocalHost host(as_json, engine);
  // Without its starter a session ends like one whose user pressed Ctrl-C.
  RequestLines lines([&host] { host.Stop(); }, [&host] { host.Stop(); });
  lines.Start();
  {
    sql::Session session(&host);
    Serve(&lines, &host, &session);
  }
  ::_exit(0);  // the thread that reads cannot be ended, and uses the objects above
}

int ServeServer(const Context& context) {
  // Others of the same user read nothing of this process.
  ::prctl(PR_SET_DUMPABLE, 0);
  sql::LeaveNetwork();
  std::atomic<PipeHost*> host{nullptr};
  RequestLines lines(
      [&host] {
        if (PipeHost* const known = host.load()) known->Stop();
      },
      [] { ::_exit(0); });  // the query's process ends with this one
  lines.Start();
  const auto first = lines.Next();
  if (!first || first->kind != Kind::kBegin)
    return PrintError(InvalidArgument("expected the line that begins a session"));
  Result<sql::SessionBegin> begin = sql::ParseSessionBegin(first->body);
  if (!begin.ok()) return PrintError(begin.status());
  if (begin->caps.memory_bytes > 0) sql::LimitMemory(3 * begin->caps.memory_bytes + kOwnMemory);
  std::error_code error;
  std::filesystem::current_path(begin->directory, error);
  if (error)
    return PrintError(FailedPrecondition("the session's directory " + begin->directory +
                                         " cannot be entered: " + error.message()));
  PipeHost pipe(context.program, &lines, std::move(*begin));
  host = &pipe;
  {
    sql::Session session(&pipe);
    Serve(&lines, &pipe, &session);
  }
  ::_exit(0);  // the thread that reads cannot be ended, and uses the objects above
}

struct SessionArguments {
  bool server = false;
  std::string engine;
};

}  // namespace

void AddSqlSession(CLI::App& app, Run* chosen) {
  auto arguments = std::make_shared<SessionArguments>();
  CLI::App* sub = app.add_subcommand("sql-session", "Run a session of SQL by lines of JSON");
  sub->add_flag("--server", arguments->server, "Ask the server that started it for jobs");
  sub->add_option("--engine", arguments->engine, "Engine of the jobs")->type_name("NAME");
  sub->callback([arguments, chosen] {
    *chosen = [arguments](const Context& context) {
      return arguments->server ? ServeServer(context) : ServeHere(context, arguments->engine);
    };
  });
}

}  // namespace shoal::cli
