// The jobs of a server as its operator submits and finds them: with the team's policy, admission
// and secrets, as every other submission.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/operator/reconciler.h"
#include "api/people/people.h"
#include "api/server/call.h"
#include "base/status.h"

namespace shoal::api {

// The service account as which ShoalJobs are submitted.
inline constexpr const char* kOperatorUser = "shoal-operator";
// Label of a job: the uid of the ShoalJob that it was submitted for, which is the idempotency key.
inline constexpr const char* kShoalJobUidLabel = "shoal.kubernetes.uid";
// Likewise: its namespace and name, and what FrozenDigest gave.
inline constexpr const char* kShoalJobNameLabel = "shoal.kubernetes.name";
inline constexpr const char* kShoalJobDigestLabel = "shoal.kubernetes.digest";

// Which team the ShoalJobs of a namespace belong to. Plain value.
struct OperatorTeams {
  std::map<std::string, std::string> by_namespace;
  std::string others;  // team of all other namespaces; empty: their ShoalJobs are refused
};
// Of the arguments NAMESPACE=TEAM, where the namespace * stands for all others; none: *=default.
// InvalidArgument names the wrong one.
Result<OperatorTeams> ParseOperatorTeams(const std::vector<std::string>& arguments);

// Makes the service account, and a member of the teams. NotFound for a team that does not exist.
Status MakeOperatorUser(const OperatorTeams& teams, People* people);

// `backend` outlives the result. `engine`: an instance of the kind kubernetes.
std::unique_ptr<OperatorJobs> MakeServerJobs(const Backend* backend, OperatorTeams teams,
                                             const std::string& engine);

}  // namespace shoal::api
