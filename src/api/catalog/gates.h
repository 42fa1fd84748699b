// The gates of a server's jobs: one process (`shoal gate`, data/gate) for each job whose data is a
// table of which its user may not see everything, or whose sources have credentials. It runs beside
// the server, never among the job's tasks, and gets credentials by its standard input.
//
// A job with a gate has the variable SHOAL_GATE with a reference to a reserved secret; its value is
// the gate's address and token, so that it reaches the tasks as secrets do. A gate lives from its
// job's start to its end or suspension, is started again when it dies, and asks the catalogue at
// each start.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "api/catalog/catalog.h"
#include "api/catalog/lineage.h"
#include "api/catalog/table_access.h"
#include "api/people/people.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/secrets/secret_vault.h"
#include "controller/store/records.h"
#include "controller/store/store.h"
#include "data/gate/gate_plan.h"
#include "job/spec/job.h"

namespace shoal::api {

// All pointers must outlive the gates.
struct GatesOptions {
  controller::Store* store = nullptr;
  controller::Records* records = nullptr;
  controller::SecretVault* vault = nullptr;
  Catalog* catalog = nullptr;
  Lineage* lineage = nullptr;
  People* people = nullptr;
  const Clock* clock = nullptr;
  std::string program;            // absolute path of shoal
  std::string address;            // numeric, of this machine, that tasks reach
  std::filesystem::path scratch;  // made if it is not there
};

// Thread-safe.
class Gates final : public controller::SecretSource {
 public:
  static Result<std::unique_ptr<Gates>> Start(GatesOptions options);
  // Ends all gates; the next server starts those of jobs that run.
  ~Gates() override;

  // InvalidArgument if the job refers to a reserved secret, or sets the gate's variable.
  static Status CheckReserved(const job::Job& job);
  // Adds the gate's variable, with a new gate, to a job with gated tables. Nothing is stored.
  static void AddVariable(const std::vector<ResolvedTable>& tables, job::Job* job);
  // Stores the gate of a job that is about to be submitted. Does nothing for one without.
  Status Keep(const job::Job& job, const std::string& team, const std::string& user);
  // Of a job that could not be submitted.
  void Forget(const job::Job& job);

  // The job has this state now: its gate is started or ended, and what it reads is noted. At once;
  // the work is done on another thread.
  void OnState(const std::string& job, bool runs, bool ended);
  // A job of an earlier server: its gate is started if its tasks have been.
  void OnJobFound(const std::string& job);
  // Something about the table has changed: gates that give it ask the catalogue again.
  void OnTableChange(const std::string& table);

  // The values of reserved secrets, and all others from the vault.
  Result<std::string> Read(const std::string& team, const std::string& name) override;

 private:
  struct Process;
  struct Change {
    std::string job;
    bool runs = false;
    bool ended = false;
  };

  explicit Gates(GatesOptions options);
  void Work();
  void Apply(const Change& change);
  void Note(const controller::JobRecord& record, const job::Job& job);
  void Begin(const std::string& id, const std::string& job);
  void End(const std::string& id, bool forget);
  void Remove(const std::string& id);
  void Supervise(Process* process);
  Result<data::GatePlan> PlanOf(const std::string& id);
  Status AddTables(const json::object& gate, data::GatePlan* plan);
  Result<std::string> HashKey();
  void OnLine(const Process& process, const std::string& line);

  const GatesOptions options_;
  Mutex key_mu_;  // held while the key of hashes is made
  Mutex mu_;
  CondVar wake_;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::deque<Change> changes_ GUARDED_BY(mu_);
  std::map<std::string, std::unique_ptr<Process>> processes_ GUARDED_BY(mu_);  // by gate
  std::thread thread_;
};

}  // namespace shoal::api
