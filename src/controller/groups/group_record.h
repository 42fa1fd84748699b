// The record of a group: a job file whose matrix or sweep stands for several jobs, and what has
// become of them. The members are jobs of their own, with ids GROUP-INDEX and the labels below.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "controller/admission/dependencies.h"
#include "controller/store/job_record.h"
#include "job/spec/triggers.h"

namespace shoal::controller {

// Labels of a member's job: the group's id and the member's number.
inline constexpr const char* kGroupLabel = "shoal.group";
inline constexpr const char* kMemberLabel = "shoal.member";

// A job file as it was submitted, from which jobs are made later. Plain value.
struct StoredSubmission {
  std::string text;
  std::optional<size_t> document;  // of several in the text
  std::vector<std::string> set;    // overrides
  std::string team;
  std::string user;
  std::string engine;
  std::string directory;  // as requested; may be empty
  std::string tree;  // a copy of the directory `files`, below the state; empty: the job has none
};

json::object ToJson(const StoredSubmission& source);
Result<StoredSubmission> ParseStoredSubmission(const json::object& object);

// Folder of the server's state with the `tree` of groups, which is removed at their end.
inline constexpr const char* kGroupFolder = "groups";

// What has become of a member; one letter each in GroupRecord::members.
enum class MemberState : char {
  kWaiting = '.',     // not submitted yet
  kUnfinished = 'u',  // its job exists
  kSucceeded = 's',
  kFailed = 'f',
  kCancelled = 'c',
  kStopped = 'e',  // early, by the sweep
  kRefused = 'x',  // its job could not be made
};

struct GroupRecord {
  std::string id;
  std::string name;
  StoredSubmission source;
  job::Triggers triggers;
  WallTime submitted{};
  WallTime ended{};
  JobState state = JobState::kRunning;     // or a final one
  std::string reason;                      // of the end
  std::string stop_reason;                 // not empty: its members are being stopped
  bool stop_now = false;                   // they are killed
  std::chrono::milliseconds keep{0};       // limits.keep_records; 0: until it is removed
  std::string members;                     // a MemberState for each
  std::map<size_t, std::string> refusals;  // why members could not be made, of the first ones
  // Of a sweep: the objective of members at each rung; the last one of members that have ended;
  // and those that were stopped early.
  std::vector<std::map<size_t, double>> rungs;
  std::map<size_t, double> values;

  bool has_sweep() const { return !triggers.sweep.objective.empty(); }
  size_t limit() const {
    return static_cast<size_t>(has_sweep() ? triggers.sweep.limit : triggers.matrix.limit);
  }
  MemberState member(size_t index) const { return static_cast<MemberState>(members[index]); }
  size_t Count(MemberState state) const;
};

std::string MemberId(const std::string& group, size_t index);

json::object ToJson(const GroupRecord& group);
// Of the record with this key. InvalidArgument names the field that cannot be read.
Result<GroupRecord> ParseGroup(const std::string& id, const json::object& body);

// A table row of a member. Plain value.
struct MemberView {
  size_t index = 0;
  MemberState state = MemberState::kWaiting;
  job::MatrixValues values;
  std::optional<double> objective;  // of a sweep
  int rung = -1;                    // the last one that it has reached
};

// The members; of a sweep the best first, then those without an objective.
std::vector<MemberView> MembersOfGroup(const GroupRecord& group);
std::string_view NameOf(MemberState state);

}  // namespace shoal::controller
