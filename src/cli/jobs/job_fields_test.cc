// The promise of the job file's schema: on each engine each field changes the plan or the request,
// is reported as ignored, or is refused. Fields that coordinator and controller handle alike for
// every engine are listed with their tests; a new field fails here until it is one of these.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "cli/jobs/engines.h"
#include "cli/jobs/load_job.h"
#include "controller/membership/desired_job.h"
#include "controller/run/unused_fields.h"
#include "job/execution/plan.h"
#include "job/file/fields.h"
#include "job/file/parse.h"

namespace shoal::cli {
namespace {

constexpr const char* kBase =
    "name: base\nimage: acme/train:1\ncommand: [python, train.py]\n"
    "kubernetes: {launcher: acme/launcher}\nmarathon: {url: 'http://127.0.0.1:1'}\n"
    "roles:\n  a: {replicas: 2, ports: [p, q]}\n  b: {replicas: 2, ports: [p]}\n";

using Words = std::vector<std::string>;

// A --set argument that gives a field a value other than its default; empty: not one of these.
const std::map<std::string, Words> kSamples = {
    {"name", {"name=other"}},
    {"framework", {"framework=tensorflow"}},
    {"queue", {"queue=research"}},
    {"priority", {"priority=7"}},
    {"image", {"image=acme/other:2"}},
    {"container.volumes", {"container.volumes=/in:/in"}},
    {"container.work_dir", {"container.work_dir=/work"}},
    {"container.user", {"container.user=12:34"}},
    {"container.pids", {"container.pids=99"}},
    {"container.shm", {"container.shm=2Gi"}},
    {"container.network", {"container.network=job"}},
    {"files", {"files=code"}},
    {"command", {"command=[other]"}},
    {"env", {"env.A=b"}},
    {"learn", {"learn.dim=3"}},
    {"roles.*.replicas", {"roles.a.replicas=3"}},
    {"roles.*.min", {"roles.a.min=1"}},
    {"roles.*.max", {"roles.a.max=5"}},
    {"roles.*.processes", {"roles.a.processes=2"}},
    {"roles.*.resources.cpu", {"roles.a.resources.cpu=3"}},
    {"roles.*.resources.memory", {"roles.a.resources.memory=3Gi"}},
    {"roles.*.resources.gpu", {"roles.a.resources.gpu=2"}},
    {"roles.*.resources.requests.cpu", {"roles.a.resources.requests.cpu=1.5"}},
    {"roles.*.resources.requests.memory", {"roles.a.resources.requests.memory=3Gi"}},
    {"roles.*.command", {"roles.a.command=[other]"}},
    {"roles.*.args", {"roles.a.args=[more]"}},
    {"roles.*.env", {"roles.a.env.A=b"}},
    {"roles.*.ports", {"roles.a.ports=[z]"}},
    {"roles.*.follows", {"roles.b.follows=a"}},
    {"roles.*.restart.when", {"roles.a.restart.when=never"}},
    {"roles.*.restart.limit", {"roles.a.restart.limit=9"}},
    {"roles.*.restart.scope", {"roles.a.restart.scope=job"}},
    {"roles.*.on_exit", {"roles.a.on_exit=[{code: 3, action: retry}]"}},
    {"roles.*.on_log", {"roles.a.on_log=[{line: x, action: fail}]"}},
    {"roles.*.checkpoint_signal", {"roles.a.checkpoint_signal=SIGUSR1"}},
    {"roles.*.after.role", {"roles.a.after.role=b"}},
    {"roles.*.slurm.partition", {"roles.a.slurm.partition=x"}},
    {"roles.*.slurm.account", {"roles.a.slurm.account=x"}},
    {"roles.*.slurm.qos", {"roles.a.slurm.qos=x"}},
    {"roles.*.slurm.constraint", {"roles.a.slurm.constraint=x"}},
    {"roles.*.slurm.reservation", {"roles.a.slurm.reservation=x"}},
    {"roles.*.slurm.gpu_type", {"roles.a.resources.gpu=1", "roles.a.slurm.gpu_type=x"}},
    {"roles.*.slurm.nodes", {"roles.a.slurm.nodes=2"}},
    {"roles.*.slurm.options", {"roles.a.slurm.options=--licenses=x"}},
    {"roles.*.health.tcp", {"roles.a.health.tcp=p"}},
    {"roles.*.health.http.port", {"roles.a.health.http.port=p"}},
    {"roles.*.health.http.path", {"roles.a.health.http.port=p", "roles.a.health.http.path=/x"}},
    {"roles.*.health.command", {"roles.a.health.command=[x]"}},
    {"roles.*.health.grace", {"roles.a.health.tcp=p", "roles.a.health.grace=7s"}},
    {"roles.*.health.every", {"roles.a.health.tcp=p", "roles.a.health.every=7s"}},
    {"roles.*.health.timeout", {"roles.a.health.tcp=p", "roles.a.health.timeout=7s"}},
    {"roles.*.health.failures", {"roles.a.health.tcp=p", "roles.a.health.failures=7"}},
    {"success.all", {"success.all=a"}},
    {"success.any", {"success.any=a"}},
    {"success.first", {"success.first=a"}},
    {"success.count", {"success.count=1"}},
    {"success.of", {"success.count=1", "success.of=a"}},
    {"checkpoint.every", {"checkpoint.every=60s"}},
    {"checkpoint.keep", {"checkpoint.every=60s", "checkpoint.keep=5"}},
    {"store", {"store=/mnt/x"}},
    {"limits.stall", {"limits.stall=33s"}},
    {"limits.on_stall", {"limits.on_stall=fail"}},
    {"limits.keep_records", {"limits.keep_records=33s"}},
    {"outputs", {"outputs.a=/x/y", "outputs.b=/x/z"}},
    {"slurm.partition", {"slurm.partition=x"}},
    {"slurm.account", {"slurm.account=x"}},
    {"slurm.qos", {"slurm.qos=x"}},
    {"slurm.constraint", {"slurm.constraint=x"}},
    {"slurm.reservation", {"slurm.reservation=x"}},
    {"slurm.gpu_type", {"roles.a.resources.gpu=1", "slurm.gpu_type=x"}},
    {"slurm.nodes", {"slurm.nodes=3"}},
    {"slurm.time", {"slurm.time=4h"}},
    {"slurm.save_before", {"slurm.time=4h", "slurm.save_before=5m"}},
    {"slurm.requeue", {"slurm.requeue=false"}},
    {"slurm.exclusive", {"slurm.exclusive=true"}},
    {"slurm.options", {"slurm.options=--licenses=x"}},
    {"marathon.group", {"marathon.group=/x"}},
    {"marathon.containerizer", {"marathon.containerizer=mesos"}},
    {"marathon.program", {"marathon.program=/x/shoal"}},
    {"marathon.user", {"marathon.user=x"}},
    {"marathon.constraints", {"marathon.constraints=a:LIKE:b"}},
    {"marathon.fetch", {"marathon.fetch=http://x/y"}},
    {"marathon.accepted_roles", {"marathon.accepted_roles=x"}},
    {"marathon.parameters", {"marathon.parameters=a=b"}},
    {"marathon.secrets", {"marathon.secrets.A=b"}},
    {"marathon.backoff", {"marathon.backoff=7s"}},
    {"marathon.longest_backoff", {"marathon.longest_backoff=77s"}},
    {"marathon.unreachable", {"marathon.unreachable=77s"}},
    {"marathon.port", {"marathon.port=7777"}},
    {"marathon.privileged", {"marathon.privileged=true"}},
    {"marathon.force_pull", {"marathon.force_pull=true"}},
    {"schedule.cron", {"schedule.cron=1 2 * * *"}},
    {"schedule.time_zone", {"schedule.cron=1 2 * * *", "schedule.time_zone=Europe/Berlin"}},
    {"schedule.concurrency", {"schedule.cron=1 2 * * *", "schedule.concurrency=allow"}},
    {"schedule.enabled", {"schedule.cron=1 2 * * *", "schedule.enabled=false"}},
    {"kubernetes.namespace", {"kubernetes.namespace=x"}},
    {"kubernetes.launcher", {"kubernetes.launcher=x"}},
    {"kubernetes.labels", {"kubernetes.labels=a=b"}},
    {"kubernetes.annotations", {"kubernetes.annotations=a=b"}},
    {"kubernetes.node_selector", {"kubernetes.node_selector=a=b"}},
    {"kubernetes.tolerations", {"kubernetes.tolerations=a=b"}},
    {"kubernetes.service_account", {"kubernetes.service_account=x"}},
    {"kubernetes.image_pull_secrets", {"kubernetes.image_pull_secrets=x"}},
    {"kubernetes.priority_class", {"kubernetes.priority_class=x"}},
    {"kubernetes.runtime_class", {"kubernetes.runtime_class=x"}},
    {"kubernetes.volumes", {"kubernetes.volumes=pvc:x:/y"}},
    {"kubernetes.affinity", {"kubernetes.affinity={podAffinity: {}}"}},
    {"kubernetes.topology_spread",
     {"kubernetes.topology_spread=[{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: "
      "DoNotSchedule}]"}},
    {"kubernetes.security_context", {"kubernetes.security_context={fsGroup: 1}"}},
    {"kubernetes.container_security_context",
     {"kubernetes.container_security_context={readOnlyRootFilesystem: true}"}},
    {"kubernetes.host_network", {"kubernetes.host_network=true"}},
    {"kubernetes.gpu_resource", {"roles.a.resources.gpu=1", "kubernetes.gpu_resource=x.y/gpu"}},
    {"kubernetes.resources", {"kubernetes.resources=rdma/hca=1"}},
};

// Fields of the coordinator, the controller or a connection: alike on every engine and invisible to
// it. The file contains their test.
const std::map<std::string, std::string>& ActsElsewhere() {
  static const std::map<std::string, std::string> shown_by = {
      {"data.*.source", "tests/e2e/python/data_test.py"},
      {"data.*.format", "tests/e2e/python/data_test.py"},
      {"data.*.shard_by", "tests/e2e/python/data_test.py"},
      {"data.*.table", "tests/e2e/server/catalog_test.py"},
      {"data.*.columns", "tests/e2e/server/catalog_test.py"},
      {"learn", "src/learn/params/params_test.cc"},
      {"framework", "src/framework/framework_variables_test.cc"},
      {"files", "tests/e2e/files_test.py"},
      {"roles.*.restart.when", "src/rendezvous/lifecycle/core_test.cc"},
      {"roles.*.restart.limit", "src/rendezvous/lifecycle/core_test.cc"},
      {"roles.*.restart.scope", "src/rendezvous/lifecycle/core_test.cc"},
      {"roles.*.restart.backoff", "src/rendezvous/lifecycle/core_test.cc"},
      {"roles.*.restart.backoff_max", "src/rendezvous/lifecycle/core_test.cc"},
      {"roles.*.after.role", "src/rendezvous/lifecycle/core_random_test.cc"},
      {"roles.*.after.when", "src/rendezvous/lifecycle/core_random_test.cc"},
      {"roles.*.health.http.path", "tests/e2e/marathon_test.py"},
      {"roles.*.ready.tcp", "src/rendezvous/launcher/ready_check_test.cc"},
      {"roles.*.ready.http.port", "src/rendezvous/launcher/ready_check_test.cc"},
      {"roles.*.ready.http.path", "src/rendezvous/launcher/ready_check_test.cc"},
      {"roles.*.ready.command", "src/rendezvous/launcher/ready_check_test.cc"},
      {"roles.*.ready.log", "src/rendezvous/launcher/ready_check_test.cc"},
      {"roles.*.ready.every", "src/rendezvous/launcher/ready_check_test.cc"},
      {"roles.*.ready.timeout", "src/rendezvous/lifecycle/core_random_test.cc"},
      {"limits.gather", "src/rendezvous/lifecycle/core_test.cc"},
      {"limits.deadline", "src/rendezvous/lifecycle/core_test.cc"},
      {"limits.stop_grace", "src/rendezvous/lifecycle/core_test.cc"},
      {"limits.restarts", "src/rendezvous/lifecycle/core_test.cc"},
      {"limits.coordinator_timeout", "src/rendezvous/integration/lifecycle_test.cc"},
      {"on_controller_loss", "src/rendezvous/lifecycle/core_test.cc"},
      {"marathon.url", "src/engine/marathon/metronome_test.cc"},
      {"marathon.authorities", "src/engine/marathon/metronome_test.cc"},
      {"schedule.start_deadline", "src/engine/marathon/metronome_test.cc"},
      {"schedule.missed", "src/controller/schedules/schedules_test.cc"},
      {"after", "tests/e2e/server/triggers_test.py"},
      {"matrix", "src/job/spec/members_test.cc"},
      {"sweep.objective", "tests/e2e/server/triggers_test.py"},
      {"sweep.goal", "tests/e2e/server/triggers_test.py"},
      {"sweep.search", "src/job/spec/members_test.cc"},
      {"sweep.trials", "src/job/spec/members_test.cc"},
      {"sweep.seed", "src/job/spec/members_test.cc"},
      {"sweep.limit", "tests/e2e/server/triggers_test.py"},
      {"sweep.parameters", "src/job/spec/members_test.cc"},
      {"sweep.stop.first", "tests/e2e/server/triggers_test.py"},
      {"sweep.stop.by", "tests/e2e/server/triggers_test.py"},
      {"sweep.stop.reduction", "tests/e2e/server/triggers_test.py"},
      {"schedule.secrets", "src/engine/marathon/metronome_test.cc"},
      {"kubernetes.context", "src/engine/kubernetes/kube_config_test.cc"},
  };
  return shown_by;
}

// The plan and the request to the engine, without the job's own text.
std::string Planned(const job::Job& job, const std::string& name) {
  std::ostringstream text;
  const auto plan = job::MakePlan(job);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  json::object object = job::PlanToJson(job, *plan);
  object.erase("queue");  // told, not acted on
  // Requests count in the totals only; the request to an engine contains them.
  object.erase("total");
  text << object << "\n";
  auto engine = MakeEngine(name);
  EXPECT_TRUE(engine.ok());
  controller::DesiredJobPaths places{"/home/me/jobs/x", "/home/me", "/usr/bin/shoal",
                                     (*engine)->SharesJobDirectory()};
  const auto desired = controller::MakeDesiredJob(job, "x", places, {});
  EXPECT_TRUE(desired.ok()) << desired.status().message();
  const auto sent = (*engine)->Describe(*desired);
  if (sent.ok()) {
    text << *sent;
  } else if (sent.status().code() != Code::kUnimplemented) {
    text << "refused: " << sent.status().message();
  }
  return text.str();
}

std::string Told(const job::Job& job, const std::string& engine) {
  std::string text;
  for (const controller::UnusedField& unused : controller::UnusedFields(job, engine))
    text += unused.sentence + "\n";
  return text;
}

Result<job::Job> WithField(const Words& set) {
  job::FieldLocations places;
  TRY_ASSIGN(job::Job job, job::ParseJob(kBase, "job.yaml", set, &places));
  TRY(CheckJob(job, learn::DataLocation::kRemote, places));
  return job;
}

// A field of a role's pods accepts the values of the job's field.
std::map<std::string, Words> SamplesOf(const std::string& path) {
  constexpr std::string_view kOfRole = "roles.*.";
  if (const auto own = kSamples.find(path); own != kSamples.end()) return {*own};
  if (!path.starts_with("roles.*.kubernetes.")) return {};
  const auto of_job = kSamples.find(path.substr(kOfRole.size()));
  if (of_job == kSamples.end()) return {};
  return {{path, {"roles.a." + of_job->second.front()}}};
}

// The base job has an image and cluster sections, so notes on them are always present: "image: …",
// "kubernetes, marathon: …".
bool ToldInBase(const std::string& told, const std::string& path) {
  std::istringstream lines(told);
  std::string section = path.substr(0, path.find('.'));
  if (section == "roles") section = "kubernetes";
  for (std::string line; std::getline(lines, line);) {
    const std::string names = ", " + line.substr(0, line.find(':')) + ", ";
    for (const std::string& name : {path, section}) {
      const bool whole = name == path || name == "kubernetes" || name == "marathon";
      if (whole && names.find(", " + name + ", ") != std::string::npos) return true;
    }
  }
  return false;
}

// Docker requests have no description; tests/cluster/docker_test.py checks them with a real daemon.
bool ActsOnDocker(const std::string& path) {
  return path == "image" || path.starts_with("container.");
}

TEST(JobFields, EachOneActsOnEachEngineOrIsToldOrRefused) {
  const auto base = WithField({});
  ASSERT_TRUE(base.ok()) << base.status().message();
  std::map<std::string, std::string> planned;
  for (const std::string& engine : EngineNameList()) planned[engine] = Planned(*base, engine);
  for (const job::Field& field : job::Fields()) {
    if (field.apply == nullptr) continue;  // a section
    const std::string path(field.path);
    const auto samples = SamplesOf(path);
    const auto sample = samples.begin();
    if (sample == samples.end()) {
      EXPECT_TRUE(ActsElsewhere().contains(path)) << path << " is in neither list";
      continue;
    }
    const auto job = WithField(sample->second);
    if (!job.ok()) continue;  // refused
    // A field that needs another one is compared with the job that has that one alone.
    const auto before = WithField(Words(sample->second.begin(), sample->second.end() - 1));
    ASSERT_TRUE(before.ok()) << path;
    for (const std::string& engine : EngineNameList()) {
      const std::string without =
          sample->second.size() == 1 ? planned[engine] : Planned(*before, engine);
      const bool acts = Planned(*job, engine) != without;
      const bool told = !Told(*job, engine).empty() && Told(*job, engine) != Told(*base, engine);
      EXPECT_TRUE(acts || told || ToldInBase(Told(*base, engine), path) ||
                  ActsElsewhere().contains(path) || (engine == "docker" && ActsOnDocker(path)))
          << path << " on " << engine << " does nothing, unsaid";
    }
  }
}

TEST(JobFields, WhatActsElsewhereIsShownByATest) {
  for (const auto& [path, file] : ActsElsewhere()) {
    EXPECT_NE(job::FindField(path), nullptr) << path << " is no field";
    std::ifstream in(std::string(SHOAL_SOURCE_DIR) + "/" + file);
    EXPECT_TRUE(in.good()) << file;
  }
}

TEST(JobFields, RefusedWhereTheirLossWouldChangeTheData) {
  const auto stored = WithField({"store=/mnt/x"});
  ASSERT_FALSE(stored.ok());
  EXPECT_NE(stored.status().message().find("SHOAL_HOME"), std::string::npos);
}

TEST(JobFields, NothingIsToldOfAPlainJob) {
  const auto job = job::ParseJob("command: [a]\nroles: {a: 2}\n", "job.yaml");
  ASSERT_TRUE(job.ok());
  for (const std::string& engine : EngineNameList()) EXPECT_EQ(Told(*job, engine), "");
}

}  // namespace
}  // namespace shoal::cli
