// Servers and clients of one job within a test, over every transport.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "ps/client/admin.h"
#include "ps/client/client.h"
#include "ps/server/server.h"
#include "ps/transport/ucx_pipe.h"

namespace shoal::ps {

// A membership that the test sets.
class FixedMembers final : public Members {
 public:
  MemberView Current() override {
    std::lock_guard lock(mu_);
    return view_;
  }
  void Set(size_t server, const std::string& address) {
    std::lock_guard lock(mu_);
    if (view_.servers.size() <= server) view_.servers.resize(server + 1);
    view_.servers[server] = address;
    ++view_.generation;
  }
  void SetReplicas(int copies) {
    std::lock_guard lock(mu_);
    view_.replicas = copies;
  }
  void Shrink(size_t servers) {
    std::lock_guard lock(mu_);
    view_.servers.resize(servers);
    ++view_.generation;
  }

 private:
  std::mutex mu_;
  MemberView view_;
};

// Over UCX: TCP, or shared memory, of its own.
enum class TransportKind { kInProcess, kTcp, kShared, kUcxTcp, kUcxShared };

inline bool IsUcx(TransportKind transport) {
  return transport == TransportKind::kUcxTcp || transport == TransportKind::kUcxShared;
}

inline std::string NameOfTransport(TransportKind transport) {
  return transport == TransportKind::kTcp         ? "Tcp"
         : transport == TransportKind::kShared    ? "Shared"
         : transport == TransportKind::kUcxTcp    ? "UcxTcp"
         : transport == TransportKind::kUcxShared ? "UcxShared"
                                                  : "InProcess";
}

// UCX asks the environment which ways it may take, for every connection anew.
inline void SelectUcxTransport(TransportKind transport) {
  if (IsUcx(transport))
    ::setenv("UCX_TLS", transport == TransportKind::kUcxTcp ? "tcp,self" : "posix,self", 1);
}

struct ClusterOptions {
  TransportKind transport = TransportKind::kTcp;
  int servers = 2;
  int workers = 3;
  int threads = 1;
  bool checkpoints = false;
  Duration grace = std::chrono::seconds(10);
  Duration reconnect = std::chrono::seconds(20);
  size_t window = 8u << 20;
  const Clock* clock = RealClock::Get();
  std::shared_ptr<const Functions> functions = nullptr;
  int replicas = 1;
  Duration balance{0};
};

class Cluster {
 public:
  explicit Cluster(ClusterOptions options)
      : options_(options), hub_(std::make_shared<InProcessHub>()) {
    auto dir = TempDir::Create();
    EXPECT_TRUE(dir.ok());
    dir_ = std::make_unique<TempDir>(std::move(dir).value());
    SelectUcxTransport(options.transport);
    servers_.resize(static_cast<size_t>(options.servers));
    incarnations_.resize(static_cast<size_t>(options.servers));
    members.SetReplicas(options.replicas);
    for (int i = 0; i < options.servers; ++i) StartServer(i);
  }

  ServerOptions OptionsOf(int index) const {
    ServerOptions options;
    options.index = index;
    options.servers = options_.servers;
    options.workers = options_.workers;
    options.token = kToken;
    options.threads = options_.threads;
    options.client_grace = options_.grace;
    options.clock = options_.clock;
    options.shards = 64;
    options.replicas = options_.replicas;
    options.balance_every = options_.balance;
    options.members = members_;
    options.incarnation = incarnations_[static_cast<size_t>(index)];
    options.functions = options_.functions;
    options.handshake_timeout = std::chrono::milliseconds(300);
    options.shared_memory = options_.transport == TransportKind::kShared;
    options.ucx = IsUcx(options_.transport);
    if (options_.transport == TransportKind::kInProcess) {
      options.listen_host = "";
      options.hub = hub_;
      options.inproc_name = "server-" + std::to_string(index);
    }
    if (options_.checkpoints) options.checkpoint_dir = checkpoint_dir();
    if (index == 0 && began_with_ > 0) {
      options.initial_servers = began_with_;
      options.takeover_epoch = static_cast<uint32_t>(options.incarnation) << 12;
    }
    return options;
  }
  void StartServer(int index) {
    ++incarnations_[static_cast<size_t>(index)];
    auto server = Server::Start(OptionsOf(index));
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    auto& slot = servers_[static_cast<size_t>(index)];
    slot = std::move(server).value();
    members.Set(static_cast<size_t>(index), slot->address());
  }
  // One more, after all others.
  void AddServer() {
    options_.servers = static_cast<int>(servers_.size()) + 1;
    servers_.resize(static_cast<size_t>(options_.servers));
    incarnations_.resize(std::max(incarnations_.size(), servers_.size()));
    StartServer(options_.servers - 1);
  }
  // The last one, which has left; as the coordinator does it: named until it has ended.
  void RemoveServer(int index) {
    EXPECT_EQ(static_cast<size_t>(index) + 1, servers_.size());
    members.Shrink(static_cast<size_t>(index));
    servers_.pop_back();
    --options_.servers;
  }
  // One that has left, and may come back.
  void ReleaseServer(int index) {
    members.Set(static_cast<size_t>(index), "");
    servers_[static_cast<size_t>(index)].reset();
  }
  // Of servers that are started from now on.
  void SetThreads(int threads) { options_.threads = threads; }
  // The leader is started again as the only server of a job that began with so many.
  void SetLeftAlone(int began_with) { began_with_ = began_with; }
  void KillServer(int index) { servers_[static_cast<size_t>(index)].reset(); }
  void Resize(int servers) {
    for (auto& server : servers_) server.reset();
    options_.servers = servers;
    incarnations_.resize(static_cast<size_t>(servers));
    servers_.clear();
    servers_.resize(static_cast<size_t>(servers));
  }

