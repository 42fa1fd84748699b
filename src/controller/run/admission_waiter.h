// A submitted job before its admission: waits for the supervisor's admitter, or without one asks
// the queue, and asks again after every change of the store. Used by job_run.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "controller/admission/job_admitter.h"
#include "controller/run/admission.h"
#include "controller/run/controller.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "controller/threads/loop_task_group.h"

namespace shoal::controller {

// Must be used on the loop's thread. `options` and `tasks` must outlive it.
class AdmissionWaiter {
 public:
  AdmissionWaiter(const ControllerOptions* options, std::string id, LoopTaskGroup* tasks,
                  AdmissionCallbacks callbacks);

  // Begins to wait with the supervisor's admitter, if there is one.
  void Begin(const JobRecord& record, const job::Job& job);
  // Asks the queue, for the first time or after a change of the job in the store. Ends with a call
  // of on_admitted, on_taken or on_failed, or with Stop.
  void Check();
  // Controller::ScaleWaiting for the job, then Check.
  void Scale(const std::string& role, int replicas, std::function<void(const Status&)> done);
  // No further calls.
  void Stop();

 private:
  enum class State : uint8_t { kIdle, kAsking, kAskingOld, kStopped };
  struct Outcome {
    Status asked;                     // an error of the engine or the store
    AdmissionAnswer answer;           // of the queue
    bool mine = false;                // it was this process's waiting job
    std::optional<JobRecord> record;  // as stored afterwards
  };

  static Outcome Ask(const ControllerOptions& options, const std::string& id,
                     const std::string& wait_reason);
  void OnAnswer(Outcome outcome);
  void Wait(const std::string& why);
  void RecoverOthers();

  const ControllerOptions* const options_;
  const std::string id_;
  LoopTaskGroup* const tasks_;
  const AdmissionCallbacks callbacks_;
  State state_ = State::kIdle;  // kAskingOld: the store has changed since the question
  bool begun_ = false;          // with the admitter
  std::string wait_reason_;
  std::unique_ptr<Store::Watcher> watch_;
};

}  // namespace shoal::controller
