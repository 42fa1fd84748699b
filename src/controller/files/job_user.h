// The user of the machine as whom a job's tasks run. A server that is root gives the job's
// directory to that user before anything is in it, and everything else follows from the directory's
// owner (base/access/directory_owner.h): the local engine runs tasks as the owner, and this process
// accesses files in it with the owner's rights.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/access/directory_owner.h"
#include "base/status.h"
#include "controller/files/state_home.h"
#include "controller/store/job_record.h"

namespace shoal::controller {

// The label of a job with its user, "2001:2001". Only servers set labels that begin with "shoal.".
inline constexpr const char* kUserLabel = "shoal.user";

// As whom the tasks of a team's jobs run on an engine; none, and an empty function: as this
// process.
using TaskUserSource = std::function<Result<std::optional<UserIds>>(const std::string& team,
                                                                    const std::string& engine)>;
// `labels` and that of the user that `source` names.
Result<JobLabels> LabelsWithUser(JobLabels labels, const TaskUserSource& source,
                                 const std::string& team, const std::string& engine);

// None: the tasks run as this process. DataLoss for a label that is not a user.
Result<std::optional<UserIds>> UserOf(const JobLabels& labels);

// Makes the directory of a job (0700) and gives it, with what is in it, to the user of the job;
// without a user it does nothing. Lets every user pass through the directories of `home` above it.
// FailedPrecondition if this process is not root, or the directory is another user's.
Status PrepareJobDir(const StateHome& home, const std::string& id, const JobLabels& labels);
// Gives another directory below `home`, which is this process's or already that user's, to a user
// in the same way.
Status GiveDirectory(const StateHome& home, const std::filesystem::path& directory,
                     const UserIds& user);

}  // namespace shoal::controller
