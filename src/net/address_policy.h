// Which addresses a connection to a user's URL may lead to: the rule against server-side request
// forgery. It is applied to the addresses that a name has resolved to, immediately before the
// connection, so that a name which changes its address between a check and its use gains nothing.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace shoal::net {

// Constant after construction. Refuses the loopback, link-local, private, shared, multicast and
// reserved networks (RFC 6890 and its IPv6 counterparts), also as IPv6 addresses that stand for
// IPv4 ones, except those that were allowed.
class AddressPolicy {
 public:
  // `allowed`: addresses and networks, "10.1.0.0/16", "127.0.0.1", "fd00::/8". InvalidArgument
  // names the one that is neither.
  static Result<AddressPolicy> Make(const std::vector<std::string>& allowed);

  // PermissionDenied with the address if it may not be connected to.
  Status Check(const sockaddr& address) const;

 private:
  // IPv4 as ::ffff:a.b.c.d.
  struct Network {
    std::array<uint8_t, 16> bytes{};
    int bits = 0;
  };
  static Result<Network> ParseNetwork(const std::string& text);
  static bool Contains(const Network& network, const std::array<uint8_t, 16>& address);

  std::vector<Network> allowed_;
  std::vector<Network> denied_;
};

}  // namespace shoal::net
