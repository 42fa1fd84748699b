#include "api/webhooks/dispatcher.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/id.h"
#include "base/log.h"
#include "net/byte_channel.h"
#include "net/http_client.h"

namespace shoal::api {
namespace {

constexpr int kEventsAtOnce = 256;
constexpr Duration kSaveEvery = std::chrono::seconds(1);
// Events without a message are not stored as told one by one.
constexpr int64_t kUnsavedPositions = 10'000;
// After the store could not be read.
constexpr Duration kStorePause = std::chrono::seconds(5);
constexpr std::chrono::milliseconds kAttemptTime{10'000};
constexpr size_t kMaxAnswer = size_t{64} << 10;

}  // namespace

DeliveryOutcome SendWebhook(const Webhook& webhook, const JobChange& change, WallTime now,
                            const net::AddressPolicy& addresses) {
  const auto attempt = [&]() -> Result<net::HttpReply> {
    TRY_ASSIGN(const net::HttpRequest request, RenderWebhookRequest(webhook, change, now));
    TRY_ASSIGN(const WebhookUrl url, ParseWebhookUrl(webhook.url));
    TRY_ASSIGN(const auto client, net::HttpClient::Make(url.base, {}, "", &addresses));
    auto reply = client->Call(request, kAttemptTime, kMaxAnswer);
    if (reply.ok() || reply.status().code() != Code::kPermissionDenied) return reply;
    return Status(reply.status().code(),
                  reply.status().message() + "; the server's option --webhook-allow allows it");
  };
  return OutcomeOf(attempt());
}

WebhookDispatcher::WebhookDispatcher(WebhookDispatcherOptions options)
    : options_(std::move(options)), interrupt_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Result<std::unique_ptr<WebhookDispatcher>> WebhookDispatcher::Start(
    WebhookDispatcherOptions options) {
  if (!options.random) options.random = [] { return RandomSeed(); };
  std::unique_ptr<WebhookDispatcher> made(new WebhookDispatcher(std::move(options)));
  if (!made->interrupt_.valid()) return ErrnoStatus(errno, "cannot make an event descriptor");
  made->pool_ = std::make_unique<controller::WorkerPool>(kAttempts);
  TRY(made->Watch());
  WebhookDispatcher* const self = made.get();
  made->thread_ = std::thread([self] {
    self->LoadAll();
    self->loop_.Run();
  });
  return made;
}

Status WebhookDispatcher::Watch() {
  TRY_ASSIGN(watcher_, options_.store->Watch([this] {
    if (webhooks_.load() == 0 || pumping_.exchange(true)) return;
    tasks_.Post([this] { Pump(); });
  }));
  return Status::Ok();
}

WebhookDispatcher::~WebhookDispatcher() {
  watcher_.reset();
  loop_.Stop();
  if (thread_.joinable()) thread_.join();
  ::eventfd_write(interrupt_.get(), 1);
  pool_.reset();
  for (const auto& [key, entry] : entries_) Save(key, entry.get());
}

void WebhookDispatcher::Reload() {
  tasks_.Post([this] { LoadAll(); });
}

WebhookCounters WebhookDispatcher::counters() const {
  return {delivered_.load(), failures_.load(), dropped_.load(), webhooks_.load(), failing_.load()};
}

void WebhookDispatcher::LoadAll() {
  auto all = options_.webhooks->ReadAll();
  if (!all.ok()) {
    LogWarning("the webhooks cannot be read: {}", all.status().message());
    tasks_.PostAfter(kStorePause, [this] { LoadAll(); });
    return;
  }
  std::erase_if(entries_, [&all](const auto& item) {
    return std::ranges::none_of(*all, [&item](const Webhook& webhook) {
      return item.first == Key(webhook.team, webhook.name);
    });
  });
  for (Webhook& webhook : *all) Load(std::move(webhook));
  Pump();
}

void WebhookDispatcher::Load(Webhook webhook) {
  const Key key(webhook.team, webhook.name);
  const auto found = entries_.find(key);
  if (found != entries_.end()) {
    if (found->second->webhook.changed != webhook.changed) found->second->queue.Reset();
    found->second->webhook = std::move(webhook);
    return;
  }
  auto progress = options_.webhooks->ReadProgress(webhook.team, webhook.name);
  if (!progress.ok()) {
    LogWarning("how far the webhook {} was told cannot be read: {}", webhook.name,
               progress.status().message());
    return;
  }
  auto entry = std::make_shared<Entry>(std::move(webhook), *progress);
  entry->saved = progress->position;
  entry->told = progress->delivered + progress->dropped;
  entries_.emplace(key, std::move(entry));
}

void WebhookDispatcher::Pump() {
  pumping_ = false;
  const Status filled = FillAll();
  if (!filled.ok()) {
    LogWarning("the events for webhooks cannot be read: {}", filled.message());
    WakeAt(options_.clock->Now() + kStorePause);
  }
  SendDue();
  SaveDue();
  Count();
}

Status WebhookDispatcher::FillAll() {
  for (const auto& [key, entry] : entries_) TRY(Fill(entry.get()));
  chunk_after_ = -1;  // new events may follow it
  chunk_.clear();
  return Status::Ok();
}

// Until the queue is full or all events were seen.
Status WebhookDispatcher::Fill(Entry* entry) {
  while (entry->queue.HasRoom()) {
    TRY_ASSIGN(const auto* const events, ReadEvents(entry->queue.scanned()));
    if (events->empty()) return Status::Ok();
    for (const controller::StoredEvent& event : *events) {
      if (!entry->queue.HasRoom()) return Status::Ok();
      auto change = ChangeOf(event, options_.store->store_id());
      const bool own = entry->webhook.team.empty() || entry->webhook.team == event.team;
      const auto& asked = entry->webhook.events;
      if (own && change && std::ranges::find(asked, change->event) != asked.end()) {
        Complete(&*change);
        entry->queue.Push(std::move(*change));
      }
      entry->queue.SetScanned(event.position);
    }
  }
  return Status::Ok();
}

// Webhooks that have been told everything share what was read.
Result<const std::vector<controller::StoredEvent>*> WebhookDispatcher::ReadEvents(int64_t after) {
  if (chunk_after_ != after) {
    TRY_ASSIGN(chunk_, options_.store->ReadAllEvents(after, kEventsAtOnce));
    chunk_after_ = after;
  }
  return &chunk_;
}

void WebhookDispatcher::Complete(JobChange* change) {
  const auto job = options_.store->GetJob(change->job);
  if (!job.ok()) return;  // removed meanwhile
  change->name = job->name;
  change->user = job->user;
  change->engine = job->engine;
}

void WebhookDispatcher::SendDue() {
  const TimePoint now = options_.clock->Now();
  const WallTime wall = options_.clock->Wall();
  std::optional<TimePoint> next;
  for (const auto& [key, entry] : entries_) {
    if (entry->in_flight) continue;
    const int64_t dropped = entry->queue.progress().dropped;
    const JobChange* const change = entry->queue.Next(now, wall);
    dropped_ += static_cast<uint64_t>(entry->queue.progress().dropped - dropped);
    if (change == nullptr) {
      const bool waits = !entry->queue.empty() && !entry->queue.progress().disabled;
      if (waits && (!next || entry->queue.next_attempt() < *next))
        next = entry->queue.next_attempt();
      continue;
    }
    // The end of an attempt looks again.
    if (in_flight_ >= kAttempts) break;
    if (entry->queue.failing() && failing_in_flight_ >= kFailingAttempts) continue;
    Send(key, entry, *change);
  }
  if (next) WakeAt(*next);
}

void WebhookDispatcher::Send(const Key& key, const std::shared_ptr<Entry>& entry,
                             const JobChange& change) {
  entry->in_flight = true;
  ++in_flight_;
  const bool failing = entry->queue.failing();
  if (failing) ++failing_in_flight_;
  pool_->Execute([this, key, failing, entry, webhook = entry->webhook, change] {
    const net::WaitInterrupt interrupt(interrupt_.get());
    const DeliveryOutcome outcome = options_.send(webhook, change);
    tasks_.Post([this, key, failing, entry, outcome] {
      --in_flight_;
      if (failing) --failing_in_flight_;
      OnSent(key, entry, outcome);
    });
  });
}

void WebhookDispatcher::OnSent(const Key& key, const std::shared_ptr<Entry>& sent,
                               const DeliveryOutcome& outcome) {
  Entry& entry = *sent;
  entry.in_flight = false;
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second == sent) {
    const WebhookProgress before = entry.queue.progress();
    entry.queue.Apply(outcome, options_.clock->Now(), options_.clock->Wall(), options_.random());
    const WebhookProgress& after = entry.queue.progress();
    delivered_ += static_cast<uint64_t>(after.delivered - before.delivered);
    dropped_ += static_cast<uint64_t>(after.dropped - before.dropped);
    if (outcome.result != DeliveryResult::kDelivered) ++failures_;
    const std::string name = key.first.empty() ? key.second : key.first + "/" + key.second;
    if (before.error.empty() && !after.error.empty())
      LogWarning("the webhook {} fails: {}", name, after.error);
    const bool news = before.error != after.error || before.disabled != after.disabled;
    if (news) Save(key, &entry);
  }
  Pump();
}

void WebhookDispatcher::Save(const Key& key, Entry* entry) {
  const Status saved =
      options_.webhooks->SaveProgress(key.first, key.second, entry->queue.progress());
  entry->saved_at = options_.clock->Now();
  if (saved.ok()) {
    const WebhookProgress& progress = entry->queue.progress();
    entry->saved = progress.position;
    entry->told = progress.delivered + progress.dropped;
  } else {
    LogWarning("how far the webhook {} was told cannot be stored: {}", key.second, saved.message());
  }
}

// At most once a second each: a server that is killed repeats the messages since then.
void WebhookDispatcher::SaveDue() {
  const TimePoint now = options_.clock->Now();
  for (const auto& [key, entry] : entries_) {
    const WebhookProgress& progress = entry->queue.progress();
    const bool told = entry->told != progress.delivered + progress.dropped;
    if (!told && progress.position - entry->saved < kUnsavedPositions) continue;
    const TimePoint due = entry->saved_at + kSaveEvery;
    if (now >= due) {
      Save(key, entry.get());
    } else {
      WakeAt(due);
    }
  }
}

void WebhookDispatcher::WakeAt(TimePoint at) {
  if (timer_ != 0 && timer_at_ <= at) return;
  if (timer_ != 0) loop_.Cancel(timer_);
  timer_at_ = at;
  timer_ = loop_.After(at - options_.clock->Now(), [this] {
    timer_ = 0;
    Pump();
  });
}

void WebhookDispatcher::Count() {
  webhooks_ = entries_.size();
  failing_ = static_cast<uint64_t>(std::ranges::count_if(entries_, [](const auto& item) {
    return item.second->queue.failing() || item.second->queue.progress().disabled;
  }));
}

}  // namespace shoal::api
