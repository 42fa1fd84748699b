#include "ps/server/worker_registry.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shoal::ps {

bool WorkerRegistry::IsCounted(int worker) const {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return worker >= 0 && worker < expected_;
  return !found->second.gone && (found->second.joined || worker < expected_);
}

uint64_t WorkerRegistry::MinClock() const {
  uint64_t least = UINT64_MAX;
  for (int worker = 0; worker < expected_; ++worker) {
    if (!workers_.contains(worker)) least = 0;  // not there yet
  }
  for (const auto& [worker, state] : workers_) {
    if (IsCounted(worker)) least = std::min(least, state.clock);
  }
  return least;
}

void WorkerRegistry::Join(int worker, uint64_t session, uint64_t clock) {
  const uint64_t slowest = MinClock();
  Worker& state = workers_[worker];
  if (!state.joined || state.gone || state.session != session) {
    if (state.session != session) {
      ForgetWaits(worker);
      state.passed.clear();
    }
    if (slowest != UINT64_MAX) state.clock = std::max(state.clock, slowest);
  }
  state.joined = true;
  state.gone = false;
  state.session = session;
  state.clock = std::max(state.clock, clock);
  Release();
}

void WorkerRegistry::Remove(int worker) {
  workers_[worker].gone = true;
  ForgetWaits(worker);
  Release();
}

void WorkerRegistry::ForgetWaits(int worker) {
  std::erase_if(clock_waits_, [worker](const ClockWait& wait) { return wait.worker == worker; });
  for (auto& [name, entered] : barriers_) entered.erase(worker);
}

void WorkerRegistry::ReportClock(int worker, uint64_t n, std::optional<uint32_t> staleness,
                                 Answer answer) {
  Worker& state = workers_[worker];
  state.clock = std::max(state.clock, n);
  std::erase_if(clock_waits_, [worker](const ClockWait& wait) { return wait.worker == worker; });
  if (staleness.has_value()) {
    clock_waits_.push_back({worker, n, *staleness, std::move(answer)});
  } else {
    answer(Status::Ok(), {});
  }
  Release();
}

void WorkerRegistry::EnterBarrier(int worker, const std::string& name, uint64_t id, Answer answer) {
  const auto& passed = workers_[worker].passed;
  if (std::find(passed.begin(), passed.end(), id) != passed.end()) return answer(Status::Ok(), {});
  barriers_[name][worker] = {id, std::move(answer)};
  ReleaseBarriers();
}

bool WorkerRegistry::LeaveBarrier(int worker, const std::string& name, uint64_t id) {
  const auto& passed = workers_[worker].passed;
  if (std::find(passed.begin(), passed.end(), id) != passed.end()) return true;
  const auto barrier = barriers_.find(name);
  if (barrier == barriers_.end()) return false;
  const auto entered = barrier->second.find(worker);
  if (entered != barrier->second.end() && entered->second.id == id) barrier->second.erase(entered);
  if (barrier->second.empty()) barriers_.erase(barrier);
  return false;
}

void WorkerRegistry::Release() {
  const uint64_t least = MinClock();
  std::vector<ClockWait> ready;
  for (auto& wait : clock_waits_) {
    if (wait.n <= wait.staleness || wait.n - wait.staleness <= least) {
      ready.push_back(std::move(wait));
      wait.answer = nullptr;
    }
  }
  std::erase_if(clock_waits_, [](const ClockWait& wait) { return wait.answer == nullptr; });
  for (const auto& wait : ready) wait.answer(Status::Ok(), {});
  ReleaseBarriers();
}

std::vector<int> WorkerRegistry::Counting() const {
  std::set<int> all;
  for (int worker = 0; worker < expected_; ++worker) all.insert(worker);
  for (const auto& [worker, state] : workers_) all.insert(worker);
  std::erase_if(all, [this](int worker) { return !IsCounted(worker); });
  return {all.begin(), all.end()};
}

