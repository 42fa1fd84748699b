// Facts as controllers are told of them. Used by coordinator.cc.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/coordinator/event_publisher.h"
#include "rendezvous/journal/journal_record.h"
#include "rendezvous/lifecycle/coordinator_core.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::rendezvous {

// No event for what concerns nobody else (that a launcher holds a place). `core` names the tasks.
std::optional<JobEvent> EventOf(const JournalRecord& record, const CoordinatorCore& core);

// What is told once and not kept, of now: of an attempt, and a sentence for people.
JobEvent EventOfTask(const CoordinatorCore& core, int task, int attempt);
JobEvent NoteEvent(const std::string& text);

// Gives `publisher` what an earlier coordinator has told, by its records and the logs that are
// there; of what was before record `resumed` only how large roles are to be and which hosts are
// excluded, as it has been told.
void RestorePublisher(const std::vector<JournalRecord>& records, int64_t resumed,
                      const CoordinatorCore& core, const std::filesystem::path& logs,
                      EventPublisher* publisher);

}  // namespace shoal::rendezvous
