#include "rendezvous/client/journal_events.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "job/execution/job_dir.h"
#include "rendezvous/coordinator/record_events.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/journal/journal_record.h"
#include "rendezvous/lifecycle/coordinator_core.h"

namespace shoal::rendezvous {

Result<std::vector<JobEvent>> ReadJournalEvents(const std::filesystem::path& job_dir,
                                                const job::Job& job, int64_t after) {
  const FileAccessAs owner(job_dir);
  TRY_ASSIGN(const std::string bytes, ReadFile(job::JobDir(job_dir).journal(), kMaxJournalBytes));
  TRY_ASSIGN(const JournalContent content, ParseJournal(bytes));
  std::vector<JournalRecord> records;
  int64_t resumed = 0;
  for (const std::string_view text : content.records) {
    TRY_ASSIGN(JournalRecord record, JournalRecordFromText(text));
    if (record.kind == JournalRecord::Kind::kResumed) resumed = record.seq;
    records.push_back(std::move(record));
  }
  CoordinatorCore core(job);
  TRY(core.Restore(records));
  std::vector<JobEvent> events;
  for (const JournalRecord& record : records) {
    const bool holds =
        record.kind == JournalRecord::Kind::kScale || record.kind == JournalRecord::Kind::kExcluded;
    if (record.seq <= after || (record.seq < resumed && !holds)) continue;
    if (std::optional<JobEvent> event = EventOf(record, core)) events.push_back(std::move(*event));
  }
  return events;
}

}  // namespace shoal::rendezvous
