// Tells webhooks of changes of jobs, from the store's log of events: each webhook has a position in
// it, so that nothing is lost when the server ends, and a receiver that is slow or away costs no
// memory and delays no other (ADR 290).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/webhooks/delivery.h"
#include "api/webhooks/webhook.h"
#include "base/file.h"
#include "base/status.h"
#include "controller/store/store.h"
#include "controller/threads/loop_task_group.h"
#include "controller/threads/worker_pool.h"
#include "net/address_policy.h"
#include "net/event_loop.h"

namespace shoal::api {

struct WebhookDispatcherOptions {
  controller::Store* store = nullptr;  // must outlive it, as the next two
  Webhooks* webhooks = nullptr;
  const Clock* clock = nullptr;
  // Sends one message; called on several threads, may block.
  std::function<DeliveryOutcome(const Webhook&, const JobChange&)> send;
  std::function<uint64_t()> random;  // the default: the kernel's
};

// Of all webhooks since the start.
struct WebhookCounters {
  uint64_t delivered = 0;
  uint64_t failures = 0;  // attempts that failed
  uint64_t dropped = 0;   // messages that were given up
  uint64_t webhooks = 0;  // now
  uint64_t failing = 0;   // now: whose last attempt failed, or which are disabled
};

// Thread-safe.
class WebhookDispatcher {
 public:
  // Attempts at once, of which at most kFailingAttempts are of webhooks whose last one failed.
  static constexpr size_t kAttempts = 8;
  static constexpr size_t kFailingAttempts = 4;

  // Reads the webhooks and begins.
  static Result<std::unique_ptr<WebhookDispatcher>> Start(WebhookDispatcherOptions options);
  // Attempts under way are broken off.
  ~WebhookDispatcher();
  WebhookDispatcher(const WebhookDispatcher&) = delete;
  WebhookDispatcher& operator=(const WebhookDispatcher&) = delete;

  // A webhook was set or removed.
  void Reload();
  WebhookCounters counters() const;

 private:
  struct Entry {
    Entry(Webhook hook, WebhookProgress progress)
        : webhook(std::move(hook)), queue(std::move(progress)) {}
    Webhook webhook;
    DeliveryQueue queue;
    bool in_flight = false;
    int64_t saved = 0;  // position of the stored progress
    int64_t told = 0;   // messages that it counts, delivered and dropped
    TimePoint saved_at{};
  };
  using Key = std::pair<std::string, std::string>;  // team, name

  explicit WebhookDispatcher(WebhookDispatcherOptions options);
  Status Watch();
  void LoadAll();
  void Load(Webhook webhook);
  void Pump();
  Status FillAll();
  Status Fill(Entry* entry);
  Result<const std::vector<controller::StoredEvent>*> ReadEvents(int64_t after);
  void Complete(JobChange* change);
  void SendDue();
  void Send(const Key& key, const std::shared_ptr<Entry>& entry, const JobChange& change);
  void OnSent(const Key& key, const std::shared_ptr<Entry>& sent, const DeliveryOutcome& outcome);
  void Save(const Key& key, Entry* entry);
  void SaveDue();
  void WakeAt(TimePoint at);
  void Count();

  const WebhookDispatcherOptions options_;
  UniqueFd interrupt_;  // readable once attempts are to be broken off
  // Of the loop's thread.
  std::map<Key, std::shared_ptr<Entry>> entries_;
  std::vector<controller::StoredEvent> chunk_;  // events after chunk_after_, shared by all that
  int64_t chunk_after_ = -1;                    // have got so far
  size_t in_flight_ = 0;
  size_t failing_in_flight_ = 0;
  net::Loop::Id timer_ = 0;  // of the next Pump, 0: none
  TimePoint timer_at_{};
  std::atomic<uint64_t> delivered_{0}, failures_{0}, dropped_{0}, webhooks_{0}, failing_{0};
  std::atomic<bool> pumping_{false};  // a Pump is posted
  net::Loop loop_;
  controller::LoopTaskGroup tasks_{&loop_};
  std::unique_ptr<controller::Store::Watcher> watcher_;
  std::unique_ptr<controller::WorkerPool> pool_;
  std::thread thread_;
};

// One attempt over the network: no redirects, no proxy, at most 10 s, 64 KiB of the answer.
// `addresses` is the rule for where it may lead.
DeliveryOutcome SendWebhook(const Webhook& webhook, const JobChange& change, WallTime now,
                            const net::AddressPolicy& addresses);

}  // namespace shoal::api
