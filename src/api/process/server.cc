#include "api/process/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <thread>
#include <utility>

#include "api/process/active_server.h"
#include "api/process/shared_state.h"
#include "api/process/standby.h"
#include "api/process/state_lock.h"
#include "api/queues/queues_file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/open_file_limit.h"
#include "base/private_files.h"
#include "controller/files/state_home.h"
#include "controller/store/leader.h"
#include "controller/store/open_store.h"
#include "controller/store/process_identity.h"
#include "net/address.h"

namespace shoal::api {
namespace {

// The port is free again when the other HTTP server has closed its socket.
constexpr int kListenTries = 50;
constexpr Duration kListenPause = std::chrono::milliseconds(20);

// A server of root starts tasks as other users, as its store says: no other user may have that
// store.
Status CheckRootsDirectory(const std::filesystem::path& state) {
  struct stat info {};
  if (::geteuid() != 0) return Status::Ok();
  if (::stat(state.c_str(), &info) != 0) return ErrnoStatus(errno, state.string());
  if (info.st_uid == 0) return Status::Ok();
  return PermissionDenied(
      state.string() + " belongs to user " + std::to_string(info.st_uid) +
      ", who could replace the records of a server that runs as root; give it to root "
      "(`chown root " +
      state.string() + "`), or run the server as that user");
}

Status CheckOptions(const ServerOptions& options) {
  if (!options.tls.enabled() && !net::IsLoopback(options.address))
    return InvalidArgument(
        "without TLS the server listens on the loopback only, since tokens and data would cross "
        "the network in the clear; got the address " +
        options.address + ", so add --tls-self-signed, or --tls-cert and --tls-key");
  return Status::Ok();
}

// The address that this server tells others. One that listens on all interfaces is reached by name.
std::string PublicUrl(const ServerOptions& options, const net::HttpServer& http) {
  if (!options.public_url.empty()) return options.public_url;
  if (options.address != "0.0.0.0" && options.address != "::") return http.url();
  char name[256] = {};
  (void)::gethostname(name, sizeof name - 1);
  const std::string host = options.tls.names.empty() ? name : options.tls.names.front();
  return "https://" + host + ":" + std::to_string(http.port());
}

// What Start returns. A server of a shared store has a thread that makes and removes the parts of
// its role; the lease's thread only says which role it is, and keeps renewing.
class ShoalServer final : public Server {
 public:
  explicit ShoalServer(const ServerOptions& options) : options_(options), home_(options.state) {}
  ~ShoalServer() override {
    StopRoles();
    active_.reset();
    standby_.reset();
    leader_.reset();  // gives up the lease, now that nothing acts under it
  }

  Status Begin() {
    TRY(CheckOptions(options_));
    RaiseOpenFiles();  // jobs and connections need several each; tasks get the limit from before
    TRY(MakeDirectories(options_.state, 0700));
    TRY(CheckOwnDirectory(options_.state));
    TRY(CheckRootsDirectory(options_.state));
    const bool shared = controller::IsSharedStore(options_.store);
    TRY_ASSIGN(lock_, LockState(options_.state, shared));
    TRY_ASSIGN(self_, controller::CurrentProcess());
    TRY(OpenStore());
    return shared ? BeginShared() : BeginAlone();
  }

  std::string url() const override { return url_; }
  std::string fingerprint() const override { return fingerprint_; }
  std::optional<std::string> first_token() const override {
    const MutexLock lock(mu_);
    return first_token_;
  }
  ServerRole role() const override {
    const MutexLock lock(mu_);
    return role_;
  }
  Status ReloadQueues() override {
    // The parts that lead are not made or removed meanwhile.
    const MutexLock lock(active_mu_);
    if (active_ == nullptr) return ReadQueues(options_.queues_file).status();
    std::promise<Status> reloaded;
    active_->ReloadQueues([&reloaded](const Status& status) { reloaded.set_value(status); });
    return reloaded.get_future().get();
  }
  void Shutdown(Duration limit) override {
    StopRoles();
    if (active_) active_->Shutdown(limit);
    if (standby_) standby_->Shutdown(limit);
  }

