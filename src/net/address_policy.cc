#include "net/address_policy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace shoal::net {
namespace {

constexpr int kMappedBits = 96;  // of ::ffff:0:0, in front of an IPv4 address
constexpr int kAllBits = 128;
constexpr int kByteBits = 8;

// IANA's special-purpose registries. 2002:: and 2001:0:: carry an IPv4 address that a relay of
// this network would connect to.
constexpr const char* kDenied[] = {
    "0.0.0.0/8",     "10.0.0.0/8",      "100.64.0.0/10",  "127.0.0.0/8",    "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24",    "192.0.2.0/24",   "192.88.99.0/24", "192.168.0.0/16",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",    "240.0.0.0/4",
    "::/96",         "64:ff9b:1::/48",  "100::/64",       "2001::/32",      "2001:db8::/32",
    "2002::/16",     "fc00::/7",        "fe80::/10",      "fec0::/10",      "ff00::/8"};

std::array<uint8_t, 16> Mapped(const in_addr& v4) {
  std::array<uint8_t, 16> bytes{};
  bytes[10] = bytes[11] = 0xff;
  std::memcpy(bytes.data() + 12, &v4, sizeof v4);
  return bytes;
}

// 64:ff9b::/96 (RFC 6052) stands for the IPv4 address in its last bytes.
std::array<uint8_t, 16> WithoutTranslation(std::array<uint8_t, 16> bytes) {
  constexpr std::array<uint8_t, 12> kPrefix = {0, 0x64, 0xff, 0x9b};
  if (!std::equal(kPrefix.begin(), kPrefix.end(), bytes.begin())) return bytes;
  in_addr v4{};
  std::memcpy(&v4, bytes.data() + 12, sizeof v4);
  return Mapped(v4);
}

std::string TextOf(const std::array<uint8_t, 16>& bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  const bool v4 = bytes[10] == 0xff && bytes[11] == 0xff &&
                  std::all_of(bytes.begin(), bytes.begin() + 10, [](uint8_t b) { return b == 0; });
  ::inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data() + (v4 ? 12 : 0), text, sizeof text);
  return text;
}

}  // namespace

Result<AddressPolicy::Network> AddressPolicy::ParseNetwork(const std::string& text) {
  const size_t slash = text.find('/');
  const std::string address = text.substr(0, slash);
  Network network;
  in_addr v4{};
  const bool is_v4 = ::inet_pton(AF_INET, address.c_str(), &v4) == 1;
  if (is_v4) network.bytes = Mapped(v4);
  const bool known = is_v4 || ::inet_pton(AF_INET6, address.c_str(), network.bytes.data()) == 1;
  const int most = is_v4 ? kAllBits - kMappedBits : kAllBits;
  int bits = most;
  bool number = true;
  if (slash != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + slash + 1, end, bits);
    number = parsed.ec == std::errc() && parsed.ptr == end && bits >= 0 && bits <= most;
  }
  if (!known || !number)
    return InvalidArgument("got \"" + text.substr(0, 100) +
                           "\", expected an address or a network such as 10.1.0.0/16");
  network.bits = bits + (is_v4 ? kMappedBits : 0);
  return network;
}

bool AddressPolicy::Contains(const Network& network, const std::array<uint8_t, 16>& address) {
  const auto whole = static_cast<size_t>(network.bits / kByteBits);
  const int rest = network.bits % kByteBits;
  if (!std::equal(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(whole),
                  network.bytes.begin()))
    return false;
  if (rest == 0) return true;
  const int shift = kByteBits - rest;
  return (address[whole] >> shift) == (network.bytes[whole] >> shift);
}

Result<AddressPolicy> AddressPolicy::Make(const std::vector<std::string>& allowed) {
  AddressPolicy policy;
  for (const std::string& text : allowed) {
    TRY_ASSIGN(const Network network, ParseNetwork(text));
    policy.allowed_.push_back(network);
  }
  for (const char* text : kDenied) {
    TRY_ASSIGN(const Network network, ParseNetwork(text));
    policy.denied_.push_back(network);
  }
  return policy;
}

Status AddressPolicy::Check(const sockaddr& address) const {
  std::array<uint8_t, 16> bytes{};
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    bytes = Mapped(v4.sin_addr);
  } else if (address.sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &address, sizeof v6);
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    bytes = WithoutTranslation(bytes);
  } else {
    return PermissionDenied("the address is neither IPv4 nor IPv6");
  }
  const auto in = [&bytes](const Network& network) { return Contains(network, bytes); };
  if (std::ranges::any_of(allowed_, in) || std::ranges::none_of(denied_, in)) return Status::Ok();
  return PermissionDenied("the address " + TextOf(bytes) +
                          " is of this machine, this network or a private one");
}

}  // namespace shoal::net
