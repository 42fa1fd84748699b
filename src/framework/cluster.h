// The cluster description: the addresses of all tasks of a job, by role and index, with a
// generation number.
//
// The coordinator builds it when all tasks have joined and again when a task moves, leaves or ends.
// Programs read it from the environment variable SHOAL_CLUSTER or from the file that
// SHOAL_CLUSTER_FILE names. Format: docs/formats/cluster.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace shoal::framework {

// The address of one task.
struct ClusterMember {
  std::string host;             // name, IPv4 or IPv6 address without brackets
  std::vector<uint16_t> ports;  // parallel to the role's port_names

  bool operator==(const ClusterMember&) const = default;
};

// All tasks of one role. Plain data.
struct ClusterRole {
  std::string name;
  std::vector<std::string> port_names;  // in the job file's order
  std::vector<ClusterMember> members;   // by index; an empty host stands for a task that is not
                                        // there (elastic roles)
  std::vector<int> ended = {};          // indices of tasks that ended successfully; ascending

  bool operator==(const ClusterRole&) const = default;
};

// The whole cluster at one generation. Plain data: a snapshot that later changes do not affect.
struct ClusterDescription {
  int64_t generation = 1;
  std::vector<ClusterRole> roles;  // in the job file's order
  bool ending = false;             // the job is stopping, or its result is decided

  // The role of that name; nullptr if there is none. Valid as long as `roles` is unchanged.
  const ClusterRole* FindRole(std::string_view name) const;
  bool operator==(const ClusterDescription&) const = default;
};

// Encodes the description:
// {"generation":1,"roles":{"server":["127.0.0.1:4001"],"worker":["127.0.0.1:0"]},
//  "ports":{"server":{"ps":[4001]}},"ended":{"worker":[0]}}
// An address is the task's host with its first port, or host:0 for a role without ports.
json::object ToJson(const ClusterDescription& cluster);
// Decodes and validates a description. InvalidArgument names the role and the index of the first
// wrong entry; ResourceExhausted for more than 200,000 tasks. "ports" is optional: without it a
// role whose addresses have ports has one port with an empty name.
Result<ClusterDescription> ClusterFromJson(const json::object& object);

// "127.0.0.1:4001"; IPv6 addresses in brackets: "[::1]:4001".
std::string FormatAddress(std::string_view host, uint16_t port);

// The JSON text of a description. Encoded once for each generation and shared by all holders.
// Immutable, thread-safe, cheap to copy.
class SerializedCluster {
 public:
  explicit SerializedCluster(const ClusterDescription& cluster);

  const std::string& text() const { return *text_; }
  const std::shared_ptr<const std::string>& shared() const { return text_; }
  // False if the text exceeds kMaxVariableBytes: programs then get only SHOAL_CLUSTER_FILE.
  bool fits_variable() const;

 private:
  std::shared_ptr<const std::string> text_;
};

}  // namespace shoal::framework
