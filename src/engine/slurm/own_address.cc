#include "engine/slurm/own_address.h"

#include <cstdlib>

#include "engine/child.h"
#include "net/address.h"

namespace shoal::engine::slurm {
namespace {

std::string AddressTowards(const std::string& host) {
  return host.empty() ? "" : net::AdvertisedHost(host).value_or("");
}

std::string AddressOfNode(const std::string& node) {
  if (node.empty()) return "";
  const auto ran = RunCommand({"scontrol", "--oneliner", "show", "node", node}, OwnEnvironment());
  const std::string address = ran.ok() ? NodeAddrOf(ran->out) : "";
  return AddressTowards(address.empty() ? node : address);
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

std::string OwnAddress(const std::vector<std::string>& nodes) {
  const char* const self = std::getenv("SLURMD_NODENAME");
  const std::string own = self != nullptr ? self : "";
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
