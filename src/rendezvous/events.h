// Facts as controllers are told of them. Used by coordinator.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/coordinator_core.h"
#include "rendezvous/fact.h"
#include "rendezvous/feed.h"
#include "rendezvous/types.h"

namespace shoal::rendezvous {

// No event for what concerns nobody else (that a launcher holds a place). `core` names the tasks.
std::optional<JobEvent> EventOf(const Fact& fact, const CoordinatorCore& core);

// What is told once and not kept, of now: of an attempt, and a sentence for people.
JobEvent EventOfTask(const CoordinatorCore& core, int task, int attempt);
JobEvent NoteEvent(const std::string& text);

// Gives `feed` what an earlier coordinator has told, by its facts and the logs that are there; of
// what was before fact `resumed` only how large roles are to be and which hosts are excluded, as it
// has been told.
void RestoreFeed(const std::vector<Fact>& facts, int64_t resumed, const CoordinatorCore& core,
                 const std::filesystem::path& logs, EventFeed* feed);

}  // namespace shoal::rendezvous
