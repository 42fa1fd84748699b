#include "controller/files/outputs.h"

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "base/access/directory_owner.h"
#include "base/file.h"
#include "base/log.h"
#include "base/output_file.h"
#include "base/utf8.h"
#include "data/objects/object_uri.h"
#include "job/execution/job_dir.h"

namespace shoal::controller {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOutputs = 1'000'000;

// "worker-1.0" → task, attempt. False for a name that no launcher makes.
bool ParseAttempt(const std::string& name, OutputFile* file) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return false;
  file->task = name.substr(0, dot);
  const auto [end, error] =
      std::from_chars(name.data() + dot + 1, name.data() + name.size(), file->attempt);
  return error == std::errc() && end == name.data() + name.size() && file->attempt >= 0;
}

fs::path PathOf(const OutputFile& file) {
  return fs::path(file.task + "." + std::to_string(file.attempt)) / file.path;
}

Status AddFilesOf(const fs::path& attempt, OutputFile file, std::vector<OutputFile>* files) {
  std::error_code error;
  for (fs::recursive_directory_iterator it(attempt, error), end; it != end; it.increment(error)) {
    if (error) break;
    // A directory, or a FIFO, socket or device, which holds nothing.
    if (!it->is_symlink(error) && !it->is_regular_file(error)) continue;
    if (files->size() >= kMostOutputs)
      return ResourceExhausted(attempt.string() + " holds more than a million files");
    file.path = it->path().lexically_relative(attempt).string();
    file.link = it->is_symlink(error);
    file.bytes =
        it->is_regular_file(error) && !file.link ? static_cast<int64_t>(it->file_size(error)) : 0;
    files->push_back(file);
  }
  if (error) return ErrnoStatus(error.value(), "cannot read " + attempt.string());
  return Status::Ok();
}

}  // namespace

Result<std::vector<OutputFile>> ListOutputs(const fs::path& job_dir) {
  const FileAccessAs owner(job_dir);
  std::vector<OutputFile> files;
  std::error_code error;
  for (fs::directory_iterator it(job::JobDir(job_dir).outputs(), error), end; !error && it != end;
       it.increment(error)) {
    OutputFile file;
    if (ParseAttempt(it->path().filename().string(), &file))
      TRY(AddFilesOf(it->path(), std::move(file), &files));
  }
  std::sort(files.begin(), files.end(), [](const OutputFile& a, const OutputFile& b) {
    return std::tie(a.task, a.attempt, a.path) < std::tie(b.task, b.attempt, b.path);
  });
  return files;
}

namespace {

// The first directory that has the output, ordered by task, then by descending attempt.
Result<fs::path> FindOutput(const fs::path& job_dir, const std::string& name) {
  std::error_code error;
  std::vector<OutputFile> attempts;
  for (fs::directory_iterator it(job::JobDir(job_dir).outputs(), error), end; !error && it != end;
       it.increment(error)) {
    OutputFile attempt;
    const bool ours = ParseAttempt(it->path().filename().string(), &attempt);
    if (ours && fs::exists(it->path() / name)) attempts.push_back(std::move(attempt));
  }
  if (attempts.empty()) return NotFound("no task has written the output '" + name + "'");
  const auto first = std::min_element(
      attempts.begin(), attempts.end(), [](const OutputFile& a, const OutputFile& b) {
        return std::tie(a.task, b.attempt) < std::tie(b.task, a.attempt);
      });
  return job::JobDir(job_dir).outputs() / PathOf(*first) / name;
}

}  // namespace

namespace {

// Copies links as links. An existing file keeps its owner and mode, as with --output. A FIFO,
// socket or device holds nothing.
Status CopyPath(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (fs::is_symlink(from, error)) {
    const fs::path target = fs::read_symlink(from, error);
    std::error_code absent;
    if (!error && fs::is_symlink(to, absent)) fs::remove(to, error);
    if (!error) fs::create_symlink(target, to, error);
    return error ? ErrnoStatus(error.value(), "cannot create the link " + to.string())
                 : Status::Ok();
  }
  if (fs::is_other(from, error)) {
    LogWarning("{} is a FIFO, socket or device, and not copied", EscapedUtf8(from.string()));
    return Status::Ok();
  }
  if (!fs::is_directory(from, error)) return CopyOutputFile(from, to);
  if (!fs::is_directory(to, error) && !fs::create_directory(to, from, error))
    return ErrnoStatus(error.value(), "cannot create the directory " + to.string());
  fs::directory_iterator entry(from, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    TRY(CopyPath(entry->path(), to / entry->path().filename()));
  return error ? ErrnoStatus(error.value(), "cannot read " + from.string()) : Status::Ok();
}

Status PlaceOutput(const fs::path& job_dir, const std::string& name, const fs::path& to) {
  TRY_ASSIGN(const fs::path from, FindOutput(job_dir, name));
  if (data::IsRemoteUri(to.string()))
    return Unimplemented("outputs." + name + ": got " + to.string() +
                         ", expected a directory: only Shoal's own trainers write to stores");
  TRY(MakeDirectories(to.parent_path()));
  return CopyPath(from, to).With("outputs." + name);
}

}  // namespace

Status PlaceOutputs(const fs::path& job_dir, const std::map<std::string, std::string>& outputs) {
  const FileAccessAs owner(job_dir);
  Status worst;
  for (const auto& [name, directory] : outputs) {
    Status placed = PlaceOutput(job_dir, name, directory);
    if (worst.ok() || (worst.code() == Code::kNotFound && !placed.ok())) worst = std::move(placed);
  }
  return worst;
}

void FailOnLostOutputs(const Status& status, rendezvous::Verdict* verdict) {
  if (status.ok() || status.code() == Code::kNotFound) return;
  if (verdict->state != job::JobState::kSucceeded) return;
  verdict->state = job::JobState::kFailed;
  verdict->reason =
      "every task succeeded, but the outputs could not be placed as the job file says: " +
      status.message() + "; `shoal outputs` lists those that arrived";
}

std::vector<std::string> MissingOutputs(const std::map<std::string, std::string>& outputs) {
  std::vector<std::string> missing;
  for (const auto& [name, path] : outputs) {
    if (data::IsRemoteUri(path)) continue;  // written by the trainers themselves
    std::error_code error;
    if (fs::exists(path, error)) continue;
    missing.push_back("outputs." + name + ": " + path +
                      (error ? " is not visible on this machine (" + error.message() + ")"
                             : std::string(" does not exist on this machine")) +
                      "; the job's programs wrote nothing there that this machine sees");
  }
  return missing;
}

Status CopyOutputs(const fs::path& job_dir, const std::vector<OutputFile>& outputs,
                   const fs::path& directory) {
  for (const OutputFile& file : outputs) {
    const fs::path to = directory / PathOf(file);
    TRY(MakeDirectories(to.parent_path()));
    std::error_code error;
    fs::copy(job::JobDir(job_dir).outputs() / PathOf(file), to, fs::copy_options::copy_symlinks,
             error);
    if (error == std::errc::file_exists)
      return AlreadyExists(to.string() + " exists already; name another directory, or remove it");
    if (error) return ErrnoStatus(error.value(), "cannot copy to " + to.string());
  }
  return Status::Ok();
}

}  // namespace shoal::controller
