// NO_PROXY with the rules of Go's httpproxy package, as kubectl has it. Used by kube_config.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::engine::kubernetes {

// Whether HOST:PORT is reached without the proxy of the environment: "localhost" and loopback
// addresses always; else if an entry of the comma-separated list names it: "*"; "10.0.0.0/8" or
// "fd00::/8" for addresses; an address; "example.com" for that name and those below it;
// ".example.com" or "*.example.com" for those below it alone. Each but the first two may end with
// ":PORT". Other entries are ignored. `host` without brackets.
bool IsExcludedFromProxy(const std::string& host, uint16_t port, std::string_view no_proxy);

}  // namespace shoal::engine::kubernetes
