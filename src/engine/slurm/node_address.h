// Where a job's coordinator is reached by the other nodes and by the controller.
#pragma once

#include <string>
#include <vector>

namespace shoal::engine::slurm {

// The numeric address of this node that Slurm itself uses (NodeAddr); if that is one of the
// loopback, as /etc/hosts often has it, the address of the route to another of `nodes` or to the
// host that submitted the job. "127.0.0.1" if there is none. Asks scontrol; blocks for 10 ms.
std::string NodeAddress(const std::vector<std::string>& nodes);

// "NodeName=n1 … NodeAddr=10.0.0.7 …" → "10.0.0.7"; empty if it is not said.
std::string NodeAddrOf(const std::string& text);

}  // namespace shoal::engine::slurm
