#include "learn/preflight.h"

#include <string>

#include "data/corpus/corpus.h"
#include "model/save_model.h"

namespace shoal::learn {

Status CheckOutput(ps::Client& client, int index, const std::filesystem::path& output) {
  const Result<std::string> saved = client.GetProgress(index);
  if (saved.ok() && !saved->empty()) return Status::Ok();
  if (!saved.ok() && saved.status().code() != Code::kNotFound) return saved.status();
  return model::CheckModelOutput(output);
}

Status CheckDataFiles(const job::Job& job, DataLocation data) {
  if (job.framework != job::Framework::kShoal || data == DataLocation::kRemote) return Status::Ok();
  for (const job::DataSource& entry : job.data) TRY(data::Corpus::Open(entry.sources).status());
  return Status::Ok();
}

}  // namespace shoal::learn
