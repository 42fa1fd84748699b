// The cluster description: where every task of a job is, in index order, under a generation
// (design.md §6.3). The coordinator makes it when all have joined; programs read it as
// SHOAL_CLUSTER or from SHOAL_CLUSTER_FILE. The format is docs/formats/cluster.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace shoal::framework {

struct ClusterMember {
  std::string host;             // name, IPv4 or IPv6 address without brackets
  std::vector<uint16_t> ports;  // parallel to the role's port_names

  bool operator==(const ClusterMember&) const = default;
};

struct ClusterRole {
  std::string name;
  std::vector<std::string> port_names;  // in the job file's order
  std::vector<ClusterMember> members;   // by index; an empty host stands for a task that is not
                                        // there (elastic roles)
  std::vector<int> ended = {};          // indices of those that ended well, for good; ascending

  bool operator==(const ClusterRole&) const = default;
};

struct ClusterDescription {
  int64_t generation = 1;
  std::vector<ClusterRole> roles;  // in the job file's order
  bool ending = false;             // the job is being stopped, or its verdict is decided

  const ClusterRole* FindRole(std::string_view name) const;
  bool operator==(const ClusterDescription&) const = default;
};

// {"generation":1,"roles":{"server":["127.0.0.1:4001"],"worker":["127.0.0.1:0"]},
//  "ports":{"server":{"ps":[4001]}},"ended":{"worker":[0]}}: a role's address is host:first
// port, or host:0 without ports.
json::object ToJson(const ClusterDescription& cluster);
// Checks everything; InvalidArgument says which role and index is wrong. "ports" may be missing:
// then a role whose addresses have ports has one port with the name "".
Result<ClusterDescription> ClusterFromJson(const json::object& object);

// "127.0.0.1:4001", "[::1]:4001".
std::string FormatAddress(std::string_view host, uint16_t port);

// The description's text, made once a generation and shared by all that send or hold it.
class SerializedCluster {
 public:
  explicit SerializedCluster(const ClusterDescription& cluster);

  const std::string& text() const { return *text_; }
  const std::shared_ptr<const std::string>& shared() const { return text_; }
  // False if it is longer than one environment variable may be: then programs get only
  // SHOAL_CLUSTER_FILE.
  bool fits_variable() const;

 private:
  std::shared_ptr<const std::string> text_;
};

}  // namespace shoal::framework
