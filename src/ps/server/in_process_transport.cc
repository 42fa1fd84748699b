// The in-process transport: a request runs in its sender's thread, under the lock of the lane, and
// rows go straight between the sender's memory and the table.
#include <fmt/format.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/id.h"
#include "base/mutex.h"
#include "ps/server/server_core.h"
#include "ps/transport/transport.h"

namespace shoal::ps {
namespace {

constexpr std::string_view kScheme = "inproc:";

// Both ends: the frames that the server queued for the client, and their delivery. At most one
// thread delivers at a time; others leave what they queued to it.
class InProcessPeer final : public ServerConnection {
 public:
  void Reply(const FrameHeader& head, std::string_view body) override {
    const MutexLock lock(mu_);
    if (!ended_) inbox_.push_back({head, std::string(body)});
  }
  void CloseAfterFlush(const Status& why) override {
    const MutexLock lock(mu_);
    if (ended_) return;
    ended_ = true;
    end_ = why;
  }
  void FlushReplies() override;

  void Start(ConnectionHandler* handler) {
    const MutexLock lock(mu_);
    handler_ = handler;
  }
  // Waits until no thread delivers, except the caller itself.
  void Close() {
    MutexLock lock(mu_);
    ended_ = true;
    handler_ = nullptr;
    inbox_.clear();
    idle_.wait(lock, [this] { return !delivering_ || deliverer_ == std::this_thread::get_id(); });
  }

 private:
  struct Item {
    FrameHeader head;
    std::string body;
  };
  Mutex mu_;
  CondVar idle_;
  ConnectionHandler* handler_ = nullptr;
  std::vector<Item> inbox_;
  std::vector<Item> taken_;  // the deliverer's; kept for its memory
  bool delivering_ = false;
  std::thread::id deliverer_;
  bool ended_ = false;
  bool told_ = false;  // OnClosed was called
  Status end_;
};

void InProcessPeer::FlushReplies() {
  MutexLock lock(mu_);
  if (delivering_ || handler_ == nullptr) return;
  delivering_ = true;
  deliverer_ = std::this_thread::get_id();
  while (handler_ != nullptr && (!inbox_.empty() || (ended_ && !told_))) {
    taken_.swap(inbox_);
    const bool last = taken_.empty();
    if (last) told_ = true;
    const Status why = end_;
    ConnectionHandler* handler = handler_;
    lock.unlock();
    for (const Item& item : taken_) handler->OnFrame(item.head, item.body);
    if (last) handler->OnClosed(why);
    taken_.clear();
    lock.lock();
  }
  delivering_ = false;
  deliverer_ = {};
  idle_.notify_all();
}

class InProcessLink final : public Connection {
 public:
  InProcessLink(std::shared_ptr<ServerCore> core, std::shared_ptr<InProcessPeer> peer,
                const Hello& hello)
      : core_(std::move(core)), peer_(std::move(peer)), hello_(hello) {}
  ~InProcessLink() override { Close(); }

  void Start(ConnectionHandler* handler) override {
    peer_->Start(handler);
    core_->OnWelcomed(hello_);
  }

  void Send(const Outgoing& out) override {
    if (core_->stopped()) {
      return peer_->CloseAfterFlush(
          Unavailable(fmt::format("server {} stopped", core_->options().index)));
    }
    Lane& lane = core_->lane(hello_.lane);
    // The caller holds its channel's lock: nothing may be delivered before FlushReplies.
    const MutexLock order(touched_mu_);
    Lane::Guard guard(lane, &touched_);
    const Status status = out.rows != nullptr ? SendRows(&lane, out)
                                              : core_->Control(hello_, peer_, out.head, out.body);
    if (!status.ok()) peer_->CloseAfterFlush(status);
  }

  void FlushReplies() override {
    std::vector<std::shared_ptr<ServerConnection>> touched;
    {
      const MutexLock lock(touched_mu_);
      touched.swap(touched_);
    }
    peer_->FlushReplies();
    for (const auto& peer : touched) peer->FlushReplies();
  }

  void Close() override {
    if (closed_.exchange(true)) return;
    peer_->Close();
    core_->OnConnectionLost(hello_, peer_.get());
  }

 private:
  Status SendRows(Lane* lane, const Outgoing& out) {
    Session* session = lane->FindSession(hello_.session);
    if (session == nullptr) return FailedPrecondition("the session has been replaced");
    bool order = false;
    RowSource source;
    source.part = out.rows;
    FrameHeader answer;
    answer.id = out.head.id;
    answer.type = WantsRows(out.head) ? FrameType::kRows : FrameType::kAck;
    Status status;
    try {
      status = lane->RowOperation(session, out.head, source, &order);
    } catch (const std::bad_alloc&) {
      status = ResourceExhausted(
          fmt::format("server {} has no memory for more rows", core_->options().index));
    }
    if (order) return status;
    if (!status.ok()) {
      answer.type = FrameType::kRefused;
      answer.flags = lane->refusal();
    }
    lane->Respond(peer_, answer, status.ok() ? std::string() : EncodeError(status));
    return Status::Ok();
  }

  const std::shared_ptr<ServerCore> core_;
  const std::shared_ptr<InProcessPeer> peer_;
  const Hello hello_;
  Mutex touched_mu_;
  std::vector<std::shared_ptr<ServerConnection>> touched_ GUARDED_BY(touched_mu_);
  std::atomic<bool> closed_{false};
};

class InProcessTransport final : public Transport {
 public:
  InProcessTransport(std::shared_ptr<InProcessHub> hub, std::string token)
      : hub_(std::move(hub)), token_(std::move(token)) {}

  Result<OpenedConnection> Dial(const std::string& address, const Hello& hello, Duration) override {
    auto core = hub_->Find(address.substr(kScheme.size()));
    if (core == nullptr || core->stopped()) {
      return Unavailable(fmt::format("{}: there is no such server in this process", address));
    }
    if (!EqualInConstantTime(core->options().token, token_)) {
      ++core->refused_connections;
      return Unauthenticated(fmt::format("{}: wrong token", address));
    }
    TRY_ASSIGN(auto wanted, core->Route(hello));
    if (wanted != nullptr) core = std::move(wanted);
    auto peer = std::make_shared<InProcessPeer>();
    TRY_ASSIGN(const Welcome welcome, core->Join(hello, peer));
    return OpenedConnection{
        std::make_unique<InProcessLink>(std::move(core), std::move(peer), hello), welcome};
  }

 private:
  const std::shared_ptr<InProcessHub> hub_;
  const std::string token_;
};

}  // namespace

Status InProcessHub::Register(const std::string& name, std::weak_ptr<ServerCore> server) {
  const MutexLock lock(mu_);
  auto& there = servers_[name];
  if (auto other = there.lock(); other != nullptr && !other->stopped()) {
    return AlreadyExists(
        fmt::format("inproc:{}: another server of this process has the name", name));
  }
  there = std::move(server);
  return Status::Ok();
}

void InProcessHub::Unregister(const std::string& name) {
  const MutexLock lock(mu_);
  servers_.erase(name);
}

std::shared_ptr<ServerCore> InProcessHub::Find(const std::string& name) const {
  const MutexLock lock(mu_);
  const auto found = servers_.find(name);
  return found == servers_.end() ? nullptr : found->second.lock();
}

std::unique_ptr<Transport> MakeInProcessTransport(std::shared_ptr<InProcessHub> hub,
                                                  std::string token) {
  return std::make_unique<InProcessTransport>(std::move(hub), std::move(token));
}

}  // namespace shoal::ps
