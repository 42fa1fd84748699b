#include "api/sql/sql_sessions.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "api/server/followers.h"
#include "api/server/prepare_job.h"
#include "api/sql/sql_jobs.h"
#include "base/access/directory_owner.h"
#include "base/id.h"
#include "base/log.h"
#include "base/private_files.h"
#include "controller/files/job_user.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;

constexpr size_t kIdBytes = 8;
constexpr int64_t kQueryMemory = int64_t{4} << 30;
constexpr int64_t kLeastMemory = int64_t{256} << 20;
constexpr int64_t kQuerySpill = int64_t{16} << 30;
constexpr int64_t kQuerySeconds = 3600;
constexpr const char* kFolder = "sql";  // of the state, with a directory for each session
constexpr const char* kLocal = "local";

// At most a quarter of the machine's memory.
int64_t QueryMemory() {
  const int64_t bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGE_SIZE) / 4;
  return std::clamp(bytes, kLeastMemory, kQueryMemory);
}

// Half of the processors.
int64_t QueryThreads() { return std::max<int64_t>(1, std::thread::hardware_concurrency() / 2); }

// The statements' process reads and writes files of this machine as the tasks of the engine local
// do, so it is for teams whose jobs may run there.
Status CheckLocal(const Backend& backend, const Policy& policy) {
  const job::Job job;
  const job::FieldLocations locations;
  for (const std::string& name : backend.engines->names()) {
    if (backend.engines->KindOf(name) != kLocal) continue;
    if (CheckPolicy(policy, {job, locations, name, ""}).ok()) return Status::Ok();
  }
  return PermissionDenied(
      "the team's policy allows no engine of the kind local, and SQL runs on the server's machine");
}

// What DuckDB's library and the programs of statements need, and no credentials.
std::vector<std::string> EnvironmentFor(const fs::path& directory) {
  std::vector<std::string> env = {"TMPDIR=" + directory.string()};
  for (const char* const name :
       {"PATH", "HOME", "XDG_CACHE_HOME", "SHOAL_DUCKDB", "LD_LIBRARY_PATH", "TZ", "LANG"}) {
    if (const char* const value = std::getenv(name)) env.push_back(std::string(name) + "=" + value);
  }
  return env;
}

json::array TextList(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

bool Sees(const Principal& principal, const SqlSession& session) {
  return principal.administrator || principal.user == session.user();
}

}  // namespace

Result<std::unique_ptr<SqlSessions>> SqlSessions::Start(SqlSessionsOptions options) {
  std::unique_ptr<SqlSessions> sessions(new SqlSessions(std::move(options)));
  // Of a server that was killed.
  std::error_code ignored;  // a directory that is not there has none
  const fs::path folder = sessions->options_.backend.home.root() / kFolder;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const Status removed = RemoveOwnedDirectory(entry.path());
    if (!removed.ok()) LogWarning("{} stays: {}", entry.path().string(), removed.message());
  }
  sessions->observation_ = sessions->options_.backend.supervisor->Observe(sessions->MakeObserver());
  sessions->thread_ = std::thread([self = sessions.get()] { self->Watch(); });
  return sessions;
}

SqlSessions::~SqlSessions() {
  observation_.reset();
  std::map<std::string, SqlSessionPtr> sessions;
  {
    const MutexLock lock(mu_);
    stopping_ = true;
    jobs_.clear();
    sessions.swap(sessions_);
  }
  wake_.notify_all();
  thread_.join();
  for (const auto& [id, session] : sessions) session->End("the server ends");
  for (const auto& [id, session] : sessions) session->Finish();  // readers may keep it for longer
}

// ---- Sessions
// -------------------------------------------------------------------------------------

Result<SqlSessionOptions> SqlSessions::OptionsOf(const std::string& id, const std::string& team,
                                                 const Principal& principal) {
  const Backend& backend = options_.backend;
  TRY_ASSIGN(const Policy policy, backend.policies->Of(team));
  TRY(CheckLocal(backend, policy));
  SqlSessionOptions made;
  TRY_ASSIGN(made.user, TaskUserOf(policy, kLocal));
  TRY_ASSIGN(const std::string folder, TeamFolder(backend, team, made.user));
  const fs::path directory = backend.home.root() / kFolder / id;
  TRY(MakeDirectories(directory, 0700));
  if (made.user) TRY(controller::GiveDirectory(backend.home, directory, *made.user));
  made.id = id;
  made.team = team;
  made.principal = principal;
  made.program = options_.program;
  made.env = EnvironmentFor(directory);
  made.clock = backend.clock;
  made.begin = {{"op", "begin"},
                {"directory", folder},
                {"own", TextList({folder, directory.string()})},
                {"allowed", TextList(policy.paths.value_or(std::vector<std::string>()))},
                {"denied", TextList({backend.home.root().string()})},
                {"memory", QueryMemory()},
                {"spill", kQuerySpill},
                {"threads", QueryThreads()},
                {"seconds", kQuerySeconds}};
  made.on_ask = [this, id](const json::object& question) { OnAsk(id, question); };
  made.on_event = [this, id] { OnEvent(id); };
  made.on_end = [this, id] { OnEnd(id); };
  return made;
}