 private:
  Status OpenStore() {
    const std::string url =
        options_.store.empty() ? "sqlite:" + home_.database().string() : options_.store;
    TRY_ASSIGN(store_, controller::OpenStore(url));
    return Status::Ok();
  }

  // ---- A server that has its store for itself ----

  Status BeginAlone() {
    TRY_ASSIGN(active_, ActiveServer::Start({&options_, store_.get(), self_, {}}));
    TRY(active_->Listen(options_.port));
    SetAddress(active_->http());
    const MutexLock lock(mu_);  // requests are served already
    first_token_ = active_->first_token();
    role_ = {true, 0, url_, active_->attached().size(), ""};
    return Status::Ok();
  }

  void SetAddress(const net::HttpServer& http) {
    url_ = http.url();
    fingerprint_ = http.fingerprint();
    port_ = http.port();
    public_url_ = PublicUrl(options_, http);
  }

  // ---- One of several servers ----

  Status BeginShared() {
    TRY(CheckSharedState(&store_->records(), options_.state, options_.clock->Wall()));
    TRY(StartStandby(options_.port));
    SetAddress(*standby_);
    controller::LeaderOptions options;
    // Two servers of one host listen on different ports, those of two hosts have different scopes.
    options.holder = public_url_ + " " + controller::FormatProcessScope(self_) + " " +
                     options_.address + " " + std::to_string(port_);
    options.on_follow = [this](const controller::Lease& lease) { OnFollow(lease); };
    leader_ = std::make_unique<controller::Leader>(
        store_.get(), std::move(options), [this](const controller::Fence& fence) { OnLead(fence); },
        [this](const Status& why) { OnLost(why); });
    roles_ = std::thread([this] { RunRoles(); });
    MutexLock lock(mu_);
    changed_.wait(lock, [this]() REQUIRES(mu_) { return settled_; });
    return failure_;
  }

  Status StartStandby(uint16_t port) {
    net::HttpServerOptions http = HttpOptionsOf(options_, port);
    http.handler = StandbyHandler([this] { return role().leader; });
    Result<std::unique_ptr<net::HttpServer>> made = net::HttpServer::Start(http);
    for (int i = 0; !made.ok() && port_ != 0 && i < kListenTries; ++i) {
      std::this_thread::sleep_for(kListenPause);
      made = net::HttpServer::Start(http);
    }
    if (!made.ok()) return made.status();
    standby_ = std::move(*made);
    return Status::Ok();
  }

  void OnLead(const controller::Fence& fence) {
    const MutexLock lock(mu_);
    wanted_ = fence.epoch;
    changed_.notify_all();
  }

  // Returns when nothing acts under the lost lease any more, so that a later lease of this process
  // is not used by parts that belong to the earlier one.
  void OnLost(const Status& why) {
    MutexLock lock(mu_);
    wanted_ = 0;
    lost_ = why.message();
    role_.leader.clear();
    changed_.notify_all();
    changed_.wait(lock, [this]() REQUIRES(mu_) { return present_ == 0 || stop_; });
  }

  void OnFollow(const controller::Lease& lease) {
    const MutexLock lock(mu_);
    const std::string leader = lease.holder.substr(0, lease.holder.find(' '));
    const bool news = role_.leader != leader && !role_.leads;
    if (news) role_.leader = leader;
    const bool first = !std::exchange(settled_, true);
    changed_.notify_all();
    if (news && !first && options_.on_change) options_.on_change(role_);
  }

  void StopRoles() {
    {
      const MutexLock lock(mu_);
      stop_ = true;
    }
    changed_.notify_all();
    if (roles_.joinable()) roles_.join();
  }

