// The address at which other nodes and the controller reach a job's coordinator.
#pragma once

#include <string>
#include <vector>

namespace shoal::engine::slurm {

// The numeric address of this node that Slurm uses (NodeAddr). If that is a loopback address, which
// /etc/hosts often causes, the source address of the route to another of `nodes` or to the submit
// host. "127.0.0.1" if there is none. Runs scontrol; blocks for about 10 ms.
std::string NodeAddress(const std::vector<std::string>& nodes);

// "NodeName=n1 … NodeAddr=10.0.0.7 …" → "10.0.0.7"; empty if there is no such field.
std::string NodeAddrOf(const std::string& text);

}  // namespace shoal::engine::slurm
