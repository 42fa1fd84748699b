#include "framework/cluster.h"

#include <algorithm>
#include <charconv>

#include "framework/framework_environment.h"

namespace shoal::framework {
namespace {

constexpr size_t kMaxMembers = 200'000;  // in all roles
constexpr size_t kMaxHostBytes = 255;
constexpr size_t kMaxPorts = 64;  // of one role

struct HostPort {
  std::string host;
  uint16_t port = 0;
};

Status AddressError(std::string_view role, size_t index, std::string_view expected) {
  return InvalidArgument("cluster description: " + std::string(role) + " " + std::to_string(index) +
                         ": expected " + std::string(expected));
}

Result<HostPort> ParseAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return InvalidArgument("host:port");
  HostPort parsed;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), parsed.port);
  if (port.empty() || error != std::errc() || end != port.data() + port.size()) {
    return InvalidArgument("a port from 0 to 65535");
  }
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.size() > kMaxHostBytes || bracketed != (host.find(':') != std::string_view::npos) ||
      host.find_first_of("[] \t\n\r") != std::string_view::npos) {
    return InvalidArgument("a host name or address");
  }
  parsed.host = host;
  return parsed;
}

Result<ClusterRole> ParseRole(std::string_view name, const json::value& value) {
  ClusterRole role;
  role.name = name;
  if (!value.is_array()) {
    return InvalidArgument("cluster description: role '" + role.name + "': expected an array");
  }
  bool any_port = false;
  for (const json::value& item : value.get_array()) {
    const size_t index = role.members.size();
    if (!item.is_string()) return AddressError(name, index, "a string");
    auto address = ParseAddress(std::string_view(item.get_string()));
    if (!address.ok()) return AddressError(name, index, address.status().message());
    any_port = any_port || address->port != 0;
    role.members.push_back({std::move(address->host), {address->port}});
  }
  if (any_port) {
    role.port_names = {""};
  } else {
    for (ClusterMember& member : role.members) member.ports.clear();
  }
  return role;
}

// Replaces the ports taken from the addresses by the named ports. The first named port must equal
// the port of the address.
Status ParsePorts(const json::value& value, ClusterRole* role) {
  const std::string where = "cluster description: ports of role '" + role->name + "'";
  if (!value.is_object() || value.get_object().size() > kMaxPorts) {
    return InvalidArgument(where + ": expected an object of at most 64 names");
  }
  std::vector<uint16_t> addresses;
  for (ClusterMember& member : role->members) {
    addresses.push_back(member.ports.empty() ? uint16_t{0} : member.ports.front());
    member.ports.clear();
  }
  role->port_names.clear();
  for (const auto& [name, list] : value.get_object()) {
    if (!list.is_array() || list.get_array().size() != role->members.size()) {
      return InvalidArgument(where + ": expected one number for each of its " +
                             std::to_string(role->members.size()) + " tasks");
    }
    for (size_t i = 0; i < role->members.size(); ++i) {
      const json::value& item = list.get_array()[i];
      const int64_t port = item.is_int64() ? item.get_int64() : -1;
      if (port < 0 || port > 65535) return AddressError(role->name, i, "a port from 0 to 65535");
      if (role->port_names.empty() && port != addresses[i]) {
        return AddressError(role->name, i, "its first port in its address");
      }
      role->members[i].ports.push_back(static_cast<uint16_t>(port));
    }
    role->port_names.emplace_back(name);
  }
  return Status::Ok();
}

json::object PortsJson(const ClusterRole& role) {
  json::object names;
  for (size_t i = 0; i < role.port_names.size(); ++i) {
    json::array ports;
    ports.reserve(role.members.size());
    for (const ClusterMember& member : role.members) {
      ports.emplace_back(i < member.ports.size() ? member.ports[i] : 0);
    }
    names[role.port_names[i]] = std::move(ports);
  }
  return names;
}

