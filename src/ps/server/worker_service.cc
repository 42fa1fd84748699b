#include "ps/server/worker_service.h"

#include <fmt/format.h>

#include <algorithm>

namespace shoal::ps {

std::string DescribeWorkers(std::string_view what, const std::vector<int>& workers) {
  constexpr size_t kNamed = 8;
  std::string text;
  for (size_t i = 0; i < std::min(workers.size(), kNamed); ++i) {
    text += fmt::format("{}worker {} {}", i == 0 ? "" : ", ", workers[i], what);
  }
  if (workers.size() > kNamed) text += fmt::format(", and {} more", workers.size() - kNamed);
  return text;
}

Status WorkerService::HandleClock(ControlRequest* request) {
  if (request->from.client < 0) return FailedPrecondition("an observer has no clock");
  uint32_t staleness = 0;
  char waits = 0;
  ByteReader reader(request->body);
  TRY(reader.Get(&waits));
  TRY(reader.Get(&staleness));
  if (waits == kAsksWhoIsLate) {
    request->answer(Status::Ok(),
                    DescribeWorkers("has not come so far",
                                    registry_.WorkersBehind(request->head.argument, staleness)));
    return Status::Ok();
  }
  registry_.ReportClock(request->from.client, request->head.argument,
                        waits != 0 ? std::optional<uint32_t>(staleness) : std::nullopt,
                        std::move(request->answer));
  return Status::Ok();
}

Status WorkerService::HandleBarrier(ControlRequest* request) {
  if (request->from.client < 0) return FailedPrecondition("an observer takes no part in barriers");
  if (request->head.argument == kLeavesBarrier) return LeaveBarrier(request);
  if (request->body.size() > kMaxNameBytes) return InvalidArgument("a barrier's name is too long");
  if (request->head.argument == kAsksWhoIsLate) {
    request->answer(Status::Ok(),
                    DescribeWorkers("has not entered",
                                    registry_.WorkersNotEntered(std::string(request->body))));
    return Status::Ok();
  }
  registry_.EnterBarrier(request->from.client, std::string(request->body), request->head.id,
                         std::move(request->answer));
  return Status::Ok();
}

Status WorkerService::LeaveBarrier(ControlRequest* request) {
  uint64_t id = 0;
  std::string_view name;
  ByteReader reader(request->body);
  TRY(reader.Get(&id));
  TRY(reader.GetString(&name, kMaxNameBytes));
  const std::string barrier(name);
  // Before the worker leaves: afterwards it is late itself.
  const std::string late = DescribeWorkers("has not entered", registry_.WorkersNotEntered(barrier));
  std::string reply;
  ByteWriter writer(&reply);
  writer.Put(static_cast<uint8_t>(registry_.LeaveBarrier(request->from.client, barrier, id)));
  writer.PutString(late);
  request->answer(Status::Ok(), reply);
  return Status::Ok();
}

Status WorkerService::HandleGetProgress(ControlRequest* request) {
  const auto worker = static_cast<int>(request->head.argument & 0x7fffffff);
  const auto found = progress_.find(worker);
  if (found == progress_.end()) return NotFound(fmt::format("worker {} left no progress", worker));
  request->answer(Status::Ok(), found->second);
  return Status::Ok();
}

void WorkerService::Join(const Hello& hello) {
  disconnected_.erase(hello.client);
  registry_.Join(hello.client, hello.session, hello.clock);
}

void WorkerService::Remove(int worker) {
  disconnected_.erase(worker);
  registry_.Remove(worker);
}

std::vector<int> WorkerService::Expired(TimePoint now) const {
  std::vector<int> expired;
  for (const auto& [worker, since] : disconnected_) {
    if (now - since >= context_->options.client_grace) expired.push_back(worker);
  }
  return expired;
}

void WorkerService::ExpectReconnections() {
  for (const auto& [id, session] : context_->first_lane().sessions()) {
    if (session.client >= 0 && !session.left && !session.dead) OnConnectionLost(session.client);
  }
}

}  // namespace shoal::ps