  ClientOptions ClientOptionsOf(int index, Consistency consistency = {}) const {
    ClientOptions options;
    options.index = index;
    options.token = kToken;
    options.consistency = consistency;
    options.hub = hub_;
    options.connect_timeout = std::chrono::seconds(20);
    options.reconnect_timeout = options_.reconnect;
    options.window_bytes = options_.window;
    options.ucx = IsUcx(options_.transport);
    return options;
  }
  std::unique_ptr<Client> Connect(int index, Consistency consistency = {}) {
    auto client = Client::Connect(ClientOptionsOf(index, consistency), &members);
    EXPECT_TRUE(client.ok()) << client.status().ToString();
    return client.ok() ? std::move(client).value() : nullptr;
  }
  std::unique_ptr<Admin> ConnectAdmin() {
    auto admin = Admin::Connect(ClientOptionsOf(0), &members);
    EXPECT_TRUE(admin.ok()) << admin.status().ToString();
    return admin.ok() ? std::move(admin).value() : nullptr;
  }

  Server& server(int index) { return *servers_[static_cast<size_t>(index)]; }
  std::filesystem::path checkpoint_dir() const { return dir_->path() / "checkpoints"; }
  static constexpr const char* kToken = "0123456789abcdef";

  FixedMembers members;

 private:
  FixedMembers* const members_ = &members;
  std::vector<int64_t> incarnations_;
  ClusterOptions options_;
  int began_with_ = 0;
  std::shared_ptr<InProcessHub> hub_;
  std::unique_ptr<TempDir> dir_;
  std::vector<std::unique_ptr<Server>> servers_;
};

inline TableSpec DenseSpec(const std::string& name, uint64_t rows, uint32_t dim) {
  TableSpec spec;
  spec.name = name;
  spec.rows = rows;
  spec.dim = dim;
  return spec;
}

inline TableSpec SparseSpec(const std::string& name, uint32_t dim) {
  TableSpec spec;
  spec.name = name;
  spec.key_space = KeySpace::kSparse;
  spec.dim = dim;
  return spec;
}

// Asks again and again, until the deadline, whether something that others bring about is so.
template <typename Condition>
bool Eventually(const Condition& condition, Duration limit = std::chrono::seconds(20)) {
  const TimePoint deadline = RealClock::Get()->Now() + limit;
  while (!condition()) {
    if (RealClock::Get()->Now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Every server's rows are served once and kept once elsewhere, and both sides know it.
inline bool AllReplicated(Cluster* cluster, int servers) {
  return Eventually([&] {
    std::vector<int> served, kept;
    for (int i = 0; i < servers; ++i) {
      const auto here = cluster->server(i).primary_of(), there = cluster->server(i).backup_of();
      if (!here.empty() && !cluster->server(i).fully_replicated()) return false;
      served.insert(served.end(), here.begin(), here.end());
      kept.insert(kept.end(), there.begin(), there.end());
    }
    const auto whole = static_cast<size_t>(servers);
    return served.size() == whole && kept.size() == whole;
  });
}

}  // namespace shoal::ps

#define ASSERT_OK(expression)                                      \
  do {                                                             \
    const auto& ok_result = (expression);                          \
    ASSERT_TRUE(ok_result.ok()) << ::shoal::ps::TextOf(ok_result); \
  } while (false)

namespace shoal::ps {
inline std::string TextOf(const Status& status) { return status.ToString(); }
template <typename T>
std::string TextOf(const Result<T>& result) {
  return result.status().ToString();
}
}  // namespace shoal::ps
