// Converts records to the events that controllers see. Used by coordinator.cc.
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

// None for records that concern only the coordinator (which launcher serves a task). `core` names
// the tasks.
std::optional<JobEvent> EventOf(const JournalRecord& record, const CoordinatorCore& core);

// Transient events, stamped with the current time: of an attempt, and a sentence for people.
JobEvent EventOfTask(const CoordinatorCore& core, int task, int attempt);
JobEvent NoteEvent(const std::string& text);

// Gives `publisher` everything that an earlier coordinator has published, from its records and the
// logs that exist. Of records up to `resumed`, which lie before a resumption, only role sizes and
// excluded hosts.
void RestorePublisher(const std::vector<JournalRecord>& records, int64_t resumed,
                      const CoordinatorCore& core, const std::filesystem::path& logs,
                      EventPublisher* publisher);

}  // namespace shoal::rendezvous
