#include "rendezvous/bootstrap/job_files.h"

#include <charconv>

#include "base/file.h"
#include "job/execution/job_dir.h"
#include "job/spec/json.h"
#include "rendezvous/protocol/coordinator_connection.h"

namespace shoal::rendezvous {

Result<JobFiles> ReadJobFiles(const std::string& job_dir) {
  constexpr size_t kMaxJobFile = 16 << 20;
  JobFiles files;
  TRY_ASSIGN(const std::string text, ReadFile(job::JobDir(job_dir).job(), kMaxJobFile));
  auto job = job::FromJsonText(text);
  if (!job.ok()) return job.status().With(job::JobDir(job_dir).job().string());
  files.job = std::move(job).value();
  TRY_ASSIGN(files.id, ReadFile(job::JobDir(job_dir).id(), 4096));
  while (!files.id.empty() && files.id.back() == '\n') files.id.pop_back();
  TRY_ASSIGN(files.token, ReadTokenFile(job_dir));
  if (const auto resumes = ReadFile(job::JobDir(job_dir).resumes(), 64); resumes.ok()) {
    const char* const end = resumes->data() + resumes->size();
    if (std::from_chars(resumes->data(), end, files.resumes).ec != std::errc()) {
      return DataLoss(job_dir + "/resumes: expected a number");
    }
  }
  return files;
}

}  // namespace shoal::rendezvous
