// Patterns among the data of a job.
#pragma once

#include "job/spec/job.h"

namespace shoal::controller {

// In a job of framework shoal, replaces a pattern among the data, such as news/*.txt, by the
// matching files on this machine, sorted by name. A pattern without matches stays.
void ExpandData(job::Job* job);

}  // namespace shoal::controller
