#include "net/srv_record.h"

#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netinet/in.h>
#include <resolv.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "net/address.h"

namespace shoal::net {
namespace {

constexpr size_t kMostRecords = 1000;
constexpr size_t kMostReply = 65'535;

// Goes through a message and never beyond its end.
class Reader {
 public:
  explicit Reader(std::string_view bytes)
      : begin_(reinterpret_cast<const unsigned char*>(bytes.data())),
        end_(begin_ + bytes.size()),
        at_(begin_) {}

  std::optional<uint16_t> Short() {
    if (end_ - at_ < 2) return std::nullopt;
    const auto value = static_cast<uint16_t>(at_[0] << 8 | at_[1]);
    at_ += 2;
    return value;
  }
  bool Skip(size_t bytes) {
    if (static_cast<size_t>(end_ - at_) < bytes) return false;
    at_ += bytes;
    return true;
  }
  std::optional<std::string> Name() {
    char name[NS_MAXDNAME];
    if (at_ >= end_) return std::nullopt;
    const int used = ::dn_expand(begin_, end_, at_, name, sizeof name);
    if (used < 0) return std::nullopt;
    at_ += used;
    return std::string(name);
  }
  // The rest of it, from here on so many bytes; nothing if there are not as many.
  std::optional<std::string_view> Bytes(size_t count) const {
    if (static_cast<size_t>(end_ - at_) < count) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(at_), count);
  }

 private:
  const unsigned char* const begin_;
  const unsigned char* const end_;
  const unsigned char* at_;
};

struct Found {
  std::vector<Service> services;
  std::map<std::string, std::string> addresses;  // of names
};

std::string AddressOf(uint16_t type, std::string_view data) {
  char text[INET6_ADDRSTRLEN] = {};
  const bool four = type == ns_t_a && data.size() == sizeof(in_addr);
  const bool six = type == ns_t_aaaa && data.size() == sizeof(in6_addr);
  if (!four && !six) return "";
  const char* const made = ::inet_ntop(four ? AF_INET : AF_INET6, data.data(), text, sizeof text);
  return made == nullptr ? "" : made;
}

// False if the message ends within it.
bool TakeRecord(Reader* reader, Found* found) {
  constexpr size_t kTimeToLive = 4;
  const auto name = reader->Name();
  const auto type = reader->Short();
  const auto kind = reader->Short();
  if (!name || !type || !kind || !reader->Skip(kTimeToLive)) return false;
  const auto size = reader->Short();
  if (!size) return false;
  const auto data = reader->Bytes(*size);
  if (!data) return false;
  Reader inside = *reader;  // names in it may point to what stands before it
  if (!reader->Skip(*size)) return false;
  if (*kind != ns_c_in) return true;
  if (const std::string address = AddressOf(*type, *data); !address.empty())
    found->addresses.emplace(*name, address);
  if (*type != ns_t_srv) return true;
  const auto priority = inside.Short();
  const auto weight = inside.Short();
  const auto port = inside.Short();
  const auto target = inside.Name();
  if (!priority || !weight || !port || !target) return false;
  const bool none = target->empty() || *target == ".";  // "decidedly not available"
  if (!none && *port != 0) found->services.push_back({*target, "", *port, *priority, *weight});
  return true;
}

Status Broken() { return DataLoss("a name server's reply ends too early or is none"); }

}  // namespace

Result<std::vector<Service>> ParseSrvReply(std::string_view reply) {
  constexpr uint16_t kIsReply = 0x8000;
  constexpr uint16_t kCode = 0x000f;
  if (reply.size() > kMostReply) return Broken();
  Reader reader(reply);
  const auto id = reader.Short();
  const auto flags = reader.Short();
  const auto questions = reader.Short();
  const auto answers = reader.Short();
  const auto authorities = reader.Short();
  const auto additional = reader.Short();
  if (!id || !flags || !questions || !answers || !authorities || !additional) return Broken();
  if ((*flags & kIsReply) == 0) return Broken();
  const int code = *flags & kCode;
  if (code == ns_r_nxdomain) return NotFound("there is no such name");
  if (code != ns_r_noerror)
    return Unavailable("the name server cannot answer (code " + std::to_string(code) + ")");
  for (int i = 0; i < *questions; ++i) {
    if (!reader.Name() || !reader.Skip(4)) return Broken();
  }
  const size_t records = size_t{*answers} + *authorities + *additional;
  if (records > kMostRecords) return Broken();
  Found found;
  for (size_t i = 0; i < records; ++i) {
    if (!TakeRecord(&reader, &found)) return Broken();
  }
  if (found.services.empty()) return NotFound("the name has no SRV record");
  for (Service& service : found.services) {
    const auto address = found.addresses.find(service.target);
    if (address != found.addresses.end()) service.address = address->second;
  }
  std::stable_sort(
      found.services.begin(), found.services.end(), [](const Service& a, const Service& b) {
        return a.priority != b.priority ? a.priority < b.priority : a.weight > b.weight;
      });
  return std::move(found.services);
}

Result<std::vector<Service>> LookUpSrv(const std::string& name, const std::string& server,
                                       std::chrono::seconds patience) {
  struct Resolver {
    struct __res_state state {};
    ~Resolver() { ::res_nclose(&state); }
  } resolver;
  if (::res_ninit(&resolver.state) != 0) return Unavailable("there is no resolver");
  resolver.state.retrans = static_cast<int>(patience.count());
  resolver.state.retry = 1;
  if (server != kSystemResolver) {
    TRY_ASSIGN(const HostPort at, ParseHostPort(server));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(at.port);
    if (::inet_pton(AF_INET, at.host.c_str(), &address.sin_addr) != 1)
      return InvalidArgument("a name server: got \"" + server +
                             "\", expected a numeric address of IPv4 and a port: 10.0.0.1:53");
    resolver.state.nscount = 1;
    resolver.state.nsaddr_list[0] = address;
  }
  std::vector<unsigned char> question(NS_PACKETSZ + NS_MAXDNAME);
  const int asked =
      ::res_nmkquery(&resolver.state, ns_o_query, name.c_str(), ns_c_in, ns_t_srv, nullptr, 0,
                     nullptr, question.data(), static_cast<int>(question.size()));
  if (asked < 0) return InvalidArgument("\"" + name + "\" is no name that can be asked for");
  std::vector<unsigned char> reply(kMostReply);
  const int got = ::res_nsend(&resolver.state, question.data(), asked, reply.data(),
                              static_cast<int>(reply.size()));
  if (got <= 0) return Unavailable("no name server answers");
  const auto size = std::min(static_cast<size_t>(got), reply.size());
  auto services = ParseSrvReply({reinterpret_cast<const char*>(reply.data()), size});
  if (!services.ok()) return services.status().With(name);
  return services;
}

}  // namespace shoal::net
