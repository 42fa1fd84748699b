// What jobs have held of their engines, for accounts by team, user and month.
//
// A job holds the resources of all its tasks from its admission until it is suspended, goes back to
// the queue or ends: meanwhile no other job gets them. The sums follow from the events of the jobs.
// Before the record of a job is removed, its sums are added to records of the kind "usage", one for
// each UsageKey, so that accounts outlive their jobs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "controller/store/store.h"
#include "queue/core/amounts.h"

namespace shoal::controller {

// A month of UTC, as a number of months since the year 0: comparable, and one more is the next.
struct Month {
  int number = 0;
  auto operator<=>(const Month&) const = default;
};
// "2026-11".
std::string MonthText(Month month);
// InvalidArgument with the expected form.
Result<Month> ParseMonth(std::string_view text);
Month MonthOf(WallTime time);

struct UsageKey {
  Month month;
  std::string team;  // empty without a server, as is the next
  std::string user;
  std::string queue;
  std::string engine;
  auto operator<=>(const UsageKey&) const = default;
};

// Amount-milliseconds: thousandths of a core, KiB and thousandths of a GPU (queue::Amounts), each
// times milliseconds.
using HeldAmounts = std::array<double, queue::kResources>;

struct UsageTotals {
  int64_t jobs = 0;    // that held something in the month; a job of two months counts in both
  double task_ms = 0;  // tasks × milliseconds
  HeldAmounts held{};  // by all
  HeldAmounts idle{};  // of `held`: while the task did not run (others gathered, images, restarts)
  HeldAmounts failed{};  // of `held`: by jobs that failed in the end

  UsageTotals& operator+=(const UsageTotals& other);
};

using UsageTable = std::map<UsageKey, UsageTotals>;

// Months from `first` to `last`; `teams` empty: all teams.
struct UsageQuery {
  Month first;
  Month last;
  std::vector<std::string> teams{};
};

// Follows the events of one job, in order.
class UsageCounter {
 public:
  explicit UsageCounter(const JobRecord& job);
  void Add(const Event& event);
  // The sums until the job's end, or until `now` if it has not ended.
  UsageTable Finish(WallTime now);

 private:
  struct Role {
    std::string name;
    queue::Amounts task;
    int64_t tasks = 0;
    std::map<int, bool> running{};
  };

  void Advance(WallTime to);
  void Credit(WallTime from, WallTime to);
  void SetTask(const json::object& body);
  void SetReplicas(const json::object& body);

  UsageKey key_;
  const bool failed_;
  std::vector<Role> roles_;
  bool holds_ = false;
  bool ended_ = false;
  WallTime at_{};
  UsageTable table_;
};

inline constexpr int kMostMonths = 120;
// InvalidArgument if the query has no month, or more than kMostMonths.
Status CheckUsageQuery(const UsageQuery& query);

// The sums of the jobs in the store and of removed ones. Reads all events of each job that held
// something in these months: some thousand jobs a second.
Result<UsageTable> ReadUsage(Store* store, const UsageQuery& query, WallTime now);

// Adds the sums of an ended job to the records of removed jobs. Call it immediately before the
// job's record is removed; a second call for the same job changes nothing unless another job of the
// same team, user, queue and engine has been removed in between.
Status KeepUsage(Store* store, const std::string& id, WallTime now);

// As the rows of `usage` (docs/rest.md): hours, with cores, bytes of memory and GPUs.
json::object ToJson(const UsageKey& key, const UsageTotals& totals);
Result<std::pair<UsageKey, UsageTotals>> ParseUsageRow(const json::object& object);

}  // namespace shoal::controller
