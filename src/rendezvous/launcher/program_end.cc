#include "rendezvous/launcher/program_end.h"

#include <utility>

#include "job/execution/plan.h"

namespace shoal::rendezvous {

job::TaskEnd StartFailureEnd(const Status& why) {
  job::TaskEnd end = job::Exited(why.code() == Code::kNotFound ? 127 : 126);
  end.detail = why.message();
  return end;
}

job::TaskEnd TaskEndOf(const host::ProcessExit& exit, int64_t memory_limit) {
  if (exit.out_of_memory) {
    return job::OutOfMemory(memory_limit > 0 ? "exceeded its " + job::FormatBytes(memory_limit)
                                             : "ran out of the machine's memory");
  }
  return exit.signal != 0 ? job::Signaled(exit.signal) : job::Exited(exit.exit_code);
}

job::TaskEnd KilledEnd(int signal, std::string why) {
  job::TaskEnd end = job::Signaled(signal);
  end.detail = std::move(why);
  return end;
}

}  // namespace shoal::rendezvous
