#include "dialect/import/cron_job.h"

#include "dialect/import/pod_wishes.h"

namespace shoal::dialect {
namespace {

void ReadSchedule(Section* spec, job::Schedule* schedule) {
  spec->set_at("schedule");
  schedule->cron = spec->Text("schedule").value_or("");
  schedule->time_zone = spec->Text("timeZone").value_or("UTC");
  schedule->enabled = !spec->Flag("suspend").value_or(false);
  if (const auto seconds = spec->Integer("startingDeadlineSeconds", 1, 31'536'000))
    schedule->start_deadline = std::chrono::seconds(*seconds);
  const std::string policy =
      spec->Choice("concurrencyPolicy", {"Allow", "Forbid", "Replace"}).value_or("Allow");
  schedule->concurrency = policy == "Allow" ? job::Concurrency::kAllow : job::Concurrency::kForbid;
  if (policy == "Replace") {
    spec->Lose("concurrencyPolicy",
               "Replace stopped the run before when its time had come again; not kept: the new run "
               "is left out while the one before goes on");
  }
  if (schedule->cron.empty())
    spec->Wrong("schedule", "got no schedule, expected one such as 30 2 * * *");
}

}  // namespace

std::optional<Section> ReadCronJob(Section* document, std::string_view definition,
                                   std::string_view job_template, JobBuilder* builder) {
  auto spec = document->Sub("spec");
  if (!spec) {
    document->Wrong("spec", "got no spec, expected one with schedule and jobTemplate");
    return std::nullopt;
  }
  ReadSchedule(&*spec, &builder->job()->schedule);
  auto pattern = spec->Sub("jobTemplate");
  spec->Rest(definition);
  spec->Lose("schedule",
             "it ran at its times; `shoal schedule` has it run at them, `shoal run` runs it once, "
             "now",
             true);
  if (!pattern) {
    spec->Wrong("jobTemplate", "got no jobTemplate, expected one with the job's spec");
    return std::nullopt;
  }
  if (auto metadata = pattern->Sub("metadata")) {
    KeepPodMetadata(&*metadata, &builder->job()->kubernetes);
    metadata->Rest("PodTemplateMeta");
  }
  auto inner = pattern->Sub("spec");
  pattern->Rest(job_template);
  if (!inner) pattern->Wrong("spec", "got no spec, expected one as a Job has it");
  return inner;
}

}  // namespace shoal::dialect
