// The SQL sessions of a server: their limits, their directories, and what their processes ask of
// it. A `train` of a session is a job of its user like one that was submitted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "api/server/call.h"
#include "api/sql/sql_session.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/supervisor/supervisor.h"

namespace shoal::api {

struct SqlSessionsOptions {
  Backend backend;      // without sessions
  std::string program;  // absolute path of shoal
};

// A session, which its readers keep while they read.
using SqlSessionPtr = std::shared_ptr<SqlSession>;

// Thread-safe.
class SqlSessions {
 public:
  static constexpr size_t kMaxSessions = 32;
  static constexpr size_t kMaxOfUser = 4;
  // Without a statement for so long a session ends.
  static constexpr Duration kIdle = std::chrono::minutes(30);
  // An ended one can be read for so long.
  static constexpr Duration kKept = std::chrono::minutes(5);
  static constexpr Duration kCheck = std::chrono::seconds(5);

  static Result<std::unique_ptr<SqlSessions>> Start(SqlSessionsOptions options);
  // Ends all sessions. Jobs that they have begun go on.
  ~SqlSessions();

  // PermissionDenied if the team's policy lets none of its tasks run on this machine;
  // ResourceExhausted over the limits.
  Result<SqlSessionPtr> Create(const std::string& team, const Principal& principal);
  // The session, for the user who made it and for administrators. NotFound.
  Result<SqlSessionPtr> Find(const std::string& team, const std::string& id,
                             const Principal& principal);
  std::vector<SqlSessionPtr> List(const std::string& team, const Principal& principal);
  // Stops the statements and the job that they wait for; a second time the job is killed.
  void Cancel(const SqlSessionPtr& session);
  // Ends the session and stops the job that it waits for.
  void End(const SqlSessionPtr& session, const std::string& reason);

  // A stream is to be woken by the session's events.
  void AddStream(const std::string& session, uint64_t follower);
  void RemoveStream(const std::string& session, uint64_t follower);

 private:
  // A job that a session waits for.
  struct AwaitedJob {
    std::string session;
    int64_t question = 0;
    int stops = 0;
  };

  explicit SqlSessions(SqlSessionsOptions options) : options_(std::move(options)) {}
  controller::JobsObserver MakeObserver();
  Result<SqlSessionOptions> OptionsOf(const std::string& id, const std::string& team,
                                      const Principal& principal);
  SqlSessionPtr Get(const std::string& id);
  // The session that waits for the job; null: none.
  SqlSessionPtr WaiterOf(const std::string& job);
  void OnEvent(const std::string& id);
  void OnEnd(const std::string& id);
  void OnAsk(const std::string& id, const json::object& question);
  void BeginJob(const SqlSessionPtr& session, int64_t number, const json::object& question);
  void OnJobEnd(const std::string& job, const controller::JobRecord& record);
  void StopJobs(const std::string& session, const std::string& by);
  void Watch();
  void Check();

  const SqlSessionsOptions options_;
  Mutex mu_;
  CondVar wake_;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::map<std::string, SqlSessionPtr> sessions_ GUARDED_BY(mu_);
  std::map<std::string, TimePoint> ended_ GUARDED_BY(mu_);  // by session
  std::map<std::string, AwaitedJob> jobs_ GUARDED_BY(mu_);  // by job
  std::map<std::string, std::set<uint64_t>> streams_ GUARDED_BY(mu_);
  std::unique_ptr<controller::Supervisor::Observation> observation_;
  std::thread thread_;
};

}  // namespace shoal::api
