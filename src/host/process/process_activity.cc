// Socket diagnostics (sock_diag(7)) and /proc. See process_activity.h.
#include "host/process/process_activity.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_set>

#include "base/file.h"
#include "host/process/process_usage.h"

namespace shoal::host {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using Directory = std::unique_ptr<DIR, CloseDir>;

std::string ProcPath(pid_t pid, const std::string& file) {
  return "/proc/" + std::to_string(pid) + "/" + file;
}

// ---- Connections --------------------------------------------------------------------------------

// The kernel's numbers (net/tcp_states.h).
constexpr int kTimeWait = 6;
constexpr int kListen = 10;
constexpr std::string_view kStates[] = {
    "?",      "established", "syn-sent", "syn-received", "fin-wait-1", "fin-wait-2",  "time-wait",
    "closed", "close-wait",  "last-ack", "listen",       "closing",    "syn-received"};

void AddSocketInodes(pid_t pid, std::unordered_set<uint64_t>* inodes) {
  constexpr std::string_view kPrefix = "socket:[";
  const Directory fds(::opendir(ProcPath(pid, "fd").c_str()));
  if (!fds) return;
  while (dirent* entry = ::readdir(fds.get())) {
    char target[64];
    const ssize_t size = ::readlinkat(::dirfd(fds.get()), entry->d_name, target, sizeof target);
    std::string_view text(target, static_cast<size_t>(std::max<ssize_t>(size, 0)));
    if (!text.starts_with(kPrefix)) continue;
    text.remove_prefix(kPrefix.size());
    uint64_t inode = 0;
    std::from_chars(text.data(), text.data() + text.size(), inode);
    if (inode != 0) inodes->insert(inode);
  }
}

std::string Address(int family, const __be32* address, __be16 port) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(family, address, text, sizeof text);
  const std::string number = std::to_string(ntohs(port));
  return family == AF_INET6 ? "[" + std::string(text) + "]:" + number
                            : std::string(text) + ":" + number;
}

// Received and acknowledged bytes, from the attributes after a message.
int64_t MovedBytes(const nlmsghdr* header, const inet_diag_msg* message) {
  auto left = static_cast<int>(header->nlmsg_len - NLMSG_LENGTH(sizeof *message));
  for (const auto* one = reinterpret_cast<const rtattr*>(message + 1); RTA_OK(one, left);
       one = RTA_NEXT(one, left)) {
    constexpr size_t kNeeded = offsetof(tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
    if (one->rta_type != INET_DIAG_INFO || RTA_PAYLOAD(one) < kNeeded) continue;
    tcp_info info{};
    std::memcpy(&info, RTA_DATA(one), std::min<size_t>(sizeof info, RTA_PAYLOAD(one)));
    return static_cast<int64_t>(info.tcpi_bytes_acked + info.tcpi_bytes_received);
  }
  return 0;
}

Status AskForDump(int socket, int family) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } message{};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.request.sdiag_family = static_cast<uint8_t>(family);
  message.request.sdiag_protocol = IPPROTO_TCP;
  message.request.idiag_ext = 1 << (INET_DIAG_INFO - 1);
  message.request.idiag_states = ~((1U << kTimeWait) | (1U << kListen));
  if (::send(socket, &message, sizeof message, 0) < 0) {
    return Unavailable(std::string("the kernel gives no socket diagnostics: ") +
                       std::strerror(errno));
  }
  return Status::Ok();
}

void Take(const nlmsghdr* header, const std::unordered_set<uint64_t>& wanted,
          std::vector<TcpConnection>* found) {
  const auto* message = static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
  if (!wanted.contains(message->idiag_inode)) return;
  TcpConnection connection;
  connection.inode = message->idiag_inode;
  const int family = message->idiag_family;
  connection.local = Address(family, message->id.idiag_src, message->id.idiag_sport);
  connection.peer = Address(family, message->id.idiag_dst, message->id.idiag_dport);
  connection.state = kStates[message->idiag_state < std::size(kStates) ? message->idiag_state : 0];
  connection.unread = message->idiag_rqueue;
  connection.unsent = message->idiag_wqueue;
  connection.moved = MovedBytes(header, message);
  found->push_back(std::move(connection));
}

