// The membership of a job as clients and servers of the parameter server see it: addresses of the
// servers and the number of workers.
//
// This room declares the interface; learn implements it from what the launcher provides, tests set
// it by hand.
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
