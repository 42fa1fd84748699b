#include "engine/marathon/metronome.h"

#include <poll.h>

#include <algorithm>
#include <cstdlib>

#include "engine/marathon/app_spec.h"
#include "engine/marathon/metronome_spec.h"
#include "engine/marathon/service_client.h"

namespace shoal::engine {
namespace {

using marathon::MetronomeJob;
using marathon::ServiceClient;

constexpr int kNotFound = 404;
constexpr std::chrono::seconds kEndPatience{60};
constexpr const char* kEmbedded = "?embed=activeRuns&embed=schedules&embed=historySummary";

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string PathOf(const std::string& id) { return "/v1/jobs/" + id; }

class Metronome final : public Schedules {
 public:
  explicit Metronome(MetronomeOptions options) : options_(std::move(options)) {}

  Result<std::string> Describe(const job::Job& job, const ScheduledRun& run) override;
  Result<bool> Put(const job::Job& job, const ScheduledRun& run) override;
  Result<std::vector<ScheduleStatus>> List() override;
  Status Remove(const std::string& name, bool stop) override;
  Result<std::string> RunNow(const std::string& name) override;

 private:
  std::string MarathonUrl() const {
    return options_.settings_url.empty() ? Variable("SHOAL_MARATHON_URL") : options_.settings_url;
  }
  json::object JobOf(const job::Job& job, const ScheduledRun& run) const {
    const std::string& asked = job.marathon.program;
    return marathon::MakeScheduledJob(job, run, asked.empty() ? options_.program : asked,
                                      MarathonUrl());
  }
  Status Check(const job::Job& job) const;
  Result<std::unique_ptr<ServiceClient>> Client() const;
  Status PutSchedule(const ServiceClient& client, const std::string& id,
                     const json::object& schedule) const;
  // The Shoal job of that name.
  Result<MetronomeJob> Find(const ServiceClient& client, const std::string& name) const;
  Result<MetronomeJob> Get(const ServiceClient& client, const std::string& id) const;
  Status EndRuns(const ServiceClient& client, const MetronomeJob& job) const;

