#include "ps/rerouter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "ps/client_core.h"

namespace shoal::ps {
namespace {

constexpr Duration kAnswerWithin = std::chrono::milliseconds(500);
// Between a shard's leaving one server and its being served by the other.
constexpr Duration kFirstBackoff = std::chrono::microseconds(200);
constexpr Duration kLongestBackoff = std::chrono::milliseconds(20);
// A server that was started again while nobody could tell it of its shards hears of them from us.
constexpr Duration kTellAfter = std::chrono::seconds(1);

}  // namespace

void Rerouter::Open() {
  std::lock_guard lock(mu_);
  ready_ = true;
  if (!ask_.empty() && !stop_) Begin();
}

void Rerouter::Begin() {
  if (!ready_) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.notify_all();
}

void Rerouter::Take(Detour detour) {
  std::lock_guard lock(mu_);
  // At once, so that nothing that is issued from now on overtakes it.
  core_->gate().CloseRoutes();
  ++left_;
  ++taken_;
  detours_.push_back(std::move(detour));
  if (!stop_) Begin();
}

void Rerouter::News(int server) {
  std::lock_guard lock(mu_);
  if (stop_) return;
  ask_.insert(server);
  Begin();
}

void Rerouter::Look() {
  std::lock_guard lock(mu_);
  if (stop_) return;
  look_ = true;
  Begin();
}

bool Rerouter::DefersMarker(int64_t checkpoint) {
  std::lock_guard lock(mu_);
  if (left_ == 0) return false;
  marker_ = std::max(marker_, checkpoint);
  return true;
}

bool Rerouter::Await(TimePoint deadline) {
  std::unique_lock lock(mu_);
  return done_.wait_until(lock, deadline, [this] { return left_ == 0; });
}

uint64_t Rerouter::taken() {
  std::lock_guard lock(mu_);
  return taken_;
}

void Rerouter::Stop() {
  {
    std::lock_guard lock(mu_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  std::deque<Detour> left;
  {
    std::lock_guard lock(mu_);
    left.swap(detours_);
    left_ -= left.size();
  }
  core_->gate().OpenRoutes();
  for (const Detour& detour : left) {
    core_->tickets().PartDone(detour.ticket, Cancelled("the client is closed"));
  }
}

void Rerouter::Run() {
  for (;;) {
    std::set<int> ask;
    bool some = false, look = false;
    {
      std::unique_lock lock(mu_);
      wake_.wait(lock, [this] { return stop_ || look_ || !detours_.empty() || !ask_.empty(); });
      if (stop_) return;
      look = std::exchange(look_, false);
      ask.swap(ask_);
      for (const Detour& detour : detours_) ask.insert(detour.server);
      some = !detours_.empty();
    }
    const bool news = Learn(std::move(ask));
    if (news) backoff_ = {};
    if (!news && some && backoff_ > Duration{}) {
      std::unique_lock lock(mu_);
      wake_.wait_for(lock, backoff_, [this] { return stop_; });
    }
    if (!news && some) backoff_ = std::clamp(backoff_ * 2, kFirstBackoff, kLongestBackoff);
    if (news || some || look) Turn();
  }
}

// True: who owns what has changed.
bool Rerouter::Learn(std::set<int> servers) {
  bool news = false;
  std::string ours;
  {
    std::lock_guard lock(mu_);
    const TimePoint now = RealClock::Get()->Now();
    for (const Detour& detour : detours_) {
      if (now - detour.since < kTellAfter) continue;
      ours = EncodeShards(core_->known_shards());
      for (const Channel* channel : core_->FirstLanes()) servers.insert(channel->server());
      break;
    }
  }
  for (const int server : servers) {
    if (!core_->connected(server)) continue;
    const auto reply = core_->Ask(&core_->channel(server), FrameType::kShards, 0, ours,
                                  RealClock::Get()->Now() + kAnswerWithin);
    const Status status = reply.ok() ? core_->LearnShards(*reply, &news) : reply.status();
    if (!status.ok()) LogInfo("asking server {} for its shards: {}", server, status.message());
  }
  return news;
}

void Rerouter::Turn() {
  IssueGate& gate = core_->gate();
  gate.CloseRoutes();
  gate.AwaitRoutes();
  // What is under way comes back first: sent again before it, a request would be refused after it,
  // and later be sent after it.
  core_->AwaitChannels();
  core_->UseShards();
  std::deque<Detour> detours;
  {
    std::lock_guard lock(mu_);
    detours.swap(detours_);
  }
  for (const Detour& detour : detours) core_->tickets().PartDone(detour.ticket, Send(detour));
  int64_t marker = -1;
  if (!detours.empty()) {
    {
      std::lock_guard lock(mu_);
      left_ -= detours.size();
    }
    // Nobody goes before they are done: they might be refused once more.
    core_->AwaitChannels();
  }
  {
    std::lock_guard lock(mu_);
    if (left_ > 0) return;
    gate.OpenRoutes();
    std::swap(marker, marker_);
    done_.notify_all();
  }
  if (marker >= 0) gate.Request(marker);
}

Status Rerouter::Send(const Detour& detour) {
  const TimePoint deadline = detour.since + core_->options().reconnect_timeout;
  if (RealClock::Get()->Now() >= deadline) {
    return Unavailable(
        fmt::format("no server has taken over rows that server {} gave away", detour.server));
  }
  FrameHeader head = detour.head;
  if (detour.applied) {
    head.type = FrameType::kPull;
    head.flags = 0;
    head.body = 0;
    head.values = ValueType::kF32;
  }
  std::map<size_t, std::vector<uint32_t>> by_channel;
  for (size_t i = 0; i < detour.part.n; ++i) {
    const Key key = detour.part.keys[detour.part.At(i)];
    by_channel[core_->ChannelOfRow(head.table, key)].push_back(static_cast<uint32_t>(i));
  }
  for (const auto& [channel, rows] : by_channel) TRY(SendPart(detour, head, channel, rows));
  return Status::Ok();
}

// `rows`: positions in the detour's part.
Status Rerouter::SendPart(const Detour& detour, FrameHeader head, size_t channel,
                          const std::vector<uint32_t>& rows) {
  std::vector<uint32_t> pick;
  std::string coded;
  const size_t row_bytes = WireRowBytes(head.values, head.dim);
  for (const uint32_t row : rows) {
    pick.push_back(static_cast<uint32_t>(detour.part.At(row)));
    if (!detour.coded.empty() && HasDeltas(head)) {
      coded.append(detour.coded, row * row_bytes, row_bytes);
    }
  }
  RowPart part = detour.part;
  part.pick = pick.data();
  part.n = pick.size();
  part.coded = coded.empty() ? nullptr : coded.data();
  part.argument =
      head.type == FrameType::kCall ? std::string_view(detour.argument) : std::string_view();
  if (!HasDeltas(head)) part.deltas = {};
  head.rows = static_cast<uint32_t>(part.n);
  return core_->channels()[channel]->SendPart(
      head, part, detour.ticket, RealClock::Get()->Now() + core_->options().reconnect_timeout,
      detour.since);
}

}  // namespace shoal::ps