Status ParseEnded(const json::object& object, ClusterDescription* cluster) {
  const json::value* value = object.if_contains("ended");
  if (value == nullptr) return Status::Ok();
  const auto wrong = [](std::string_view what) {
    return InvalidArgument("cluster description: field 'ended': " + std::string(what));
  };
  if (!value->is_object()) return wrong("expected an object");
  for (const auto& [name, list] : value->get_object()) {
    const auto role = std::find_if(cluster->roles.begin(), cluster->roles.end(),
                                   [&](const ClusterRole& one) { return one.name == name; });
    if (role == cluster->roles.end()) {
      return wrong("role '" + std::string(name) + "' is not among the roles");
    }
    if (!list.is_array()) return wrong("expected arrays");
    for (const json::value& item : list.get_array()) {
      const int64_t least = role->ended.empty() ? 0 : role->ended.back() + 1;
      if (!item.is_int64() || item.get_int64() < least ||
          item.get_int64() >= static_cast<int64_t>(role->members.size())) {
        return wrong("role '" + role->name + "': expected ascending indices of its tasks");
      }
      role->ended.push_back(static_cast<int>(item.get_int64()));
    }
  }
  return Status::Ok();
}

}  // namespace

const ClusterRole* ClusterDescription::FindRole(std::string_view name) const {
  for (const ClusterRole& role : roles) {
    if (role.name == name) return &role;
  }
  return nullptr;
}

std::string FormatAddress(std::string_view host, uint16_t port) {
  std::string text(host);
  if (host.find(':') != std::string_view::npos) text = "[" + text + "]";
  return text + ":" + std::to_string(port);
}

json::object ToJson(const ClusterDescription& cluster) {
  json::object roles;
  json::object ports;
  for (const ClusterRole& role : cluster.roles) {
    json::array members;
    members.reserve(role.members.size());
    for (const ClusterMember& member : role.members) {
      const uint16_t first = member.ports.empty() ? uint16_t{0} : member.ports.front();
      members.emplace_back(FormatAddress(member.host, first));
    }
    roles[role.name] = std::move(members);
    if (!role.port_names.empty()) ports[role.name] = PortsJson(role);
  }
  json::object ended;
  for (const ClusterRole& role : cluster.roles) {
    if (!role.ended.empty()) ended[role.name] = json::array(role.ended.begin(), role.ended.end());
  }
  json::object object;
  object["generation"] = cluster.generation;
  object["roles"] = std::move(roles);
  if (!ports.empty()) object["ports"] = std::move(ports);
  if (!ended.empty()) object["ended"] = std::move(ended);
  if (cluster.ending) object["ending"] = true;
  return object;
}

Result<ClusterDescription> ClusterFromJson(const json::object& object) {
  ClusterDescription cluster;
  TRY_ASSIGN(cluster.generation, GetInt(object, "generation"));
  if (cluster.generation < 0) {
    return InvalidArgument("cluster description: field 'generation': expected 0 or more");
  }
  const json::value* roles = object.if_contains("roles");
  if (roles == nullptr || !roles->is_object()) {
    return InvalidArgument("cluster description: field 'roles': expected an object");
  }
  size_t members = 0;
  for (const auto& [name, value] : roles->get_object()) {
    TRY_ASSIGN(ClusterRole role, ParseRole(name, value));
    members += role.members.size();
    if (members > kMaxMembers) {
      return ResourceExhausted("cluster description: expected at most " +
                               std::to_string(kMaxMembers) + " tasks");
    }
    cluster.roles.push_back(std::move(role));
  }
  TRY(ParseEnded(object, &cluster));
  cluster.ending = GetBoolOr(object, "ending", false);
  const json::value* ports = object.if_contains("ports");
  if (ports == nullptr) return cluster;
  if (!ports->is_object()) {
    return InvalidArgument("cluster description: field 'ports': expected an object");
  }
  for (ClusterRole& role : cluster.roles) {
    const json::value* value = ports->get_object().if_contains(role.name);
    if (value != nullptr) TRY(ParsePorts(*value, &role));
  }
  for (const auto& [name, value] : ports->get_object()) {
    if (cluster.FindRole(name) == nullptr) {
      return InvalidArgument("cluster description: field 'ports': role '" + std::string(name) +
                             "' is not among the roles");
    }
  }
  return cluster;
}

SerializedCluster::SerializedCluster(const ClusterDescription& cluster)
    : text_(std::make_shared<const std::string>(ToText(ToJson(cluster)))) {}

bool SerializedCluster::fits_variable() const {
  return std::string_view("SHOAL_CLUSTER=").size() + text_->size() + 1 <= kMaxVariableBytes;
}

}  // namespace shoal::framework
