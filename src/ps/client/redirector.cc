#include "ps/client/redirector.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "ps/client/client_core.h"

namespace shoal::ps {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::milliseconds(500);
// Between a shard's leaving one server and its being served by the other.
constexpr Duration kFirstBackoff = std::chrono::microseconds(200);
constexpr Duration kLongestBackoff = std::chrono::milliseconds(20);
// A server that was started again while no other server could tell it of its shards learns them
// from this client.
constexpr Duration kSendMapAfter = std::chrono::seconds(1);

}  // namespace

void Redirector::Open() {
  const MutexLock lock(mu_);
  ready_ = true;
  if (!servers_to_ask_.empty() && !stop_) Begin();
}

void Redirector::Begin() {
  if (!ready_) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.notify_all();
}

void Redirector::AddRedirect(Redirect redirect) {
  const MutexLock lock(mu_);
  // At once, so that nothing that is issued from now on overtakes it.
  core_->gate().CloseRoutes();
  ++unsent_;
  ++received_;
  redirects_.push_back(std::move(redirect));
  if (!stop_) Begin();
}

void Redirector::OnShardsMoved(int server) {
  const MutexLock lock(mu_);
  if (stop_) return;
  servers_to_ask_.insert(server);
  Begin();
}

void Redirector::RequestCleanup() {
  const MutexLock lock(mu_);
  if (stop_) return;
  cleanup_ = true;
  Begin();
}

bool Redirector::DefersMarker(int64_t checkpoint) {
  const MutexLock lock(mu_);
  if (unsent_ == 0) return false;
  marker_ = std::max(marker_, checkpoint);
  return true;
}

bool Redirector::AwaitAll(TimePoint deadline) {
  MutexLock lock(mu_);
  return done_.wait_until(lock, deadline, [this] { return unsent_ == 0; });
}

uint64_t Redirector::received() {
  const MutexLock lock(mu_);
  return received_;
}

void Redirector::Stop() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::deque<Redirect> left;
  {
    const MutexLock lock(mu_);
    left.swap(redirects_);
    unsent_ -= left.size();
  }
  core_->gate().OpenRoutes();
  for (const Redirect& redirect : left) {
    core_->tickets().ChunkDone(redirect.ticket, Cancelled("the client is closed"));
  }
}

void Redirector::Run() {
  for (;;) {
    std::set<int> ask;
    bool some = false, cleanup = false;
    {
      MutexLock lock(mu_);
      wake_.wait(lock, [this]() REQUIRES(mu_) {
        return stop_ || cleanup_ || !redirects_.empty() || !servers_to_ask_.empty();
      });
      if (stop_) return;
      cleanup = std::exchange(cleanup_, false);
      ask.swap(servers_to_ask_);
      for (const Redirect& redirect : redirects_) ask.insert(redirect.server);
      some = !redirects_.empty();
    }
    const bool news = LearnShardOwners(std::move(ask));
    if (news) backoff_ = {};
    if (!news && some && backoff_ > Duration{}) {
      MutexLock lock(mu_);
      wake_.wait_for(lock, backoff_, [this] { return stop_; });
    }
    if (!news && some) backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
    if (news || some || cleanup) SendRedirects();
  }
}

// True: an owner has changed.
bool Redirector::LearnShardOwners(std::set<int> servers) {
  bool news = false;
  std::string ours;
  {
    const MutexLock lock(mu_);
    const TimePoint now = RealClock::Get()->Now();
    for (const Redirect& redirect : redirects_) {
      if (now - redirect.since < kSendMapAfter) continue;
      ours = EncodeShards(core_->router().Known());
      for (const Channel* channel : core_->FirstLanes()) servers.insert(channel->server());
      break;
    }
  }
  for (const int server : servers) {
    if (!core_->connected(server)) continue;
    const auto reply = SendRequest(&core_->channel(server), FrameType::kShards, 0, ours,
                                   RealClock::Get()->Now() + kAnswerTimeout);
    const Status status = reply.ok() ? core_->router().Learn(*reply, &news) : reply.status();
    if (!status.ok()) LogInfo("asking server {} for its shards: {}", server, status.message());
  }
  return news;
}

void Redirector::SendRedirects() {
  MarkerGate& gate = core_->gate();
  gate.CloseRoutes();
  gate.AwaitRoutes();
  // Waits for the requests under way: a request that was sent again before them could be refused
  // after them, and later be sent after them.
  AwaitChannels();
  core_->UseShards();
  std::deque<Redirect> redirects;
  {
    const MutexLock lock(mu_);
    redirects.swap(redirects_);
  }
  for (const Redirect& redirect : redirects)
    core_->tickets().ChunkDone(redirect.ticket, Send(redirect));
  int64_t marker = -1;
  if (!redirects.empty()) {
    {
      const MutexLock lock(mu_);
      unsent_ -= redirects.size();
    }
    // No new request goes out before they are answered: they might be refused once more.
    AwaitChannels();
  }
  {
    const MutexLock lock(mu_);
    if (unsent_ > 0) return;
    gate.OpenRoutes();
    std::swap(marker, marker_);
    done_.notify_all();
  }
  if (marker >= 0) gate.RequestMarker(marker);
}

Status Redirector::Send(const Redirect& redirect) {
  const TimePoint deadline = redirect.since + core_->options().reconnect_timeout;
  if (RealClock::Get()->Now() >= deadline) {
    return Unavailable(
        fmt::format("no server has taken over rows that server {} gave away", redirect.server));
  }
  FrameHeader head = redirect.head;
  if (redirect.applied) {
    head.type = FrameType::kPull;
    head.flags = 0;
    head.body = 0;
    head.values = ValueType::kF32;
  }
  std::map<size_t, std::vector<uint32_t>> by_channel;
  for (size_t i = 0; i < redirect.part.n; ++i) {
    const Key key = redirect.part.keys[redirect.part.At(i)];
    by_channel[core_->router().ChannelOfRow(head.table, key)].push_back(static_cast<uint32_t>(i));
  }
  for (const auto& [channel, rows] : by_channel) TRY(SendChunk(redirect, head, channel, rows));
  return Status::Ok();
}

// `rows`: positions in the redirect's part.
Status Redirector::SendChunk(const Redirect& redirect, FrameHeader head, size_t channel,
                             const std::vector<uint32_t>& rows) {
  std::vector<uint32_t> pick;
  std::string coded;
  const size_t row_bytes = WireRowBytes(head.values, head.dim);
  for (const uint32_t row : rows) {
    pick.push_back(static_cast<uint32_t>(redirect.part.At(row)));
    if (!redirect.coded.empty() && HasDeltas(head)) {
      coded.append(redirect.coded, row * row_bytes, row_bytes);
    }
  }
  RowChunk part = redirect.part;
  part.pick = pick.data();
  part.n = pick.size();
  part.coded = coded.empty() ? nullptr : coded.data();
  part.argument =
      head.type == FrameType::kCall ? std::string_view(redirect.argument) : std::string_view();
  if (!HasDeltas(head)) part.deltas = {};
  head.rows = static_cast<uint32_t>(part.n);
  return core_->channels()[channel]->SendChunk(
      head, part, redirect.ticket, RealClock::Get()->Now() + core_->options().reconnect_timeout,
      redirect.since);
}

void Redirector::AwaitChannels() {
  const TimePoint deadline = RealClock::Get()->Now() + core_->options().reconnect_timeout;
  for (auto& channel : core_->channels()) {
    const Status status = channel->Flush(deadline);
    if (!status.ok()) LogInfo("requests whose rows have moved: {}", status.message());
  }
}

}  // namespace shoal::ps
