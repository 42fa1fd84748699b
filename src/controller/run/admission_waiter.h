// A submitted job before its admission: asks the queue, and asks again after every change of the
// store. Used by job_run.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "controller/run/admission.h"
#include "controller/run/controller.h"
#include "controller/store/job_record.h"
#include "controller/store/store.h"
#include "controller/threads/loop_task_group.h"

namespace shoal::controller {

// Called on the loop's thread.
struct AdmissionCallbacks {
  std::function<void(JobRecord)> on_admitted = {};  // as stored afterwards; it may have been scaled
  // The job was suspended, ended or taken over by another process while it waited; its record, if
  // it can be read.
  std::function<void(std::optional<JobRecord>)> on_taken = {};
  // It must wait; called once for each reason, `first` for the first one. An error ends the wait.
  std::function<Status(const std::string& why, bool first)> on_wait = {};
  // The engine or the store cannot be asked, or the job can never be admitted.
  std::function<void(const Status&)> on_failed = {};
};

// Must be used on the loop's thread. `options` and `tasks` must outlive it.
class AdmissionWaiter {
 public:
  AdmissionWaiter(const ControllerOptions* options, std::string id, LoopTaskGroup* tasks,
                  AdmissionCallbacks callbacks);

  // Asks the queue. Ends with a call of on_admitted, on_taken or on_failed, or with Stop.
  void Check();
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
  std::string wait_reason_;
  std::unique_ptr<Store::Watcher> watch_;
};

}  // namespace shoal::controller