std::vector<int> WorkerRegistry::WorkersBehind(uint64_t n, uint32_t staleness) const {
  std::vector<int> behind = Counting();
  std::erase_if(behind, [&](int worker) {
    const auto found = workers_.find(worker);
    return found != workers_.end() && n <= found->second.clock + staleness;
  });
  return behind;
}

std::vector<int> WorkerRegistry::WorkersNotEntered(const std::string& name) const {
  std::vector<int> missing = Counting();
  const auto entered = barriers_.find(name);
  std::erase_if(missing, [&](int worker) {
    return entered != barriers_.end() && entered->second.contains(worker);
  });
  return missing;
}

bool WorkerRegistry::AllEntered(const std::map<int, BarrierWait>& entered) const {
  for (int worker = 0; worker < expected_; ++worker) {
    if (IsCounted(worker) && !entered.contains(worker)) return false;
  }
  return std::all_of(workers_.begin(), workers_.end(), [&](const auto& worker) {
    return !IsCounted(worker.first) || entered.contains(worker.first);
  });
}

void WorkerRegistry::ReleaseBarriers() {
  for (auto at = barriers_.begin(); at != barriers_.end();) {
    if (!at->second.empty() && !AllEntered(at->second)) {
      ++at;
      continue;
    }
    const auto entered = std::move(at->second);
    at = barriers_.erase(at);
    for (const auto& [worker, wait] : entered) {
      auto& passed = workers_[worker].passed;
      passed.push_back(wait.id);
      if (passed.size() > kRememberedBarriers) passed.pop_front();
      wait.answer(Status::Ok(), {});
    }
  }
}

void WorkerRegistry::Save(ByteWriter* writer) const {
  writer->Put(static_cast<uint32_t>(workers_.size()));
  for (const auto& [worker, state] : workers_) {
    writer->Put(int32_t{worker});
    writer->Put(static_cast<uint8_t>(state.joined));
    writer->Put(static_cast<uint8_t>(state.gone));
    writer->Put(state.session);
    writer->Put(state.clock);
    writer->Put(static_cast<uint32_t>(state.passed.size()));
    for (const uint64_t id : state.passed) writer->Put(id);
  }
  writer->Put(static_cast<uint32_t>(barriers_.size()));
  for (const auto& [name, entered] : barriers_) {
    writer->PutString(name);
    writer->Put(static_cast<uint32_t>(entered.size()));
    for (const auto& [worker, wait] : entered) {
      writer->Put(int32_t{worker});
      writer->Put(wait.id);
    }
  }
}

Status WorkerRegistry::Load(ByteReader* reader) {
  uint32_t count = 0;
  TRY(reader->Get(&count));
  for (uint32_t i = 0; i < count; ++i) {
    int32_t worker = 0;
    uint8_t joined = 0, gone = 0;
    uint32_t passed = 0;
    TRY(reader->Get(&worker));
    Worker& state = workers_[worker];
    TRY(reader->Get(&joined));
    TRY(reader->Get(&gone));
    TRY(reader->Get(&state.session));
    TRY(reader->Get(&state.clock));
    TRY(reader->Get(&passed));
    state.joined = joined != 0;
    state.gone = gone != 0;
    for (uint32_t j = 0; j < passed; ++j) {
      uint64_t id = 0;
      TRY(reader->Get(&id));
      state.passed.push_back(id);
    }
  }
  TRY(reader->Get(&count));
  for (uint32_t i = 0; i < count; ++i) {
    std::string_view name;
    uint32_t entered = 0;
    TRY(reader->GetString(&name, kMaxNameBytes));
    TRY(reader->Get(&entered));
    auto& waits = barriers_[std::string(name)];
    for (uint32_t j = 0; j < entered; ++j) {
      int32_t worker = 0;
      uint64_t id = 0;
      TRY(reader->Get(&worker));
      TRY(reader->Get(&id));
      waits[worker] = {id, [](const Status&, std::string_view) {}};
    }
  }
  return Status::Ok();
}

}  // namespace shoal::ps
