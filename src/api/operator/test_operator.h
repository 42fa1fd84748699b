// Doubles of the two sides of the operator: a cluster's objects, with versions, conflicts and lost
// answers, and a server's jobs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/operator/reconciler.h"

namespace shoal::api {

inline constexpr const char* kTestServer = "store-1";

// An object as a person applied it, before the operator has seen it.
inline ShoalJob TestObject(const std::string& name = "test", const std::string& uid = "uid-1",
                           const std::string& job = R"({"roles":{"worker":{"replicas":2}}})") {
  ShoalJob object;
  object.key = {"research", name};
  object.uid = uid;
  object.version = "1";
  object.generation = 1;
  object.job = ParseJsonObject(job).value();
  return object;
}

inline std::string ConditionOf(const ShoalJob& object, std::string_view type,
                               std::string_view field = "status") {
  const json::value* const list = object.status.if_contains("conditions");
  if (list == nullptr) return "";
  for (const json::value& one : list->as_array())
    if (GetStringOr(one.as_object(), "type", "") == type)
      return GetStringOr(one.as_object(), field, "");
  return "";
}

// What an API server does with these objects: versions, finalizers, conflicts.
class FakeCluster final : public ShoalJobApi {
 public:
  Result<ShoalJob> Get(const ResourceKey& key) override {
    const auto found = objects.find(key);
    if (found == objects.end()) return NotFound("there is no " + key.text());
    return found->second;
  }
  Result<ShoalJob> SetFinalizers(const ShoalJob& object,
                                 const std::vector<std::string>& finalizers) override {
    TRY_ASSIGN(ShoalJob * current, Check(object));
    current->finalizers = finalizers;
    const ShoalJob changed = Touch(current);
    if (changed.deleting && finalizers.empty()) objects.erase(object.key);
    return changed;
  }
  Result<ShoalJob> SetStatus(const ShoalJob& object, const json::object& status) override {
    TRY_ASSIGN(ShoalJob * current, Check(object));
    current->status = status;
    ++status_writes;
    return Touch(current);
  }
  void Announce(const ShoalJob& /*object*/, bool warning, const std::string& reason,
                const std::string& message) override {
    announced.push_back((warning ? "W " : "N ") + reason + ": " + message);
  }

  ShoalJob Touch(ShoalJob* object) {
    object->version = std::to_string(++version);
    return *object;
  }
  // `kubectl delete`.
  void Delete(const ResourceKey& key) {
    ShoalJob& object = objects.at(key);
    object.deleting = true;
    Touch(&object);
    if (object.finalizers.empty()) objects.erase(key);
  }

  std::map<ResourceKey, ShoalJob> objects;
  int version = 100;
  int status_writes = 0;
  std::deque<Status> failures;  // of the next changes
  std::vector<std::string> announced;

 private:
  Result<ShoalJob*> Check(const ShoalJob& object) {
    if (!failures.empty()) {
      const Status failure = failures.front();
      failures.pop_front();
      if (!failure.ok()) return failure;
    }
    const auto found = objects.find(object.key);
    if (found == objects.end()) return NotFound("there is no " + object.key.text());
    if (found->second.uid != object.uid || found->second.version != object.version)
      return AlreadyExists("the object has been modified");
    return &found->second;
  }
};

// A server that stores what is submitted by the uid.
class FakeJobs final : public OperatorJobs {
 public:
  Result<std::optional<OperatedJob>> Find(const ShoalJob& object) override {
    if (!find_error.ok()) return find_error;
    const auto found = jobs.find(object.uid);
    const auto read = found == jobs.end() ? std::nullopt : std::optional(found->second);
    if (after_find) after_find();
    return read;
  }
  Status Submit(const ShoalJob& object) override {
    ++attempts;
    if (!submit_error.ok()) return submit_error;
    EXPECT_FALSE(jobs.contains(object.uid)) << "submitted twice";
    OperatedJob job;
    job.id = object.key.name + "-" + object.uid;
    job.digest = FrozenDigest(object.job);
    job.replicas = ReplicasOf(object.job);
    job.released = false;
    job.tasks.total = job.workers.total = 2;
    jobs[object.uid] = job;
    return answer_lost;
  }
  Status Scale(const OperatedJob& /*job*/, const std::string& role, int replicas) override {
    calls.push_back("scale " + role + " " + std::to_string(replicas));
    return change_error;
  }
  Status Suspend(const OperatedJob& /*job*/) override { return Note("suspend"); }
  Status Resume(const OperatedJob& /*job*/) override { return Note("resume"); }
  Status Stop(const OperatedJob& /*job*/) override { return Note("stop"); }

  void End(const std::string& uid, job::JobState state, bool released = true) {
    jobs.at(uid).state = state;
    jobs.at(uid).released = released;
  }

  std::map<std::string, OperatedJob> jobs;  // by uid
  std::function<void()> after_find;         // after the record was read
  std::vector<std::string> calls;
  int attempts = 0;
  Status find_error;
  Status submit_error;
  Status answer_lost;  // of a submission that succeeds
  Status change_error;

 private:
  Status Note(const char* what) {
    calls.emplace_back(what);
    return change_error;
  }
};

}  // namespace shoal::api
