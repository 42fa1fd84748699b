#include "engine/slurm/node_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

#include "engine/process/child_process.h"
#include "net/address.h"

namespace shoal::engine::slurm {
namespace {

std::string AddressTowards(const std::string& host) {
  return host.empty() ? "" : net::AdvertisedHost(host).value_or("");
}

std::string AddressOfNode(const std::string& node) {
  if (node.empty()) return "";
  const auto ran =
      RunCommand({"scontrol", "--oneliner", "show", "node", node}, CurrentEnvironment());
  const std::string address = ran.ok() ? NodeAddrOf(ran->out) : "";
  return AddressTowards(address.empty() ? node : address);
}

// The IPv4 address of a machine with a single non-loopback interface: Slurm uses IPv4 by default,
// so scontrol need not be run.
std::string OnlyAddress() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::set<std::string> interfaces;
  std::vector<std::string> addresses;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const bool runs = (one->ifa_flags & IFF_RUNNING) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!runs || one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    if (family == AF_INET || family == AF_INET6) interfaces.insert(one->ifa_name);
    if (family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    sockaddr_in v4{};
    std::memcpy(&v4, one->ifa_addr, sizeof v4);
    if (::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text) != nullptr)
      addresses.emplace_back(text);
  }
  return interfaces.size() == 1 && addresses.size() == 1 ? addresses[0] : "";
}

bool Reachable(const std::string& address) { return !address.empty() && !net::IsLoopback(address); }

}  // namespace

std::string NodeAddrOf(const std::string& text) {
  constexpr std::string_view kField = " NodeAddr=";
  const size_t at = text.find(kField);
  if (at == std::string::npos) return "";
  const size_t begin = at + kField.size();
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

std::string NodeAddress(const std::vector<std::string>& nodes) {
  const char* const self = std::getenv("SLURMD_NODENAME");
  const std::string own = self != nullptr ? self : "";
  if (own.empty()) {
    if (const std::string only = OnlyAddress(); !only.empty()) return only;
  }
  std::string address = AddressOfNode(own);
  if (Reachable(address)) return address;
  if (!nodes.empty() && nodes.back() != own) {
    const std::string route = AddressOfNode(nodes.back());
    if (Reachable(route)) return route;
  }
  const char* const submit = std::getenv("SLURM_SUBMIT_HOST");
  const std::string route = submit != nullptr ? AddressTowards(submit) : "";
  if (Reachable(route)) return route;
  return address.empty() ? "127.0.0.1" : address;
}

}  // namespace shoal::engine::slurm
