// Events of a job's coordinator as entries of its log, and how far the log has them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/clock.h"
#include "controller/store/job_record.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::controller {

// The entry for an event; none for events that are not recorded one by one (progress, usage,
// results, the verdict).
std::optional<Event> EntryOf(const rendezvous::JobEvent& event, WallTime now);

// Merges results. If several tasks report the same field, the last report counts; trainers let one
// task report.
void MergeResults(const json::object& from, json::object* into);

// The greatest number of a coordinator's event among the entries.
int64_t LastCoordinatorSeq(std::span<const Event> entries);

// The last attempt of each task whose end is recorded.
using EndedAttempts = std::map<std::pair<std::string, int>, int>;
EndedAttempts EndedAttemptsOf(std::span<const Event> entries);
// The end of a task in a verdict; none if this attempt's end is recorded.
std::optional<Event> EntryOf(const rendezvous::TaskResult& result, const EndedAttempts& ended,
                             WallTime now);

}  // namespace shoal::controller
