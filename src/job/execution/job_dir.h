// Names of the files and directories in a job's directory, which controller, coordinator, launchers
// and engines share. A new file gets its name here.
#pragma once

#include <filesystem>
#include <utility>

namespace shoal::job {

// Paths in a job's directory. A plain value; touches no file.
class JobDir {
 public:
  explicit JobDir(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }

  // Written by the controller. A task without a shared filesystem gets the first five as bootstrap
  // files.
  std::filesystem::path job() const { return root_ / kJob; }
  std::filesystem::path token() const { return root_ / kToken; }  // the job's secret, 0600
  std::filesystem::path id() const { return root_ / kId; }
  std::filesystem::path resumes() const { return root_ / kResumes; }  // number of resumptions
  std::filesystem::path secrets() const { return root_ / kSecrets; }  // values, 0600, until the end
  std::filesystem::path work_dir() const { return root_ / "work_dir"; }  // where programs start
  // Locked while the controller removes the resources of an ended job.
  std::filesystem::path cleanup_lock() const { return root_ / "clearing"; }

  // Written by the coordinator; without a shared filesystem the controller keeps copies.
  std::filesystem::path coordinator() const { return root_ / "coordinator.json"; }  // its address
  std::filesystem::path journal() const { return root_ / "journal"; }
  std::filesystem::path verdict() const { return root_ / "verdict.json"; }

  // Output of the tasks, by attempt; their temporary files; checkpoints of parameter servers.
  std::filesystem::path logs() const { return root_ / "logs"; }
  std::filesystem::path outputs() const { return root_ / "outputs"; }
  std::filesystem::path scratch() const { return root_ / "scratch"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }

  std::filesystem::path files() const { return root_ / "files"; }    // StagedFilesDir
  std::filesystem::path engine() const { return root_ / "engine"; }  // private to the engine

  static constexpr const char* kJob = "job.json";
  static constexpr const char* kToken = "token";
  static constexpr const char* kId = "id";
  static constexpr const char* kResumes = "resumes";
  static constexpr const char* kSecrets = "secrets";

 private:
  std::filesystem::path root_;
};

// Paths in a directory of staged files (JobDir::files). A plain value; touches no file.
class StagedFilesDir {
 public:
  explicit StagedFilesDir(std::filesystem::path root) : root_(std::move(root)) {}

  std::filesystem::path manifest() const { return root_ / "manifest.json"; }  // host/manifest.h
  std::filesystem::path blobs() const { return root_ / "blobs"; }             // by SHA-256

 private:
  std::filesystem::path root_;
};

}  // namespace shoal::job