// The requested connections of one address family.
Status Dump(int family, const std::unordered_set<uint64_t>& wanted,
            std::vector<TcpConnection>* found) {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!socket.valid()) {
    return Unavailable(std::string("the kernel gives no socket diagnostics: ") +
                       std::strerror(errno));
  }
  TRY(AskForDump(socket.get(), family));
  alignas(nlmsghdr) char bytes[32 << 10];
  for (;;) {
    const ssize_t got = ::recv(socket.get(), bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Unavailable("socket diagnostics ended early");
    auto left = static_cast<unsigned>(got);
    for (const auto* header = reinterpret_cast<const nlmsghdr*>(bytes); NLMSG_OK(header, left);
         header = NLMSG_NEXT(header, left)) {
      if (header->nlmsg_type == NLMSG_DONE) return Status::Ok();
      if (header->nlmsg_type == NLMSG_ERROR) {
        return Unavailable("the kernel refuses socket diagnostics");
      }
      if (header->nlmsg_len >= NLMSG_LENGTH(sizeof(inet_diag_msg))) Take(header, wanted, found);
    }
  }
}

// ---- Processes ----------------------------------------------------------------------------------

std::string FirstLine(const std::string& path) {
  std::string text = ReadFile(path, 256).value_or("");
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The kernel function in which a thread sleeps. `state` as in its stat.
std::string PlaceOf(const std::string& directory) {
  const std::string channel = FirstLine(directory + "/wchan");
  if (!channel.empty() && channel != "0") return channel;
  const std::string stat = ReadFile(directory + "/stat", 1024).value_or("");
  const size_t close = stat.rfind(')');
  const char state = close != std::string::npos && close + 2 < stat.size() ? stat[close + 2] : '?';
  return state == 'R' ? "running" : state == 'T' || state == 't' ? "stopped" : "?";
}

void TraceThreads(ProcessTrace* trace) {
  const std::string tasks = ProcPath(trace->pid, "task");
  const Directory directory(::opendir(tasks.c_str()));
  if (!directory) return;
  std::map<std::string, int> places;
  while (dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] == '.') continue;
    if (++trace->threads > kTracedThreads) continue;
    ++places[PlaceOf(tasks + "/" + entry->d_name)];
  }
  for (const auto& [where, threads] : places) trace->waits.push_back({where, threads});
  std::stable_sort(trace->waits.begin(), trace->waits.end(),
                   [](const ThreadWait& a, const ThreadWait& b) { return a.threads > b.threads; });
}

}  // namespace

Result<std::vector<TcpConnection>> TcpConnectionsOf(const std::vector<pid_t>& pids) {
  std::unordered_set<uint64_t> inodes;
  for (const pid_t pid : pids) AddSocketInodes(pid, &inodes);
  std::vector<TcpConnection> found;
  if (inodes.empty()) return found;
  TRY(Dump(AF_INET, inodes, &found));
  TRY(Dump(AF_INET6, inodes, &found));
  return found;
}

Result<int64_t> NetworkMeter::Sample(const std::vector<pid_t>& pids) {
  TRY_ASSIGN(const std::vector<TcpConnection> connections, TcpConnectionsOf(pids));
  std::unordered_map<uint64_t, int64_t> now;
  for (const TcpConnection& one : connections) {
    now[one.inode] = one.moved;
    const auto before = known_.find(one.inode);
    const int64_t from = before == known_.end() ? 0 : before->second;
    // The inode number may have been reused by another connection.
    if (began_) total_ += one.moved >= from ? one.moved - from : one.moved;
  }
  known_ = std::move(now);
  began_ = true;
  return total_;
}

std::vector<ProcessTrace> TraceProcesses(const std::vector<pid_t>& pids) {
  std::vector<ProcessTrace> traces;
  for (const pid_t pid : pids) {
    const auto stat = ReadProcessStat(pid);
    if (!stat.ok()) continue;
    ProcessTrace trace;
    trace.pid = pid;
    trace.name = FirstLine(ProcPath(pid, "comm"));
    trace.state = stat->state;
    trace.cpu_seconds = stat->cpu_seconds;
    TraceThreads(&trace);
    traces.push_back(std::move(trace));
  }
  return traces;
}

}  // namespace shoal::host
