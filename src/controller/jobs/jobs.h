// Access to jobs for commands: the same interface over the local state directory (embedded_jobs.h)
// and over a server's REST interface (api/client).
//
// A command finds a job by an unambiguous prefix, then uses the id of the result. Ids that are not
// known are NotFound everywhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "controller/admission/why_waits.h"
#include "controller/files/log_search.h"
#include "controller/files/log_store.h"
#include "controller/files/outputs.h"
#include "controller/jobs/queues.h"
#include "controller/run/controller.h"
#include "controller/secrets/secrets.h"
#include "controller/series/series_reader.h"
#include "controller/store/job_record.h"
#include "controller/usage/usage.h"
#include "engine/executes.h"
#include "job/spec/job.h"
#include "job/text/field_locations.h"
#include "net/event_loop.h"
#include "rendezvous/logs/log_times.h"

namespace shoal::controller {

// A job as commands show it. Plain value.
struct JobView {
  JobRecord record;
  bool unattended = false;  // it runs on without a controller
  Duration suspended{0};    // time spent suspended or waiting to be restarted
  std::string directory;    // the job's directory on this machine; empty: it is on the server
};

struct JobDetails {
  JobView view;
  std::vector<TaskRecord> tasks;
  std::vector<Event> events;
};

// A job to submit.
struct NewRun {
  job::Job job;          // validated; relative paths are relative to this process's directory
  std::string engine;    // name of an engine instance; empty: the default of the interface
  std::string work_dir;  // where its programs start; empty: this process's working directory
  job::FieldLocations locations = {};  // of the job's fields, for messages
};

// A job file whose jobs a server makes: several YAML documents, a matrix or a sweep.
struct NewFile {
  std::string text;
  std::vector<std::string> set;    // overrides
  std::string engine;              // as of NewRun
  std::string work_dir;            // likewise
  std::vector<std::string> files;  // of each document: the directory `files`, or empty
};

// What a file became, in the order of its documents.
struct SubmittedItem {
  std::string id;
  std::string name;
  bool group = false;
  size_t members = 0;
};

enum class StopMode : uint8_t { kDrain, kKill };

// Thread-safe, except that all methods with a loop must be called on the loop's thread. Methods
// without a loop block until the answer is there.
class Jobs {
 public:
  virtual ~Jobs() = default;

  // The job whose id begins with `prefix`; an exact match takes precedence, then the only
  // unfinished one of several. NotFound; InvalidArgument lists some of several matches.
  virtual Result<JobView> Find(const std::string& prefix) = 0;
  // Newest first, as the query says.
  virtual Result<std::vector<JobView>> List(const JobQuery& query) = 0;
  // With tasks and all events.
  virtual Result<JobDetails> Describe(const std::string& id) = 0;

  // Submits the job and returns its id; the job needs this process no longer. FailedPrecondition
  // for the embedded implementation, whose jobs need a process that runs them.
  virtual Result<std::string> Submit(const NewRun& run) = 0;
  // Submits all jobs of a file to a server. Unimplemented without one.
  virtual Result<std::vector<SubmittedItem>> SubmitFile(const NewFile& /*file*/) {
    return Unimplemented("several jobs of one file are made by a server only");
  }
  // The groups whose ids begin with `prefix`, as the server describes them; none without a server.
  virtual Result<std::vector<json::object>> FindGroups(const std::string& /*prefix*/) {
    return std::vector<json::object>();
  }
  // One of them with its members; and the request to stop it. NotFound.
  virtual Result<json::object> DescribeGroup(const std::string& /*team*/, const std::string& id) {
    return NotFound("there is no group " + id);
  }
  virtual Result<json::object> StopGroup(const std::string& /*team*/, const std::string& id,
                                         StopMode /*mode*/) {
    return NotFound("there is no group " + id);
  }
  // Submits the job and follows it to its end on `loop`. `on_submitted` is called with its id
  // before any call of `observer`. Destroying the result stops the following; an embedded job then
  // has no controller, a job of a server goes on.
  virtual Result<std::unique_ptr<JobRun>> Run(
      net::Loop* loop, const NewRun& run,
      const std::function<void(const std::string& id)>& on_submitted, Observer observer) = 0;
  // Resumes a suspended job and follows it to its end. FailedPrecondition if it is not suspended.
  virtual Result<std::unique_ptr<JobRun>> RunResumed(net::Loop* loop, const std::string& id,
                                                     Observer observer) = 0;
  // Makes a suspended job pending again; the job needs this process no longer. FailedPrecondition
  // as for Submit, or if it is not suspended.
  virtual Result<JobView> Resume(const std::string& id) = 0;

