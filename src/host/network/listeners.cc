// Finds the listeners of a port: socket inodes from /proc/net/tcp and tcp6, owners from the
// descriptors in /proc/<pid>/fd. See port_lease.h.
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "host/network/port_lease.h"
#include "host/process/process_usage.h"

namespace shoal::host {
namespace {

struct ListeningSocket {
  uint64_t inode = 0;
  uid_t uid = 0;
  uint16_t port = 0;
  std::string address;
};

// "0100007F" or 32 digits: words of four bytes in host order, as the kernel prints them.
std::string AddressOf(std::string_view hex) {
  if (hex.size() != 8 && hex.size() != 32) return std::string(hex);
  uint32_t words[4] = {};
  for (size_t i = 0; i < hex.size() / 8; ++i)
    std::from_chars(hex.data() + i * 8, hex.data() + i * 8 + 8, words[i], 16);
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(hex.size() == 8 ? AF_INET : AF_INET6, words, text, sizeof text);
  return text;
}

enum class Which : uint8_t { kListening, kAll };

// Listeners come first in these files, so reading ends at the first socket in another state.
void ReadSockets(const char* path, Which which, std::vector<ListeningSocket>* found) {
  constexpr std::string_view kListen = "0A";
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);  // heading
  while (std::getline(file, line)) {
    // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
    std::istringstream fields(line);
    std::string skip;
    std::string local;
    std::string state;
    ListeningSocket socket;
    fields >> skip >> local >> skip >> state >> skip >> skip >> skip >> socket.uid >> skip >>
        socket.inode;
    if (which == Which::kListening && state != kListen) break;
    const size_t colon = local.find(':');
    if (colon == std::string::npos) continue;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), socket.port, 16);
    socket.address = local.substr(0, colon);
    found->push_back(std::move(socket));
  }
}

std::vector<ListeningSocket> Sockets(Which which) {
  std::vector<ListeningSocket> sockets;
  ReadSockets("/proc/net/tcp", which, &sockets);
  ReadSockets("/proc/net/tcp6", which, &sockets);
  return sockets;
}

// Whether a bind with this option alone fails because of another socket. Each option permits
// sharing only with sockets that have it too, and a lease has both.
bool IsInTheWay(int option, uint16_t port) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  for (const int family : {AF_INET6, AF_INET}) {
    const UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    if (!fd.valid() || ::setsockopt(fd.get(), SOL_SOCKET, option, &on, sizeof on) != 0) continue;
    const bool v6 = family == AF_INET6;
    const auto* address =
        v6 ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
    if (::bind(fd.get(), address, v6 ? sizeof six : sizeof four) == 0) return false;
    if (errno == EADDRINUSE) return true;
  }
  return false;
}

bool IsUserOf(uid_t uid, const std::vector<pid_t>& tree) {
  return uid == ::geteuid() || std::any_of(tree.begin(), tree.end(), [uid](pid_t pid) {
           struct stat info {};
           return ::stat(("/proc/" + std::to_string(pid)).c_str(), &info) == 0 &&
                  info.st_uid == uid;
         });
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

// Whether a descriptor of the process is the socket. A process of another user gives nothing.
bool Holds(pid_t pid, uint64_t inode) {
  const std::string directory = "/proc/" + std::to_string(pid) + "/fd";
  const std::string wanted = "socket:[" + std::to_string(inode) + "]";
  std::unique_ptr<DIR, CloseDir> fds(::opendir(directory.c_str()));
  if (!fds) return false;
  while (dirent* entry = ::readdir(fds.get())) {
    char target[64];
    const ssize_t size = ::readlinkat(::dirfd(fds.get()), entry->d_name, target, sizeof target);
    if (size > 0 && std::string_view(target, static_cast<size_t>(size)) == wanted) return true;
  }
  return false;
}

std::string ProgramName(pid_t pid) {
  std::string name = ReadFile("/proc/" + std::to_string(pid) + "/comm", 64).value_or("");
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

pid_t OwnerOf(uint64_t inode, const std::vector<pid_t>& first) {
  for (pid_t pid : first) {
    if (Holds(pid, inode)) return pid;
  }
  for (const ProcessStat& process : ListProcesses()) {
    if (Holds(process.pid, inode)) return process.pid;
  }
  return 0;
}

}  // namespace

std::vector<Listener> FindListeners(uint16_t port, const std::vector<pid_t>& pids) {
  std::vector<Listener> listeners;
  for (const ListeningSocket& socket : Sockets(Which::kListening)) {
    if (socket.port != port) continue;
    const pid_t pid = OwnerOf(socket.inode, pids);
    listeners.push_back(
        {pid, socket.uid, AddressOf(socket.address), pid == 0 ? "" : ProgramName(pid)});
  }
  return listeners;
}

bool IsBoundWithoutListener(uint16_t port) {
  const std::vector<ListeningSocket> sockets = Sockets(Which::kAll);
  const bool seen = std::any_of(sockets.begin(), sockets.end(),
                                [port](const ListeningSocket& one) { return one.port == port; });
  return !seen && (IsInTheWay(SO_REUSEADDR, port) || IsInTheWay(SO_REUSEPORT, port));
}

std::vector<std::vector<uint64_t>> ListeningSockets(const std::vector<uint16_t>& ports) {
  std::vector<std::vector<uint64_t>> inodes(ports.size());
  for (const ListeningSocket& socket : Sockets(Which::kListening)) {
    for (size_t i = 0; i < ports.size(); ++i) {
      if (ports[i] == socket.port) inodes[i].push_back(socket.inode);
    }
  }
  for (auto& one : inodes) std::sort(one.begin(), one.end());
  return inodes;
}

// Connecting a datagram socket looks for a route only.
Status CheckLoopback() {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(9);
  if (!fd.valid() ||
      ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ||
      errno != ENETUNREACH) {
    return Status::Ok();
  }
  return Unavailable(
      "the tasks of a job cannot reach each other on this machine, as its loopback interface is "
      "down (127.0.0.1: Network is unreachable); `ip link set lo up` brings it up");
}

// /proc/self/status lists this process's number in every namespace from that of /proc inwards.
bool ProcShowsOwnNamespace() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream fields(line);
    std::string name;
    pid_t seen = 0, inside = 0;
    if (!(fields >> name) || name != "NSpid:") continue;
    return fields >> seen && !(fields >> inside);
  }
  return ReadProcessStat(::getpid()).ok();
}

PortOwner CheckPortOwner(uint16_t port, const std::vector<pid_t>& tree, Listener* stranger) {
  const std::vector<Listener> listeners = FindListeners(port, tree);
  for (const Listener& listener : listeners) {
    if (std::find(tree.begin(), tree.end(), listener.pid) != tree.end()) continue;
    if (listener.pid == 0 && IsUserOf(listener.uid, tree)) continue;
    if (!ProcShowsOwnNamespace()) return PortOwner::kTaskTree;
    if (stranger != nullptr) *stranger = listener;
    return PortOwner::kOther;
  }
  return listeners.empty() ? PortOwner::kNone : PortOwner::kTaskTree;
}

}  // namespace shoal::host
