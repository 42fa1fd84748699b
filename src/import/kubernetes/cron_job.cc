#include "import/kubernetes/cron_job.h"

#include "import/kubernetes/pod_settings.h"

namespace shoal::importer {
namespace {

void ReadSchedule(FieldReader* spec, job::Schedule* schedule) {
  spec->set_at("schedule");
  schedule->cron = spec->ReadText("schedule").value_or("");
  schedule->time_zone = spec->ReadText("timeZone").value_or("UTC");
  schedule->enabled = !spec->ReadFlag("suspend").value_or(false);
  if (const auto seconds = spec->ReadInteger("startingDeadlineSeconds", 1, 31'536'000))
    schedule->start_deadline = std::chrono::seconds(*seconds);
  const std::string policy =
      spec->ReadChoice("concurrencyPolicy", {"Allow", "Forbid", "Replace"}).value_or("Allow");
  schedule->concurrency = policy == "Allow"    ? job::Concurrency::kAllow
                          : policy == "Forbid" ? job::Concurrency::kForbid
                                               : job::Concurrency::kReplace;
  if (schedule->cron.empty())
    spec->AddError("schedule", "got no schedule, expected one such as 30 2 * * *");
}

}  // namespace

std::optional<FieldReader> ReadCronJob(FieldReader* document, std::string_view definition,
                                       std::string_view job_template, JobBuilder* builder) {
  auto spec = document->ReadObject("spec");
  if (!spec) {
    document->AddError("spec", "got no spec, expected one with schedule and jobTemplate");
    return std::nullopt;
  }
  ReadSchedule(&*spec, &builder->job()->schedule);
  auto pattern = spec->ReadObject("jobTemplate");
  spec->ReportUnread(definition);
  spec->AddLoss(
      "schedule",
      "it ran at its times; `shoal schedule` has it run at them, `shoal run` runs it once, "
      "now",
      true);
  if (!pattern) {
    spec->AddError("jobTemplate", "got no jobTemplate, expected one with the job's spec");
    return std::nullopt;
  }
  if (auto metadata = pattern->ReadObject("metadata")) {
    ReadPodMetadata(&*metadata, &builder->job()->kubernetes);
    metadata->ReportUnread("PodTemplateMeta");
  }
  auto inner = pattern->ReadObject("spec");
  pattern->ReportUnread(job_template);
  if (!inner) pattern->AddError("spec", "got no spec, expected one as a Job has it");
  return inner;
}

}  // namespace shoal::importer
