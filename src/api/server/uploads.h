// Contents that clients upload for jobs with `files:`, by their SHA-256, and the trees that are
// made of them at submission.
//
//   STATE/uploads/TEAM/cache/…           host/files/blob_cache.h
//   STATE/uploads/TEAM/parts/SHA256      what has arrived of an unfinished upload
//   STATE/uploads/TEAM/trees/RANDOM/     while a job is being submitted
//
// Each team has its own cache, so that a digest alone gives no access to another team's files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "host/files/manifest.h"

namespace shoal::api {

struct UploadStatus {
  std::string sha256;
  int64_t received = 0;
  bool complete = false;
};

// The size of a file, and one piece of it.
struct UploadPiece {
  int64_t offset = 0;
  int64_t size = 0;  // of the whole file
  std::string_view bytes;
};

// Thread-safe, also between processes. Names of teams must have passed CheckName.
class Uploads {
 public:
  // `limit`: bytes of finished and unfinished uploads of a team.
  Uploads(std::filesystem::path root, int64_t limit) : root_(std::move(root)), limit_(limit) {}

  // Removes what a killed server left behind: trees, and parts older than a day.
  void CleanUp();

  // The contents that are not complete, in the order of `digests`. InvalidArgument names a text
  // that is no digest.
  Result<std::vector<UploadStatus>> FindMissing(const std::string& team,
                                                const std::vector<std::string>& digests);
  Result<UploadStatus> Find(const std::string& team, const std::string& sha256);
  // Appends a piece. FailedPrecondition if it does not begin where the upload ends, with the
  // number of bytes that have arrived; InvalidArgument if the complete content has another digest,
  // which discards it; ResourceExhausted over the limits.
  Result<UploadStatus> Append(const std::string& team, const std::string& sha256,
                              const UploadPiece& piece);

  // A directory with the manifest's files; the caller removes it. FailedPrecondition names a
  // content that was not uploaded.
  Result<std::filesystem::path> MakeTree(const std::string& team, const host::Manifest& manifest);

 private:
  std::filesystem::path TeamRoot(const std::string& team) const { return root_ / team; }
  Result<UploadStatus> Complete(const std::string& team, const std::string& sha256, int fd,
                                int64_t size);

  const std::filesystem::path root_;
  const int64_t limit_;
};

}  // namespace shoal::api
