#include "controller/run/scale_requests.h"

#include <algorithm>
#include <utility>

#include "base/json.h"

namespace shoal::controller {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::seconds(10);

}  // namespace

void ScaleRequests::Add(const std::string& role, int replicas, Done done) {
  const int64_t number = next_++;
  requests_.push_back({number, role, replicas, std::move(done)});
  tasks_->PostAfter(kAnswerTimeout, [this, number] {
    Answer([number](const Request& request) { return request.number == number; },
           Unavailable("the job's coordinator did not answer within 10 s"));
  });
}

void ScaleRequests::ApplyEvent(const rendezvous::JobEvent& event) {
  if (requests_.empty()) return;
  if (event.type == rendezvous::JobEvent::Type::kScaled) {
    const int64_t replicas = GetIntOr(event.body, "replicas", -1);
    return Answer(
        [&](const Request& request) {
          return request.role == event.role && request.replicas == replicas;
        },
        Status::Ok());
  }
  Answer(
      [&event](const Request& request) {
        return rendezvous::RefusalOf(event, request.role) == rendezvous::RequestRefusal::kScale;
      },
      FailedPrecondition(event.text));
}

void ScaleRequests::EndAll(const Status& status) {
  for (const Request& request : std::exchange(requests_, {})) request.done(status);
}

void ScaleRequests::Answer(const std::function<bool(const Request&)>& matches,
                           const Status& answer) {
  const auto found = std::find_if(requests_.begin(), requests_.end(), matches);
  if (found == requests_.end()) return;
  const Done done = std::move(found->done);
  requests_.erase(found);
  done(answer);
}

}  // namespace shoal::controller
