// Where a service is, by its SRV record (RFC 2782): hosts with ports, as Mesos-DNS tells them of
// Mesos tasks. Used by engine/marathon.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shoal::net {

struct Service {
  std::string target;   // a name
  std::string address;  // numeric, if the reply has it
  uint16_t port = 0;
  uint16_t priority = 0;  // the lowest is to be tried first
  uint16_t weight = 0;
};

// A reply of a name server (RFC 1035, section 4), best first. NotFound if there is no such name or
// it has no such record, Unavailable if the server says that it cannot answer, DataLoss if it is
// not a whole reply. O(bytes).
Result<std::vector<Service>> ParseSrvReply(std::string_view reply);

// The machine's resolver, by /etc/resolv.conf.
inline constexpr const char* kSystemResolver = "machine";

// Asks for the record, once, for at most `patience` (whole seconds). `server`: kSystemResolver or
// HOST:PORT, numeric. Unavailable if no name server answers; else as ParseSrvReply. Blocks.
// Thread-safe.
Result<std::vector<Service>> LookUpSrv(const std::string& name, const std::string& server,
                                       std::chrono::seconds patience);

}  // namespace shoal::net
