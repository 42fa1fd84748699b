// Reads the stream of a job's events and logs on a thread, connects again where it broke, and hands
// the events to a loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/client/api_client.h"
#include "base/status.h"
#include "controller/files/log_store.h"
#include "controller/store/job_record.h"
#include "net/event_loop.h"
#include "rendezvous/protocol/job_event.h"

namespace shoal::api {

struct JobStreamOptions {
  std::string id;
  bool events = true;
  bool logs = true;
  controller::LogSelection selection;
  std::map<controller::LogKey, int64_t> from;
};

// Called on the loop's thread. All are optional.
struct JobStreamCallbacks {
  std::function<void(const controller::Event&)> on_event;  // a stored one, each once
  std::function<void(const rendezvous::JobEvent&)> on_live;
  std::function<void(const controller::LogKey&, int64_t offset, std::string_view bytes)> on_log;
  // The connection broke and is made again, or works again.
  std::function<void(const std::string& sentence)> on_note;
  // Once, last: the job as it ended, or why nothing more comes.
  std::function<void(const Result<controller::JobRecord>&)> on_end;
};

class JobStream {
 public:
  // A broken connection is made again for this long.
  static constexpr Duration kPatience = std::chrono::seconds(60);

  virtual ~JobStream() = default;
  // `client` and `loop` must outlive it; destroyed on the loop's thread.
  static std::unique_ptr<JobStream> Open(const ApiClient* client, net::Loop* loop,
                                         JobStreamOptions options, JobStreamCallbacks callbacks);
};

}  // namespace shoal::api
