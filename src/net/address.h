// Addresses as people and files write them, and which of this machine's addresses others can reach.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::net {

struct HostPort {
  std::string host;  // without brackets
  uint16_t port = 0;
};

// "host:4711", "10.0.0.7:4711", "[::1]:4711". InvalidArgument says what is wrong.
Result<HostPort> ParseHostPort(std::string_view text);
// The inverse; brackets around a host with colons.
std::string FormatHostPort(std::string_view host, uint16_t port);

// Whether a numeric address is of the loopback.
bool IsLoopback(std::string_view host);

// The address of this machine that a member of a job should advertise, given the address its
// coordinator is dialled at: the local address of the route to it ("127.0.0.1" for a loopback
// coordinator). No packet is sent. Unavailable without a route.
Result<std::string> AdvertisedHost(std::string_view coordinator_host);

}  // namespace shoal::net
