#include "api/catalog/gates.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <optional>
#include <set>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "base/private_files.h"
#include "base/seal.h"
#include "data/gate/gate_objects.h"
#include "engine/process/child_process.h"
#include "engine/process/task_process.h"
#include "job/spec/cluster_reference.h"
#include "job/spec/json.h"
#include "net/address.h"

namespace shoal::api {
namespace {

using controller::kGateSecret;

constexpr const char* kKind = "gate";
constexpr const char* kHashKeySecret = "shoal-mask";
constexpr const char* kNoTeam = "";  // no team of the server has this name
constexpr size_t kIdBytes = 8;
constexpr size_t kTokenBytes = 32;
constexpr size_t kMaxLine = size_t{64} << 20;
constexpr std::chrono::milliseconds kFirstPause{200};
constexpr std::chrono::milliseconds kLongestPause{5000};
constexpr std::chrono::milliseconds kEndGrace{2000};

// The gate of the job; empty: none.
std::string GateOf(const job::Job& job) {
  const auto found = job.env.find(data::kGateVariable);
  if (found == job.env.end()) return "";
  const auto secret = job::WholeSecret(found->second);
  if (!secret || !secret->text.starts_with(kGateSecret)) return "";
  return secret->text.substr(kGateSecret.size());
}

std::string SecretOf(const std::string& id) { return std::string(kGateSecret) + id; }

// A port that is free now. The gate's later starts need the same one.
Result<uint16_t> FreePort(const std::string& address) {
  sockaddr_storage place{};
  socklen_t size = sizeof(sockaddr_in);
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&place);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&place);
  if (::inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    size = sizeof(sockaddr_in6);
  } else {
    return InvalidArgument("gate-address: got " + address + ", expected a numeric address");
  }
  const UniqueFd fd(::socket(place.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0 || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&place), size) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&place), &size) != 0)
    return ErrnoStatus(errno, "gate-address " + address);
  return ntohs(place.ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
}

// Lines "NAME=VALUE" of a secret, or a JSON object; only variables of stores are taken.
Result<std::map<std::string, std::string>> EnvironmentIn(const std::string& secret,
                                                         const std::string& name) {
  std::map<std::string, std::string> environment;
  const auto take = [&](const std::string& variable, const std::string& value) -> Status {
    if (std::ranges::find(engine::StoreVariables(), variable) == engine::StoreVariables().end())
      return InvalidArgument("secret " + name +
                             ": expected variables of stores, such as "
                             "AWS_ACCESS_KEY_ID (docs/data.md), got another one");
    // Files of the server's machine are none of the credentials of a table.
    if (variable.find("FILE") != std::string::npos || variable == "AWS_CA_BUNDLE" ||
        variable == "AWS_PROFILE")
      return InvalidArgument("secret " + name + ": got " + variable +
                             ", expected credentials and no names of files");
    environment[variable] = value;
    return Status::Ok();
  };
  if (const auto object = ParseJsonObject(secret); object.ok()) {
    for (const auto& [variable, value] : *object)
      TRY(take(std::string(variable), value.is_string() ? std::string(value.get_string()) : ""));
    return environment;
  }
  for (size_t at = 0; at < secret.size();) {
    const size_t end = std::min(secret.find('\n', at), secret.size());
    const std::string line = secret.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find('=');
    if (equals == std::string::npos)
      return InvalidArgument("secret " + name + ": expected lines NAME=VALUE");
    TRY(take(line.substr(0, equals), line.substr(equals + 1)));
  }
  return environment;
}

data::GateTable GateTableOf(const ResolvedTable& resolved) {
  data::GateTable table;
  table.data = resolved.data;
  table.table = resolved.table.full_name();
  table.sources = resolved.table.sources;
  table.locations = resolved.database.locations;
  table.format = resolved.table.format;
  table.filtered = resolved.access.restricted;
  table.columns = resolved.table.columns;
  table.given = resolved.access.columns;
  table.masks = resolved.access.masks;
  table.rows = resolved.access.rows;
  return table;
}

}  // namespace