Result<SqlSessionPtr> SqlSessions::Create(const std::string& team, const Principal& principal) {
  const std::string id = RandomHex(kIdBytes);
  TRY_ASSIGN(SqlSessionOptions options, OptionsOf(id, team, principal));
  const MutexLock lock(mu_);
  size_t all = 0, own = 0;
  for (const auto& [other, session] : sessions_) {
    if (ended_.contains(other)) continue;
    ++all;
    own += session->user() == principal.user ? 1 : 0;
  }
  std::string full;
  if (own >= kMaxOfUser)
    full = principal.user + " has " + std::to_string(kMaxOfUser) + " sessions already; end one";
  if (all >= kMaxSessions)
    full = "the server has " + std::to_string(kMaxSessions) + " sessions already; try again later";
  Result<std::unique_ptr<SqlSession>> session = stopping_ ? Unavailable("the server ends")
                                                : !full.empty()
                                                    ? ResourceExhausted(full)
                                                    : SqlSession::Start(std::move(options));
  if (!session.ok()) {
    (void)RemoveOwnedDirectory(options_.backend.home.root() / kFolder / id);
    return session.status();
  }
  SqlSessionPtr shared(std::move(*session));
  sessions_[id] = shared;
  return shared;
}

SqlSessionPtr SqlSessions::Get(const std::string& id) {
  const MutexLock lock(mu_);
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second;
}

Result<SqlSessionPtr> SqlSessions::Find(const std::string& team, const std::string& id,
                                        const Principal& principal) {
  SqlSessionPtr session = Get(id);
  if (session == nullptr || session->team() != team || !Sees(principal, *session))
    return NotFound("there is no SQL session " + id + " of yours; it may have ended");
  return session;
}

std::vector<SqlSessionPtr> SqlSessions::List(const std::string& team, const Principal& principal) {
  std::vector<SqlSessionPtr> listed;
  const MutexLock lock(mu_);
  for (const auto& [id, session] : sessions_) {
    if (session->team() == team && Sees(principal, *session)) listed.push_back(session);
  }
  return listed;
}

void SqlSessions::StopJobs(const std::string& session, const std::string& by) {
  std::vector<std::pair<std::string, int>> stopped;
  {
    const MutexLock lock(mu_);
    for (auto& [job, awaited] : jobs_) {
      if (awaited.session == session) stopped.emplace_back(job, awaited.stops++);
    }
  }
  const auto ignore = [](const Status&) {};  // a job that has ended needs no stop
  for (const auto& [job, stops] : stopped) {
    if (stops == 0) {
      options_.backend.supervisor->Drain(job, by, ignore);
    } else {
      options_.backend.supervisor->Kill(job, by, ignore);
    }
  }
}

void SqlSessions::Cancel(const SqlSessionPtr& session) {
  session->Stop();
  StopJobs(session->id(), "stopped by " + session->principal().user);
}

void SqlSessions::End(const SqlSessionPtr& session, const std::string& reason) {
  StopJobs(session->id(), reason);
  session->End(reason);
}

void SqlSessions::AddStream(const std::string& session, uint64_t follower) {
  {
    const MutexLock lock(mu_);
    streams_[session].insert(follower);
  }
  options_.backend.followers->Wake(follower);
}

void SqlSessions::RemoveStream(const std::string& session, uint64_t follower) {
  const MutexLock lock(mu_);
  const auto found = streams_.find(session);
  if (found == streams_.end()) return;
  found->second.erase(follower);
  if (found->second.empty()) streams_.erase(found);
}

void SqlSessions::OnEvent(const std::string& id) {
  const MutexLock lock(mu_);
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  for (const uint64_t follower : found->second) options_.backend.followers->Wake(follower);
}

void SqlSessions::OnEnd(const std::string& id) {
  const Status removed = RemoveOwnedDirectory(options_.backend.home.root() / kFolder / id);
  if (!removed.ok())
    LogWarning("the directory of the SQL session {} stays: {}", id, removed.message());
  StopJobs(id, "its SQL session has ended");
  const MutexLock lock(mu_);
  ended_[id] = options_.backend.clock->Now();
  std::erase_if(jobs_, [&](const auto& job) { return job.second.session == id; });
}

// ---- Time
// -----------------------------------------------------------------------------------------

void SqlSessions::Watch() {
  MutexLock lock(mu_);
  while (!stopping_) {
    wake_.wait_for(lock, kCheck);
    if (stopping_) return;
    lock.unlock();
    Check();
    lock.lock();
  }
}