  const MetronomeOptions options_;
};

Result<std::unique_ptr<ServiceClient>> Metronome::Client() const {
  TRY_ASSIGN(const std::string url,
             marathon::MetronomeUrl(Variable("SHOAL_METRONOME_URL"), MarathonUrl()));
  TRY_ASSIGN(const marathon::Credentials credentials, marathon::CredentialsFromEnvironment());
  return ServiceClient::Make("Metronome", url, options_.authorities, credentials);
}

// In addition to the checks of every Marathon job: that the controller, which Metronome starts, can
// authenticate there.
Status Metronome::Check(const job::Job& job) const {
  DesiredJob desired;
  desired.job_id = job.name;
  desired.job_dir = "/";
  desired.image = job.image;
  desired.marathon = job.marathon;
  TRY(marathon::CheckSettings(desired));
  const std::string url = MarathonUrl();
  if (url.empty())
    return InvalidArgument(
        "the address of Marathon, to which each run goes, is not configured: set "
        "SHOAL_MARATHON_URL, or "
        "marathon.url in the job file");
  for (const char* name : {"SHOAL_MARATHON_TOKEN", "SHOAL_MARATHON_USER"}) {
    if (Variable(name).empty() || !Variable("SHOAL_MARATHON_CREDENTIALS").empty()) continue;
    const auto& secrets = job.schedule.secrets;
    const bool given =
        secrets.contains("SHOAL_MARATHON_TOKEN") || secrets.contains("SHOAL_MARATHON_USER");
    if (given) continue;
    return InvalidArgument(
        std::string("schedule.secrets: Marathon is asked with ") + name +
        " here, and the scheduled runs would not have it, because Metronome shows its jobs to "
        "everybody; put it into the cluster's secret store and write schedule: {secrets: {" +
        name + ": PATH}}, or let SHOAL_MARATHON_CREDENTIALS name a file that the agents see");
  }
  return Status::Ok();
}

Result<std::string> Metronome::Describe(const job::Job& job, const ScheduledRun& run) {
  TRY(Check(job));
  const std::string path = PathOf(marathon::MetronomeId(job.marathon, job.name));
  return ToPrettyText(JobOf(job, run)) + "\n# Sent by POST /v1/jobs of Metronome, or by PUT " +
         path + " where it is there already\n" +
         ToPrettyText(marathon::MakeSchedule(job.schedule)) + "\n# Sent by POST " + path +
         "/schedules, or by PUT " + path + "/schedules/" + marathon::kScheduleId + "\n";
}

Status Metronome::PutSchedule(const ServiceClient& client, const std::string& id,
                              const json::object& schedule) const {
  const std::string path = PathOf(id) + "/schedules";
  TRY_ASSIGN(
      const net::HttpReply put,
      client.Call(client.Request("PUT", path + "/" + marathon::kScheduleId, schedule), kNotFound));
  if (put.status != kNotFound) return Status::Ok();
  return client.Call(client.Request("POST", path, schedule)).status();
}

Result<bool> Metronome::Put(const job::Job& job, const ScheduledRun& run) {
  TRY(Check(job));
  TRY_ASSIGN(const auto client, Client());
  const json::object wanted = JobOf(job, run);
  const std::string id = marathon::MetronomeId(job.marathon, job.name);
  const std::string target = PathOf(id) + kEmbedded;
  TRY_ASSIGN(const net::HttpReply there, client->Call(client->Request("GET", target), kNotFound));
  const bool fresh = there.status == kNotFound;
  if (!fresh) {
    const auto known = marathon::DecodeMetronomeJob(there.body);
    if (!known.ok()) return client->Unreadable(target, known.status());
    if (known->status.name != job.name)
      return FailedPrecondition("Metronome's job " + id +
                                " was not made by `shoal schedule`, and is left alone; give this "
                                "one another name, or another marathon.group");
  }
  TRY(client
          ->Call(fresh ? client->Request("POST", "/v1/jobs", wanted)
                       : client->Request("PUT", PathOf(id), wanted))
          .status());
  const Status scheduled = PutSchedule(*client, id, marathon::MakeSchedule(job.schedule));
  if (scheduled.ok()) return fresh;
  if (fresh)
    (void)client->Call(
        client->Request("DELETE", PathOf(id)));  // without a schedule it would never run
  return scheduled;
}

Result<MetronomeJob> Metronome::Get(const ServiceClient& client, const std::string& id) const {
  const std::string target = PathOf(id) + kEmbedded;
  TRY_ASSIGN(const net::HttpReply reply, client.Call(client.Request("GET", target)));
  auto job = marathon::DecodeMetronomeJob(reply.body);
  if (!job.ok()) return client.Unreadable(target, job.status());
  return job;
}

Result<std::vector<ScheduleStatus>> Metronome::List() {
  TRY_ASSIGN(const auto client, Client());
  TRY_ASSIGN(const net::HttpReply reply, client->Call(client->Request("GET", "/v1/jobs")));
  const auto jobs = marathon::DecodeMetronomeJobs(reply.body);
  if (!jobs.ok()) return client->Unreadable("/v1/jobs", jobs.status());
  std::vector<ScheduleStatus> list;
  for (const MetronomeJob& job : *jobs) {
    if (job.status.name.empty()) continue;
    TRY_ASSIGN(const MetronomeJob whole, Get(*client, job.id));
    list.push_back(whole.status);
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return list;
}

Result<MetronomeJob> Metronome::Find(const ServiceClient& client, const std::string& name) const {
  TRY_ASSIGN(const net::HttpReply reply, client.Call(client.Request("GET", "/v1/jobs")));
  const auto jobs = marathon::DecodeMetronomeJobs(reply.body);
  if (!jobs.ok()) return client.Unreadable("/v1/jobs", jobs.status());
  std::string id;
  for (const MetronomeJob& job : *jobs) {
    if (job.status.name != name) continue;
    if (!id.empty())
      return FailedPrecondition("Metronome has two scheduled jobs " + name + ", " + id + " and " +
                                job.id + "; `DELETE /v1/jobs/ID` removes one");
    id = job.id;
  }
  if (id.empty())
    return NotFound("no job " + name + " is scheduled with Metronome at " + client.url() +
                    "; `shoal schedule --list --engine marathon` shows those that are");
  return Get(client, id);
}

// Returns when the job has no active run in Metronome.
Status Metronome::EndRuns(const ServiceClient& client, const MetronomeJob& job) const {
  for (const std::string& run : job.status.active)
    TRY(client
            .Call(client.Request("POST", PathOf(job.id) + "/runs/" + run + "/actions/stop"),
                  kNotFound)
            .status());
  const TimePoint until = options_.clock->Now() + kEndPatience;
  for (;;) {
    TRY_ASSIGN(const MetronomeJob now, Get(client, job.id));
    if (now.status.active.empty()) return Status::Ok();
    if (options_.clock->Now() > until)
      return DeadlineExceeded("run " + now.status.active.front() + " of Metronome's job " + job.id +
                              " does not end though it was told to; its schedule is removed");
    ::poll(nullptr, 0, static_cast<int>(options_.poll.count()));
  }
}

Status Metronome::Remove(const std::string& name, bool stop) {
  TRY_ASSIGN(const auto client, Client());
  TRY_ASSIGN(const MetronomeJob job, Find(*client, name));
  if (!stop && !job.status.active.empty())
    return FailedPrecondition(
        "run " + job.status.active.front() + " of the scheduled job " + name +
        " is not over; wait for it, or add --now, which lets it save and end");
  TRY(client
          ->Call(client->Request("DELETE", PathOf(job.id) + "/schedules/" + marathon::kScheduleId),
                 kNotFound)
          .status());
  if (stop) TRY(EndRuns(*client, job));
  return client->Call(client->Request("DELETE", PathOf(job.id)), kNotFound).status();
}

Result<std::string> Metronome::RunNow(const std::string& name) {
  TRY_ASSIGN(const auto client, Client());
  TRY_ASSIGN(const MetronomeJob job, Find(*client, name));
  const std::string target = PathOf(job.id) + "/runs";
  TRY_ASSIGN(const net::HttpReply reply, client->Call(client->Request("POST", target)));
  auto run = marathon::DecodeMetronomeRun(reply.body);
  if (!run.ok()) return client->Unreadable(target, run.status());
  return run;
}

}  // namespace

std::unique_ptr<Schedules> MakeMetronome(MetronomeOptions options) {
  return std::make_unique<Metronome>(std::move(options));
}

}  // namespace shoal::engine
