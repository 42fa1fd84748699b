// The events that a coordinator has recorded, read from its journal, for a controller that was not
// connected when they happened and whose coordinator is gone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::rendezvous {

// Events with seq > `after` in order, the verdict included; of those before the job's last
// resumption only role sizes and excluded hosts, as a coordinator would send them. NotFound without
// a journal; DataLoss if it does not fit the job. O(journal).
Result<std::vector<JobEvent>> ReadJournalEvents(const std::filesystem::path& job_dir,
                                                const job::Job& job, int64_t after);

}  // namespace shoal::rendezvous
