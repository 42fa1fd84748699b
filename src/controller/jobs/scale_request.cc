#include "controller/jobs/scale_request.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "net/event_loop.h"

namespace shoal::controller {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::seconds(10);

}  // namespace

Status SendScaleRequest(rendezvous::CoordinatorClientOptions options, const std::string& role,
                        int replicas) {
  using Type = rendezvous::JobEvent::Type;
  net::Loop loop;
  Status answer = Unavailable("the job's coordinator did not answer within 10 s");
  const auto finish = [&](Status status) {
    answer = std::move(status);
    loop.Stop();
  };
  // Identifies the answer to this request among those to earlier ones, which are replayed first.
  const std::string reason = "asked for by `shoal scale`, process " + std::to_string(::getpid());
  options.give_up_after = kAnswerTimeout;
  std::unique_ptr<rendezvous::CoordinatorClient> client;
  rendezvous::CoordinatorClientCallbacks callbacks;
  callbacks.on_event = [&](const rendezvous::JobEvent& event) {
    const bool mine = event.text.find(reason) != std::string::npos;
    if (event.type == Type::kScaled && mine) finish(Status::Ok());
    if (rendezvous::RefusalOf(event, role) == rendezvous::RequestRefusal::kScale)
      finish(FailedPrecondition(event.text));
    if (event.type == Type::kVerdict) finish(FailedPrecondition("the job has ended"));
  };
  callbacks.on_closed = [&](const Status& status) {
    finish(status.ok() ? FailedPrecondition("the job has ended") : status);
  };
  client = rendezvous::CoordinatorClient::Connect(&loop, std::move(options), std::move(callbacks));
  client->Scale(role, replicas, reason);
  const net::Loop::Id timer = loop.After(kAnswerTimeout, [&] { loop.Stop(); });
  loop.Run();
  loop.Cancel(timer);
  client.reset();
  return answer;
}

}  // namespace shoal::controller
