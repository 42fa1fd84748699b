// A session of SQL of one user: a process (`shoal sql-session`) beside the server, which has the
// rights of the team's tasks, and the events that its statements have caused. Events wait in memory
// for readers, each of which has a position of its own; old ones make room for new ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/people/principal.h"
#include "api/sql/sql_events.h"
#include "base/access/directory_owner.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/process/child_process.h"

namespace shoal::api {

struct SqlSessionOptions {
  std::string id;
  std::string team;
  Principal principal;           // who made it
  std::string program;           // absolute path of shoal
  std::vector<std::string> env;  // of the process
  std::optional<UserIds> user;   // as whom it runs; none: as the server
  json::object begin;            // its first line
  const Clock* clock = RealClock::Get();
  // A question of the process, on the session's thread, which may wait. It is answered by Answer.
  std::function<void(const json::object& question)> on_ask;
  // There are new events. On any thread; must not block.
  std::function<void()> on_event;
  // It has ended; the last call, on its thread.
  std::function<void()> on_end;
};

// A statement or a script on its way.
struct SqlStatement {
  std::string text;
  int64_t rows = 0;  // of the result
  int64_t bytes = 0;
};

// What a person sees of it.
struct SqlSessionInfo {
  std::string state;  // "idle", "busy", "ended"
  std::string reason;
  int64_t statements = 0;
  WallTime created{};
};

// Thread-safe.
class SqlSession {
 public:
  // Of a line of the process.
  static constexpr size_t kMaxLine = size_t{64} << 20;

  static Result<std::unique_ptr<SqlSession>> Start(SqlSessionOptions options);
  // Finish.
  ~SqlSession();
  SqlSession(const SqlSession&) = delete;
  SqlSession& operator=(const SqlSession&) = delete;

  const std::string& id() const { return options_.id; }
  const std::string& team() const { return options_.team; }
  const std::string& user() const { return options_.principal.user; }

  // Begins statements with the rights of `principal`; returns their number. FailedPrecondition
  // while others run.
  Result<int64_t> Run(const SqlStatement& statement, const Principal& principal);
  // Asks for names or a description, {"op": "complete", …}. `done` is called once, on the session's
  // thread or, after its end, on this one. FailedPrecondition while statements run.
  Status Ask(json::object question, std::function<void(Result<json::object>)> done);
  // Lets what runs stop.
  void Stop();
  // Ends the session: kills the process and its children. At once, the rest is done on its thread.
  void End(const std::string& reason);
  // Ends it and waits until that is done. Not on its own thread.
  void Finish();

  // A line to the process.
  void Answer(const json::object& answer);
  // Adds an event of the statements that run.
  void Publish(json::object event);

  SqlEvents Read(int64_t after, size_t limit) const;
  SqlSessionInfo info() const;
  // With whose rights statements run.
  Principal principal() const;
  // Since when no statement runs; nothing while one does.
  std::optional<TimePoint> idle_since() const;

 private:
  explicit SqlSession(SqlSessionOptions options) : options_(std::move(options)) {}
  void Send(const json::object& line);
  void Wake() const;
  void Work();
  // Writes what waits, as far as the process takes it.
  void Write();
  // False at the end.
  bool ReadLines(int fd, std::string* buffer, const std::function<void(const std::string&)>& use);
  void OnLine(const std::string& line);
  void FinishAnswer(const json::object& event);
  void Close(int wait_status);

  const SqlSessionOptions options_;
  UniqueFd wake_;  // an eventfd
  engine::Child child_;
  std::string last_error_;  // of the process's standard error; of the thread
  std::atomic<bool> ending_{false};
  mutable Mutex mu_;
  std::string outgoing_ GUARDED_BY(mu_);
  SqlEventLog events_ GUARDED_BY(mu_);
  int64_t statements_ GUARDED_BY(mu_) = 0;
  bool busy_ GUARDED_BY(mu_) = false;
  bool ended_ GUARDED_BY(mu_) = false;
  std::string reason_ GUARDED_BY(mu_);
  TimePoint used_ GUARDED_BY(mu_){};
  WallTime created_{};
  std::optional<Principal> acts_as_ GUARDED_BY(mu_);
  int64_t questions_ GUARDED_BY(mu_) = 0;
  std::map<int64_t, std::function<void(Result<json::object>)>> waiting_ GUARDED_BY(mu_);
  Mutex join_mu_;  // held while the thread is waited for
  std::thread thread_ GUARDED_BY(join_mu_);
};

}  // namespace shoal::api