void SqlSessions::Check() {
  const TimePoint now = options_.backend.clock->Now();
  std::vector<SqlSessionPtr> sessions;
  std::vector<SqlSessionPtr> forgotten;  // destroyed without the lock
  {
    const MutexLock lock(mu_);
    for (auto at = sessions_.begin(); at != sessions_.end();) {
      const auto ended = ended_.find(at->first);
      if (ended != ended_.end() && now - ended->second > kKept) {
        forgotten.push_back(std::move(at->second));
        ended_.erase(ended);
        at = sessions_.erase(at);
        continue;
      }
      if (ended == ended_.end()) sessions.push_back(at->second);
      ++at;
    }
  }
  for (const SqlSessionPtr& session : sessions) {
    const auto idle = session->idle_since();
    if (idle && now - *idle > kIdle) {
      session->End("nothing was asked of it for 30 minutes");
    } else if (!options_.backend.people->IsValid(session->principal())) {
      End(session, "the token of its statements is no longer valid");
    }
  }
}

// ---- Jobs
// -----------------------------------------------------------------------------------------

controller::JobsObserver SqlSessions::MakeObserver() {
  controller::JobsObserver observer;
  observer.on_state = [this](const std::string& id, job::JobState state, const std::string& why) {
    if (const SqlSessionPtr session = WaiterOf(id))
      session->Publish(
          {{"event", "state"}, {"job", id}, {"state", job::NameOf(state)}, {"reason", why}});
  };
  observer.on_event = [this](const std::string& id, const rendezvous::JobEvent& event) {
    const SqlSessionPtr session = WaiterOf(id);
    if (session == nullptr) return;
    json::object told = rendezvous::EventToJson(event);
    told["job"] = id;
    session->Publish(std::move(told));
  };
  observer.on_note = [this](const std::string& id, const std::string& text) {
    if (const SqlSessionPtr session = WaiterOf(id))
      session->Publish({{"event", "note"}, {"job", id}, {"text", text}});
  };
  observer.on_end = [this](const std::string& id, const controller::JobRecord& record) {
    OnJobEnd(id, record);
  };
  return observer;
}

SqlSessionPtr SqlSessions::WaiterOf(const std::string& job) {
  const MutexLock lock(mu_);
  const auto awaited = jobs_.find(job);
  if (awaited == jobs_.end()) return nullptr;
  const auto session = sessions_.find(awaited->second.session);
  return session == sessions_.end() ? nullptr : session->second;
}

void SqlSessions::OnJobEnd(const std::string& job, const controller::JobRecord& record) {
  const SqlSessionPtr session = WaiterOf(job);
  if (session == nullptr) return;
  int64_t question = 0;
  {
    const MutexLock lock(mu_);
    const auto awaited = jobs_.find(job);
    if (awaited == jobs_.end()) return;
    question = awaited->second.question;
    jobs_.erase(awaited);
  }
  session->Publish({{"event", "state"},
                    {"job", job},
                    {"state", job::NameOf(record.state)},
                    {"reason", record.reason}});
  session->Answer(SqlJobAnswer(question, record));
}

void SqlSessions::BeginJob(const SqlSessionPtr& session, int64_t number,
                           const json::object& question) {
  const std::string id = NewJobId("sql");
  {
    const MutexLock lock(mu_);
    jobs_[id] = {session->id(), number, 0};  // before its first event
  }
  const SqlAsker asker{session->id(), session->team(), session->principal()};
  const Status submitted = SubmitSqlJob(options_.backend, asker, question, id);
  if (submitted.ok()) return session->Publish({{"event", "submitted"}, {"job", id}});
  {
    const MutexLock lock(mu_);
    jobs_.erase(id);
  }
  session->Answer(SqlAnswer(number, submitted));
}

void SqlSessions::OnAsk(const std::string& id, const json::object& question) {
  const SqlSessionPtr session = Get(id);
  if (session == nullptr) return;
  const int64_t number = GetIntOr(question, "ask", 0);
  const std::string what = GetStringOr(question, "what", "");
  const SqlAsker asker{id, session->team(), session->principal()};
  if (what == "job") return BeginJob(session, number, question);
  if (what == "jobs") {
    Result<json::object> jobs = ListSqlJobs(options_.backend, asker);
    json::object answer = SqlAnswer(number, jobs.status());
    if (jobs.ok()) answer.insert(jobs->begin(), jobs->end());
    return session->Answer(answer);
  }
  if (what != "stop")
    return session->Answer(SqlAnswer(number, InvalidArgument("what: expected job, jobs or stop")));
  const Result<std::string> job =
      FindSqlJob(options_.backend, asker, GetStringOr(question, "job", ""));
  if (!job.ok()) return session->Answer(SqlAnswer(number, job.status()));
  options_.backend.supervisor->Drain(
      *job, "stopped by !kill of " + asker.principal.user,
      [waiter = std::weak_ptr(session), number, job = *job](const Status& accepted) {
        const SqlSessionPtr asked = waiter.lock();
        if (asked == nullptr) return;
        json::object answer = SqlAnswer(number, accepted);
        answer["job"] = job;
        asked->Answer(answer);
      });
}

}  // namespace shoal::api
