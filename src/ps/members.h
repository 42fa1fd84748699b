// Who the parameter servers are. ps declares it; learn implements it from what the launcher tells;
// tests by hand.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shoal::ps {

// One view of the membership. A server whose address is empty is known to be away for now.
struct MemberView {
  int64_t generation = 0;            // grows with every change
  std::vector<std::string> servers;  // "host:port" in index order
  int workers = 0;                   // how many clients take part in barriers and clocks
  int replicas = 1;                  // servers that have each row; beyond 1, a server's rows may be
                                     // found at another server's address
};

// Thread-safe.
class Members {
 public:
  virtual ~Members() = default;
  virtual MemberView Current() = 0;
};

}  // namespace shoal::ps
