#include "net/http/proxy_environment.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "net/http_client.h"

namespace shoal::net {
namespace {

// Parses an address as IPv6; IPv4 as ::ffff:A.B.C.D.
using Address = std::array<uint8_t, 16>;
constexpr int kV4Prefix = 96;  // bits

struct Parsed {
  Address bytes{};
  bool v4 = false;
};

std::optional<Parsed> ParseAddress(const std::string& text) {
  Parsed parsed;
  if (::inet_pton(AF_INET6, text.c_str(), parsed.bytes.data()) == 1) {
    const auto mapped = [&](size_t i) { return parsed.bytes[i] == (i < 10 ? 0 : 0xff); };
    parsed.v4 = true;
    for (size_t i = 0; i < 12; ++i) parsed.v4 = parsed.v4 && mapped(i);
    return parsed;
  }
  if (::inet_pton(AF_INET, text.c_str(), parsed.bytes.data() + 12) != 1) return std::nullopt;
  parsed.bytes[10] = parsed.bytes[11] = 0xff;
  parsed.v4 = true;
  return parsed;
}

bool IsLoopback(const Parsed& address) {
  constexpr uint8_t kV4Loopback = 127;
  if (address.v4) return address.bytes[12] == kV4Loopback;
  Address one{};
  one[15] = 1;
  return address.bytes == one;
}

bool SharePrefix(const Address& a, const Address& b, int bits) {
  for (int bit = 0; bit < bits; ++bit) {
    const auto at = static_cast<size_t>(bit / 8);
    const int mask = 0x80 >> (bit % 8);
    if (((a[at] ^ b[at]) & mask) != 0) return false;
  }
  return true;
}

bool ToNumber(std::string_view text, int most, int* number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && rest == text.data() + text.size() && *number >= 0 &&
         *number <= most;
}

// Whether "10.0.0.0/8" contains the address. Nothing if the entry is no network.
std::optional<bool> NetworkHolds(const std::string& entry, const std::optional<Parsed>& address) {
  const size_t slash = entry.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto network = ParseAddress(entry.substr(0, slash));
  int bits = 0;
  if (!network ||
      !ToNumber(std::string_view(entry).substr(slash + 1), network->v4 ? 32 : 128, &bits))
    return std::nullopt;
  if (!address || address->v4 != network->v4) return false;
  return SharePrefix(network->bytes, address->bytes, bits + (network->v4 ? kV4Prefix : 0));
}

// Removes ":PORT" from an entry. False if it has a different port.
bool TakePort(uint16_t port, std::string* entry) {
  const bool bracketed = entry->starts_with('[');
  const size_t close = entry->find(']');
  const size_t colon = entry->rfind(':');
  // The port of an IPv6 address is only what follows its brackets.
  const bool has =
      colon != std::string::npos && (bracketed ? colon == close + 1 : entry->find(':') == colon);
  int own = port;
  if (has && !ToNumber(std::string_view(*entry).substr(colon + 1), UINT16_MAX, &own)) return false;
  if (has) entry->resize(colon);
  if (bracketed && entry->ends_with(']')) *entry = entry->substr(1, entry->size() - 2);
  return own == port;
}

bool Matches(std::string entry, const std::string& host, const std::optional<Parsed>& address,
             uint16_t port) {
  if (const auto in_network = NetworkHolds(entry, address); in_network) return *in_network;
  if (!TakePort(port, &entry) || entry.empty()) return false;
  if (const auto named = ParseAddress(entry); named)
    return address && address->bytes == named->bytes;
  if (entry.starts_with("*.")) entry.erase(0, 1);
  if (entry[0] == '.') return host.size() > entry.size() && host.ends_with(entry);
  return host == entry || host.ends_with("." + entry);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

bool IsExcludedFromProxy(const std::string& host, uint16_t port, std::string_view no_proxy) {
  const std::string name = Lower(host);
  const auto address = ParseAddress(name);
  if (name == "localhost" || (address && IsLoopback(*address))) return true;
  while (!no_proxy.empty()) {
    const size_t end = std::min(no_proxy.find(','), no_proxy.size());
    const std::string entry = Lower(Trim(no_proxy.substr(0, end)));
    no_proxy.remove_prefix(std::min(end + 1, no_proxy.size()));
    if (entry == "*" || (!entry.empty() && Matches(entry, name, address, port))) return true;
  }
  return false;
}

std::string ProxyFromEnvironment(const std::string& url,
                                 const std::function<std::string(const char*)>& get) {
  const auto parsed = ParseUrl(url);
  if (!parsed.ok()) return "";
  const auto first = [&get](const char* upper, const char* lower) {
    const std::string value = get(upper);
    return value.empty() ? get(lower) : value;
  };
  if (IsExcludedFromProxy(parsed->host, parsed->port, first("NO_PROXY", "no_proxy"))) return "";
  // HTTP_PROXY in upper case could be a header of a CGI request; Go takes it outside of CGI.
  return parsed->tls ? first("HTTPS_PROXY", "https_proxy") : first("HTTP_PROXY", "http_proxy");
}

std::string ProxyFromEnvironment(const std::string& url) {
  return ProxyFromEnvironment(url, [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  });
}

}  // namespace shoal::net