  // Stops the job and returns it when it has ended (or is suspended, by an earlier request) and its
  // resources are released. A job that has ended is returned unchanged. Cancelled by a signal
  // (SIGINT, SIGTERM, SIGHUP), which leaves the request in effect.
  virtual Result<JobView> Stop(const std::string& id, StopMode mode, const std::string& reason) = 0;
  // Suspends the job and returns it when its tasks have ended; its state then is kSuspended, or
  // final if it has ended instead. FailedPrecondition if it cannot be suspended.
  virtual Result<JobView> Suspend(const std::string& id, const std::string& reason) = 0;
  // Sets the number of tasks of an elastic role. Returns when it is accepted. FailedPrecondition
  // with the reason why it is not.
  virtual Status Scale(const std::string& id, const std::string& role, int replicas) = 0;

  // Why the job waits for its admission, and what would start it now; without `waits` it does not.
  virtual Result<WhyWaits> Why(const std::string& id) = 0;

  // Time that the job spent suspended or waiting to be restarted; 0 if it cannot be found.
  virtual Duration TimeSuspended(const std::string& id) {
    const Result<JobView> view = Find(id);
    return view.ok() ? view->suspended : Duration(0);
  }

  // The selected logs, ordered by role, index and attempt. NotFound lists the existing ones.
  virtual Result<std::vector<LogInfo>> SelectLogs(const std::string& id,
                                                  const LogSelection& selection) = 0;
  // At most `limit` bytes from `offset`; empty at the end.
  virtual Result<std::string> ReadLog(const std::string& id, const LogKey& key, int64_t offset,
                                      size_t limit) = 0;
  // When the bytes from `from` on were stored: the entries from the one that covers `from` on, at
  // most rendezvous::kMaxLogTimes.
  virtual Result<rendezvous::LogTimes> ReadLogTimes(const std::string& id, const LogKey& key,
                                                    int64_t from) = 0;
  // Offset at which the last `lines` lines begin.
  virtual Result<int64_t> TailOffset(const std::string& id, const LogKey& key, int lines) = 0;
  // Calls `on_found` with the selected lines of all jobs, newest job first, until it returns false.
  virtual Status SearchLogs(const LogSearchRequest& request, const OnFoundLine& on_found) = 0;
  // Calls `on_bytes` on the loop's thread for all bytes from the offsets `from` on, including new
  // attempts, then `on_end` once: OK when the job has ended and all bytes were delivered. Ends with
  // the destruction of the result.
  class Following {
   public:
    virtual ~Following() = default;
  };
  virtual Result<std::unique_ptr<Following>> FollowLogs(
      net::Loop* loop, const std::string& id, const LogSelection& selection,
      std::map<LogKey, int64_t> from, LogStore::OnBytes on_bytes,
      std::function<void(const Status&)> on_end) = 0;

  // Files that tasks wrote to $SHOAL_OUTPUT.
  virtual Result<std::vector<OutputFile>> ListOutputs(const std::string& id) = 0;
  virtual Status CopyOutputs(const std::string& id, const std::vector<OutputFile>& files,
                             const std::filesystem::path& directory) = 0;

  // The series of numbers that the job's tasks have reported, by name. ReadSeries: NotFound names
  // some of them.
  virtual Result<std::vector<SeriesInfo>> ListSeries(const std::string& id) = 0;
  virtual Result<std::vector<SeriesBucket>> ReadSeries(const std::string& id,
                                                       const std::string& name,
                                                       const SeriesRange& range) = 0;

  // Removes records, logs and directories of the jobs that ended at least `age` ago; returns their
  // ids.
  virtual Result<std::vector<std::string>> Prune(Duration age) = 0;
  // Likewise for ended jobs whose records cannot be read completely.
  virtual Result<std::vector<std::string>> PruneUnreadable() = 0;

  // What jobs have held in these months.
  virtual Result<UsageTable> Usage(const UsageQuery& query) = 0;

  // The secrets of `team`; empty: the only team of the user, or none without a server. Must not
  // outlive this object. InvalidArgument for a team without a server, and where the user must name
  // one.
  virtual Result<std::unique_ptr<Secrets>> SecretsOf(const std::string& team) = 0;

  // The queues of the server. Must not outlive this object. FailedPrecondition without a server.
  virtual Result<std::unique_ptr<Queues>> OpenQueues() {
    return FailedPrecondition(
        "queues belong to a server; name it with --server, or sign in with `shoal login`");
  }

  // Engine::Exec and Engine::DialTask of the job's engine.
  virtual Result<std::unique_ptr<engine::Execution>> Exec(const std::string& id,
                                                          const std::string& role, int index,
                                                          const engine::ExecSpec& spec) = 0;
  virtual Result<UniqueFd> DialTask(const std::string& id, const std::string& role, int index,
                                    uint16_t port) = 0;
};

}  // namespace shoal::controller
