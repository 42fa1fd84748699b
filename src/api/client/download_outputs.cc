#include "api/client/download_outputs.h"

#include <algorithm>
#include <cstdint>
#include <system_error>

#include "base/file.h"
#include "job/text/yaml_tree.h"

namespace shoal::api {
namespace {

namespace fs = std::filesystem;
using controller::OutputFile;

constexpr int64_t kPiece = int64_t{32} << 20;

Status Download(const ApiClient& client, const std::string& target, const OutputFile& file,
                const fs::path& to) {
  // The server is another machine: its answer does not choose places outside the directory.
  const fs::path below = fs::path(file.task) / file.path;
  if (fs::path(file.path).is_absolute() || std::ranges::find(below, "..") != below.end())
    return DataLoss("the server lists an output " + job::PrintableText(file.path) +
                    ", expected a path below the task's directory");
  std::error_code error;
  if (fs::exists(to, error))
    return AlreadyExists(to.string() + " exists; choose another directory");
  TRY(MakeDirectories(to.parent_path()));
  TRY_ASSIGN(AtomicFile copy, AtomicFile::Create(to));
  for (int64_t at = 0; at < file.bytes;) {
    ApiRequest request;
    request.target = target + net::PercentEncode(file.task) + "/" + std::to_string(file.attempt) +
                     QueryText({{"path", file.path},
                                {"offset", std::to_string(at)},
                                {"limit", std::to_string(kPiece)}});
    TRY_ASSIGN(const net::HttpReply reply, client.Call(request));
    if (reply.body.empty()) return DataLoss(file.path + " ends early on the server");
    TRY(copy.Write(reply.body));
    at += static_cast<int64_t>(reply.body.size());
  }
  return copy.Commit(false);
}

}  // namespace

Status DownloadOutputs(const ApiClient& client, const std::string& target,
                       const std::vector<OutputFile>& files, const fs::path& directory) {
  size_t missing = 0;
  std::string first;
  for (const OutputFile& file : files) {
    if (file.link) continue;
    const fs::path to = directory / (file.task + "." + std::to_string(file.attempt)) / file.path;
    const Status copied = Download(client, target, file, to);
    if (!copied.ok() && copied.code() != Code::kNotFound) return copied;
    if (!copied.ok() && missing++ == 0) first = job::PrintableText(file.path);
  }
  if (missing == 0) return Status::Ok();
  return NotFound(std::to_string(missing) + " of " + std::to_string(files.size()) +
                  " files could not be copied, the first " + first +
                  ": removed since it was listed, or its name is not UTF-8; all others are in " +
                  directory.string());
}

}  // namespace shoal::api
