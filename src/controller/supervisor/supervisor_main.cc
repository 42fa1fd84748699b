// A program with nothing but a supervisor, which tests/e2e/supervisor_test.py kills and starts
// again.
//
//     controller_supervisor SHOAL COUNT [JOB FILE]
//
// Takes over the unfinished jobs of $SHOAL_HOME, submits COUNT jobs of the file, prints one line
// for each state and end, and exits when no job runs any more.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/mutex.h"
#include "controller/store/process_identity.h"
#include "controller/store/sqlite_store.h"
#include "controller/supervisor/supervisor.h"
#include "job/file/parse.h"

namespace shoal::controller {
namespace {

// Prints what happens and counts the ends. Thread-safe.
class Printer {
 public:
  JobsObserver observer() {
    JobsObserver to;
    to.on_state = [this](const std::string& id, JobState state, const std::string&) {
      Print(id + " " + std::string(job::NameOf(state)));
    };
    to.on_note = [this](const std::string& id, const std::string& text) {
      Print(id + " note " + text);
    };
    to.on_end = [this](const std::string& id, const JobRecord& record) {
      Print(id + " end " + std::string(job::NameOf(record.state)));
      const MutexLock lock(mu_);
      ++ended_;
      changed_.notify_all();
    };
    return to;
  }
  void Print(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
  void AwaitEnds(size_t jobs) {
    MutexLock lock(mu_);
    changed_.wait(lock, [&] { return ended_ >= jobs; });
  }

 private:
  Mutex mu_;
  CondVar changed_;
  size_t ended_ = 0;
};

Status Supervise(const std::string& program, int count, const std::string& file) {
  TRY_ASSIGN(std::filesystem::path root, FindStateHome());
  const StateHome home(root);
  TRY_ASSIGN(const std::unique_ptr<Store> store, OpenSqliteStore(home.database()));
  EngineRegistry engines([home](const std::string& id) { return home.job_dir(id).string(); });
  SupervisorOptions options;
  options.store = store.get();
  options.home = home;
  options.engines = &engines;
  options.program = program;
  TRY_ASSIGN(options.self, CurrentProcess());
  Printer printer;
  TRY_ASSIGN(const auto supervisor, Supervisor::Start(std::move(options)));
  const auto observation = supervisor->Observe(printer.observer());
  TRY_ASSIGN(const std::vector<std::string> attached, supervisor->AttachAll());
  for (const std::string& id : attached) printer.Print(id + " attached");
  for (int i = 0; i < count; ++i) {
    TRY_ASSIGN(job::Job job, job::ParseJobFile(file));
    job.name += std::to_string(i);
    TRY_ASSIGN(const std::string id, supervisor->Submit(job, {.work_dir = root}));
    printer.Print(id + " submitted");
  }
  printer.Print("ready");
  printer.AwaitEnds(attached.size() + static_cast<size_t>(count));
  return Status::Ok();
}

}  // namespace
}  // namespace shoal::controller

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s SHOAL COUNT [JOB FILE]\n", argv[0]);
    return 2;
  }
  const shoal::Status done =
      shoal::controller::Supervise(argv[1], std::atoi(argv[2]), argc > 3 ? argv[3] : "");
  if (done.ok()) return 0;
  std::fprintf(stderr, "%s\n", done.message().c_str());
  return 1;
}
