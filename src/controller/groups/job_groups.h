// Submits the members of groups, at most so many at a time, counts what becomes of them, and stops
// the worst of a sweep. A server owns one beside its supervisor.
//
// All state is in the groups' records, so that the next server goes on: ids of members follow from
// the group's, and a member that exists already is not made again.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "controller/files/state_home.h"
#include "controller/groups/group_record.h"
#include "controller/store/lease.h"
#include "controller/store/store.h"
#include "controller/supervisor/supervisor.h"

namespace shoal::controller {

// A job made from a stored submission.
struct MadeJob {
  job::Job job;
  std::string engine;
  std::filesystem::path work_dir;
  JobValidation validation;
};

// All pointers must outlive the groups.
struct JobGroupsOptions {
  Store* store = nullptr;
  Supervisor* supervisor = nullptr;
  const Clock* clock = RealClock::Get();
  StateHome home{std::filesystem::path()};
  // Parses, checks and completes the job of a member. Errors of the file and of policies are final;
  // Unavailable and ResourceExhausted are tried again.
  std::function<Result<MadeJob>(const StoredSubmission& source, size_t member)> make;
  Duration tick = std::chrono::seconds(2);  // between looks at objectives, and repetitions
};

// Thread-safe.
class JobGroups {
 public:
  // Reads the unfinished groups and goes on with them, on a thread of its own. After the
  // supervisor's AttachAll.
  static Result<std::unique_ptr<JobGroups>> Start(JobGroupsOptions options);
  // Groups and their members go on with the next server.
  ~JobGroups();
  JobGroups(const JobGroups&) = delete;
  JobGroups& operator=(const JobGroups&) = delete;

  // Stores the group (durably), whose members are all waiting, and begins with it.
  Status Create(const GroupRecord& group);
  // Stops the members and submits no more; returns when that is stored. OK for an ended group.
  // NotFound.
  Status Stop(const std::string& id, const std::string& reason, bool now);
  // Deletes the record of a group that has ended; its members' jobs stay. FailedPrecondition if it
  // has not; NotFound.
  Status Remove(const std::string& id);

 private:
  struct Active {
    GroupRecord record;
    std::set<size_t> unfinished;
    std::set<size_t> stopped;  // members that were asked to stop by this process
    bool dirty = false;
  };

  explicit JobGroups(JobGroupsOptions options);

  Status Load();
  void Adopt(GroupRecord group);
  void CloseEnded(Active* active);
  void Post(std::function<void()> task);
  void Loop();
  void OnMemberEnd(const JobRecord& job);
  void SetMember(Active* active, size_t index, MemberState state);
  void CloseMember(Active* active, size_t index, JobState state);
  void Advance(Active* active);
  bool SubmitNext(Active* active);
  void StopMember(Active* active, size_t index, const std::string& reason, bool now);
  void LookAtSweeps();
  void LookAt(Active* active);
  void Judge(Active* active, size_t index, const std::vector<double>& values);
  void Finish(Active* active);
  void Expire();
  void StoreDirty();

  const JobGroupsOptions options_;
  std::map<std::string, Active> active_;  // of the thread
  Mutex mu_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mu_);
  bool stopping_ GUARDED_BY(mu_) = false;
  std::unique_ptr<Supervisor::Observation> observation_;
  std::thread thread_;
};

// The record of a group. NotFound.
Result<GroupRecord> ReadGroup(Store* store, const std::string& id);
// The sentence of a group's end.
std::string DescribeEnd(const GroupRecord& group);

}  // namespace shoal::controller