// One gate, from its start to its end; its thread starts the process as often as it dies.
struct Gates::Process {
  std::string id;
  std::string job;
  UniqueFd wake;  // an eventfd: stop or ask again
  std::atomic<bool> stopping{false};
  std::atomic<bool> again{false};  // the plan has changed
  std::set<std::string> tables;    // that it gives; guarded by Gates::mu_
  std::thread thread;

  void Wake() const {
    const uint64_t one = 1;
    (void)!::write(wake.get(), &one, sizeof one);
  }
};

Gates::Gates(GatesOptions options) : options_(std::move(options)) {}

Result<std::unique_ptr<Gates>> Gates::Start(GatesOptions options) {
  TRY(MakeDirectories(options.scratch, 0700));
  std::unique_ptr<Gates> gates(new Gates(std::move(options)));
  gates->thread_ = std::thread([self = gates.get()] { self->Work(); });
  return gates;
}

Gates::~Gates() {
  std::map<std::string, std::unique_ptr<Process>> processes;
  {
    const MutexLock lock(mu_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  {
    const MutexLock lock(mu_);
    processes.swap(processes_);
  }
  for (const auto& [id, process] : processes) {
    process->stopping = true;
    process->Wake();
  }
  for (const auto& [id, process] : processes) process->thread.join();
}

// ---- The gate of a job
// ---------------------------------------------------------------------------

Status Gates::CheckReserved(const job::Job& job) {
  for (const auto& [name, path] : job::SecretsOf(job)) {
    if (name.starts_with(kGateSecret) || name == kHashKeySecret)
      return InvalidArgument(path + ": got the secret " + name +
                             ", expected another name: those that begin with shoal- are the "
                             "server's own");
  }
  bool set = job.env.contains(data::kGateVariable);
  for (const job::Role& role : job.roles) set = set || role.env.contains(data::kGateVariable);
  if (!set) return Status::Ok();
  return InvalidArgument(std::string("env.") + data::kGateVariable +
                         ": expected another name: Shoal sets this variable");
}

void Gates::AddVariable(const std::vector<ResolvedTable>& tables, job::Job* job) {
  if (std::ranges::none_of(tables, &ResolvedTable::gated)) return;
  job->env[data::kGateVariable] = job::SecretReference(SecretOf(RandomHex(kIdBytes)), false);
}

Status Gates::Keep(const job::Job& job, const std::string& team, const std::string& user) {
  const std::string id = GateOf(job);
  if (id.empty()) return Status::Ok();
  json::array tables;
  for (const job::DataSource& source : job.data) {
    if (source.table.empty()) continue;
    tables.push_back(
        json::object{{"data", source.name},
                     {"table", source.table},
                     {"columns", json::array(source.columns.begin(), source.columns.end())}});
  }
  const json::object gate{{"team", team},
                          {"user", user},
                          {"shoal", job.framework == job::Framework::kShoal},
                          {"tables", std::move(tables)}};
  TRY(options_.vault->Set(kNoTeam, SecretOf(id), RandomHex(kTokenBytes), user));
  return options_.records->Put(kKind, id, gate, controller::kAbsent, options_.clock->Wall())
      .status();
}

void Gates::Forget(const job::Job& job) {
  const std::string id = GateOf(job);
  if (!id.empty()) Remove(id);
}

void Gates::Remove(const std::string& id) {
  (void)options_.records->Delete(kKind, id, controller::kAnyVersion, options_.clock->Wall());
  (void)options_.vault->Remove(kNoTeam, SecretOf(id));
}

Result<std::string> Gates::Read(const std::string& team, const std::string& name) {
  if (!name.starts_with(kGateSecret)) return options_.vault->Read(team, name);
  const std::string id = name.substr(kGateSecret.size());
  for (;;) {
    auto record = options_.records->Get(kKind, id);
    if (record.status().code() == Code::kNotFound)
      return NotFound("the gate of this job is no longer known; submit the job again");
    TRY(record.status());
    if (GetStringOr(record->body, "team", "") != team)
      return PermissionDenied("the gate is one of another team's job");
    int64_t port = GetIntOr(record->body, "port", 0);
    if (port == 0) {
      TRY_ASSIGN(port, FreePort(options_.address));
      record->body["port"] = port;
      const Status written =
          options_.records->Put(kKind, id, record->body, record->version, options_.clock->Wall())
              .status();
      if (written.code() == Code::kAborted) continue;
      TRY(written);
    }
    TRY_ASSIGN(std::string token, options_.vault->Read(kNoTeam, name));
    const std::string host = options_.address.find(':') == std::string::npos
                                 ? options_.address
                                 : "[" + options_.address + "]";
    std::string value = host + ":" + std::to_string(port) + " " + token;
    EraseSecret(&token);
    return value;
  }
}

// ---- Following the jobs
// --------------------------------------------------------------------------

void Gates::OnState(const std::string& job, bool runs, bool ended) {
  {
    const MutexLock lock(mu_);
    changes_.push_back({job, runs, ended});
  }
  wake_.notify_all();
}

void Gates::OnJobFound(const std::string& job) {
  const auto record = options_.store->GetJob(job);
  if (!record.ok()) return;
  const bool started = record->state == job::JobState::kStarting ||
                       record->state == job::JobState::kRunning ||
                       record->state == job::JobState::kFinishing;
  if (started) OnState(job, true, false);
}

void Gates::OnTableChange(const std::string& table) {
  const MutexLock lock(mu_);
  for (const auto& [id, process] : processes_) {
    // A change of a database is one of all its tables.
    const bool gives = std::ranges::any_of(process->tables, [&](const std::string& one) {
      return one == table || one.starts_with(table + ".");
    });
    if (!gives) continue;
    process->again = true;
    process->Wake();
  }
}

void Gates::Work() {
  MutexLock lock(mu_);
  for (;;) {
    while (!stopping_ && changes_.empty()) wake_.wait(lock);
    if (stopping_) return;
    const Change change = std::move(changes_.front());
    changes_.pop_front();
    lock.unlock();
    Apply(change);
    lock.lock();
  }
}

void Gates::Apply(const Change& change) {
  const auto record = options_.store->GetJob(change.job);
  if (!record.ok()) return;
  const auto job = job::FromJson(record->job);
  if (!job.ok()) return;
  const std::string id = GateOf(*job);
  if (change.runs) Note(*record, *job);
  if (id.empty()) return;
  if (change.runs) {
    Begin(id, change.job);
  } else {
    End(id, change.ended);
  }
}

void Gates::Note(const controller::JobRecord& record, const job::Job& job) {
  if (options_.lineage->Get(record.id).ok()) return;
  LineageRecord lineage{record.id,   record.name, record.user, record.team, options_.clock->Wall(),
                        job.outputs, {}};
  const auto asker = AskerOf(options_.people, record.user);
  const auto tables =
      asker.ok() ? ResolveTables(options_.catalog, *asker, job, nullptr, options_.clock->Wall())
                 : Result<std::vector<ResolvedTable>>(asker.status());
  if (!tables.ok() || tables->empty()) return;  // its gate refuses it, or it reads no table
  for (const ResolvedTable& resolved : *tables) {
    LineageTable table{.data = resolved.data,
                       .table = resolved.table.full_name(),
                       .columns = {},
                       .rows = resolved.access.rows,
                       .masks = {},
                       .gated = resolved.gated,
                       .objects = {}};
    for (size_t i = 0; i < resolved.access.columns.size(); ++i) {
      const std::string& name = resolved.table.columns[resolved.access.columns[i]].name;
      table.columns.push_back(name);
      if (resolved.access.masks[i] != data::Mask())
        table.masks[name] = data::TextOf(resolved.access.masks[i]);
    }
    lineage.tables.push_back(std::move(table));
  }
  const Status written = options_.lineage->Put(lineage);
  if (!written.ok())
    LogError("the lineage of job {} cannot be written: {}", record.id, written.message());
}

void Gates::Begin(const std::string& id, const std::string& job) {
  const MutexLock lock(mu_);
  if (stopping_ || processes_.contains(id)) return;
  auto process = std::make_unique<Process>();
  process->id = id;
  process->job = job;
  process->wake = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  process->thread = std::thread([this, self = process.get()] { Supervise(self); });
  processes_[id] = std::move(process);
}

void Gates::End(const std::string& id, bool forget) {
  std::unique_ptr<Process> process;
  {
    const MutexLock lock(mu_);
    const auto found = processes_.find(id);
    if (found != processes_.end()) {
      process = std::move(found->second);
      processes_.erase(found);
    }
  }
  if (process != nullptr) {
    process->stopping = true;
    process->Wake();
    process->thread.join();
  }
  if (forget) Remove(id);
}

// ---- One gate's process
// --------------------------------------------------------------------------

Result<std::string> Gates::HashKey() {
  const MutexLock lock(key_mu_);
  const auto key = options_.vault->Read(kNoTeam, kHashKeySecret);
  if (key.status().code() != Code::kNotFound) return key;
  TRY(options_.vault->Set(kNoTeam, kHashKeySecret, RandomHex(kTokenBytes), ""));
  return options_.vault->Read(kNoTeam, kHashKeySecret);
}

Status Gates::AddTables(const json::object& gate, data::GatePlan* plan) {
  TRY_ASSIGN(const data::Asker asker, AskerOf(options_.people, GetStringOr(gate, "user", "")));
  job::Job job;
  job.framework =
      GetBoolOr(gate, "shoal", false) ? job::Framework::kShoal : job::Framework::kGeneric;
  for (const json::value& one : gate.at("tables").as_array()) {
    job::DataSource& source = job.data.emplace_back();
    source.name = GetStringOr(one.as_object(), "data", "");
    source.table = GetStringOr(one.as_object(), "table", "");
    for (const json::value& column : one.as_object().at("columns").as_array())
      source.columns.emplace_back(column.as_string());
  }
  TRY_ASSIGN(const std::vector<ResolvedTable> tables,
             ResolveTables(options_.catalog, asker, job, nullptr, options_.clock->Wall()));
  for (const ResolvedTable& resolved : tables) {
    data::GateTable table = GateTableOf(resolved);
    if (const std::string& name = resolved.table.credentials; !name.empty()) {
      TRY_ASSIGN(std::string secret, options_.vault->Read(resolved.database.team, name));
      TRY_ASSIGN(table.environment, EnvironmentIn(secret, name));
      EraseSecret(&secret);
    }
    plan->tables.push_back(std::move(table));
  }
  return Status::Ok();
}

Result<data::GatePlan> Gates::PlanOf(const std::string& id) {
  TRY_ASSIGN(const controller::Record record, options_.records->Get(kKind, id));
  data::GatePlan plan;
  plan.address = options_.address;
  TRY_ASSIGN(plan.token, options_.vault->Read(kNoTeam, SecretOf(id)));
  TRY_ASSIGN(plan.hash_key, HashKey());
  const int64_t port = GetIntOr(record.body, "port", 0);
  if (port <= 0 || port > UINT16_MAX) return FailedPrecondition("its port is not known yet");
  plan.port = static_cast<uint16_t>(port);
  plan.scratch = options_.scratch.string();
  if (const Status added = AddTables(record.body, &plan); !added.ok()) {
    plan.tables.clear();
    plan.refusal = added.message();
  }
  return plan;
}

void Gates::OnLine(const Process& process, const std::string& line) {
  const auto object = ParseJsonObject(line);
  if (!object.ok()) return;
  const std::string data = GetStringOr(*object, "data", "");
  if (const std::string why = GetStringOr(*object, "error", ""); !why.empty()) {
    LogWarning("the gate of job {} cannot give {}: {}", process.job, data, why);
    return;
  }
  if (!object->contains("objects")) return;
  const Status noted = options_.lineage->NoteObjects(process.job, data, ObjectsIn(*object));
  if (!noted.ok())
    LogWarning("the versions that job {} reads are not noted: {}", process.job, noted.message());
}

namespace {

// Starts the gate with its plan; its input stays open as a sign that the server lives.
Result<engine::Child> StartGate(const std::string& program, const data::GatePlan& plan) {
  TRY_ASSIGN(engine::Child child, engine::StartChild({program, "gate"}, {"PATH=/usr/bin:/bin"}));
  std::string text = ToText(data::ToJson(plan)) + "\n";
  const Status written = WriteAll(child.in.get(), text);
  EraseSecret(&text);
  if (!written.ok()) {
    ::kill(child.pid, SIGKILL);
    pollfd ended{child.pidfd.get(), POLLIN, 0};
    ::poll(&ended, 1, -1);
    engine::ReapChild(child);
    return written;
  }
  return child;
}

// The whole lines that can be read now. False at the end.
bool ReadLines(int fd, std::string* buffer, const std::function<void(const std::string&)>& use) {
  char piece[16 << 10];
  for (;;) {
    const ssize_t got = ::read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    buffer->append(piece, static_cast<size_t>(got));
    for (size_t end = 0; (end = buffer->find('\n')) != std::string::npos;) {
      use(buffer->substr(0, end));
      buffer->erase(0, end + 1);
    }
    if (buffer->size() > kMaxLine) buffer->clear();
  }
}

void EmptyEvent(int fd) {
  uint64_t count = 0;
  (void)!::read(fd, &count, sizeof count);
}

}  // namespace

void Gates::Supervise(Process* process) {
  auto pause = kFirstPause;
  while (!process->stopping) {
    process->again = false;
    auto plan = PlanOf(process->id);
    auto child =
        plan.ok() ? StartGate(options_.program, *plan) : Result<engine::Child>(plan.status());
    if (plan.ok()) {
      const MutexLock lock(mu_);
      process->tables.clear();
      for (const data::GateTable& table : plan->tables) process->tables.insert(table.table);
    }
    if (!child.ok())
      LogWarning("the gate of job {} cannot be started: {}", process->job,
                 child.status().message());
    std::string out;
    std::string err;
    bool open = child.ok();
    while (open && !process->stopping && !process->again) {
      pollfd fds[] = {{child->out.get(), POLLIN, 0},
                      {child->err.get(), POLLIN, 0},
                      {child->pidfd.get(), POLLIN, 0},
                      {process->wake.get(), POLLIN, 0}};
      if (::poll(fds, 4, -1) < 0 && errno != EINTR) break;
      if (fds[3].revents != 0) EmptyEvent(process->wake.get());
      ReadLines(child->out.get(), &out, [&](const std::string& line) { OnLine(*process, line); });
      ReadLines(child->err.get(), &err, [&](const std::string& line) {
        LogWarning("the gate of job {}: {}", process->job, line);
      });
      open = fds[2].revents == 0;
    }
    if (child.ok()) {
      child->in = UniqueFd();
      pollfd ended{child->pidfd.get(), POLLIN, 0};
      if (::poll(&ended, 1, static_cast<int>(kEndGrace.count())) <= 0) ::kill(child->pid, SIGKILL);
      ::poll(&ended, 1, -1);
      engine::ReapChild(*child);
    }
    if (process->stopping || process->again) {
      pause = kFirstPause;
      continue;
    }
    pollfd woken{process->wake.get(), POLLIN, 0};
    if (::poll(&woken, 1, static_cast<int>(pause.count())) > 0) EmptyEvent(process->wake.get());
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace shoal::api