  void RunRoles() {
    MutexLock lock(mu_);
    while (true) {
      changed_.wait(lock, [this]() REQUIRES(mu_) { return stop_ || wanted_ != present_; });
      if (stop_) return;
      const int64_t wanted = wanted_;
      const bool leads = present_ != 0;
      lock.unlock();
      const Status done = leads ? StepDown() : Lead(wanted);
      lock.lock();
      const bool lost = wanted_ != wanted;  // so a failure says nothing
      if (!done.ok() && !lost) return Fail(done);
    }
  }

  // This server ends without a role.
  void Fail(const Status& why) REQUIRES(mu_) {
    failure_ = why;
    stop_ = true;
    const bool first = !std::exchange(settled_, true);
    changed_.notify_all();
    if (!first && options_.on_failed) options_.on_failed(why);
  }

  Status Lead(int64_t epoch) {
    SetPresent(epoch);
    const controller::Lead lead{epoch, [this] { return leader_->leading(); }};
    auto made = ActiveServer::Start({&options_, store_.get(), self_, lead});
    if (!made.ok()) {
      SetRole({}, std::nullopt);
      return made.status().With("this server cannot lead");
    }
    {
      const MutexLock lock(active_mu_);
      active_ = std::move(*made);
    }
    standby_.reset();
    Status listens = active_->Listen(port_);
    for (int i = 0; !listens.ok() && i < kListenTries; ++i) {
      std::this_thread::sleep_for(kListenPause);
      listens = active_->Listen(port_);
    }
    TRY(listens);
    SetRole({true, epoch, public_url_, active_->attached().size(), ""}, active_->first_token());
    return Status::Ok();
  }

  Status StepDown() {
    LogWarning("this server does not lead any more: {}", lost());
    {
      const MutexLock lock(active_mu_);
      active_.reset();
    }
    TRY(StartStandby(port_));
    ServerRole role;
    role.why = lost();
    SetRole(role, std::nullopt);
    return Status::Ok();
  }

  void SetPresent(int64_t epoch) {
    const MutexLock lock(mu_);
    present_ = epoch;
  }

  std::string lost() const {
    const MutexLock lock(mu_);
    return lost_;
  }

  // The parts of the role exist, or are gone.
  void SetRole(const ServerRole& role, const std::optional<std::string>& token) {
    const MutexLock lock(mu_);
    const std::string leader = role.leads ? role.leader : role_.leader;
    role_ = role;
    role_.leader = leader;
    if (token) first_token_ = token;
    if (!role.leads) present_ = 0;
    const bool first = role.leads && !std::exchange(settled_, true);
    changed_.notify_all();
    if (!first && settled_ && options_.on_change) options_.on_change(role_);
  }

  const ServerOptions options_;
  const controller::StateHome home_;
  UniqueFd lock_;
  controller::ProcessIdentity self_;
  std::unique_ptr<controller::Store> store_;
  // Constant after Begin.
  std::string url_;
  std::string public_url_;
  std::string fingerprint_;
  uint16_t port_ = 0;
  // Of Begin, then of the thread of roles until it has ended.
  std::unique_ptr<net::HttpServer> standby_;
  std::unique_ptr<ActiveServer> active_;
  Mutex active_mu_;  // held while `active_` changes, and while another thread uses it
  std::unique_ptr<controller::Leader> leader_;
  mutable Mutex mu_;
  CondVar changed_;
  int64_t wanted_ GUARDED_BY(mu_) = 0;    // the epoch under which this server should lead; 0: none
  int64_t present_ GUARDED_BY(mu_) = 0;   // the one whose parts exist or are being made
  bool settled_ GUARDED_BY(mu_) = false;  // the first role is known
  bool stop_ GUARDED_BY(mu_) = false;
  std::string lost_ GUARDED_BY(mu_);
  Status failure_ GUARDED_BY(mu_);
  std::optional<std::string> first_token_ GUARDED_BY(mu_);
  ServerRole role_ GUARDED_BY(mu_);
  std::thread roles_;  // last
};

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  auto server = std::make_unique<ShoalServer>(options);
  TRY(server->Begin());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace shoal::api
