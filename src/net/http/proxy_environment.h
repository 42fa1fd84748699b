// The proxy that the environment names, with the rules of Go's httpproxy package, as kubectl has
// them. For HttpSession and engine/kubernetes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace shoal::net {

// Whether HOST:PORT is reached without the proxy of the environment: "localhost" and loopback
// addresses always; else if an entry of the comma-separated list names it: "*"; "10.0.0.0/8" or
// "fd00::/8" for addresses; an address; "example.com" for that name and those below it;
// ".example.com" or "*.example.com" for those below it alone. Each but the first two may end with
// ":PORT". Other entries are ignored. `host` without brackets.
bool IsExcludedFromProxy(const std::string& host, uint16_t port, std::string_view no_proxy);

// The value of HTTPS_PROXY or https_proxy (HTTP_PROXY or http_proxy for http:// URLs) unless
// NO_PROXY or no_proxy excludes the host; empty: none. `get` reads a variable of the environment.
std::string ProxyFromEnvironment(const std::string& url,
                                 const std::function<std::string(const char*)>& get);
// Of this process.
std::string ProxyFromEnvironment(const std::string& url);

}  // namespace shoal::net
