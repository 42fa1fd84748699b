#include "learn/preflight.h"

#include <string>

#include "data/corpus/corpus.h"
#include "data/formats/record_reader.h"
#include "learn/task/model_output.h"

namespace shoal::learn {

Status CheckOutput(ps::Client& client, int index, const std::filesystem::path& output) {
  const Result<std::string> saved = client.GetProgress(index);
  if (saved.ok() && !saved->empty()) return Status::Ok();
  if (!saved.ok() && saved.status().code() != Code::kNotFound) return saved.status();
  return CheckModelDestination(output, true);
}

Status CheckDataFiles(const job::Job& job, DataLocation data) {
  if (job.framework != job::Framework::kShoal || data == DataLocation::kRemote) return Status::Ok();
  for (const job::DataSource& entry : job.data) {
    const auto format = data::ParseRecordFormat(entry.format);
    const data::Content content = format.ok() ? data::ContentOf(*format) : data::Content::kText;
    TRY(data::Corpus::Open(entry.sources, data::ObjectContext(), content).status());
  }
  return Status::Ok();
}

}  // namespace shoal::learn
