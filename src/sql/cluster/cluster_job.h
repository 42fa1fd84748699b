// The job of `train t as DTFAlg.`path``, DTF or PythonAlg: tasks that run the user's script, and
// the directory that they share.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "job/spec/job.h"
#include "sql/cluster/cluster_params.h"
#include "sql/tables/staged_directory.h"
#include "sql/tables/table.h"

namespace shoal::sql {

struct ClusterInput {
  const Table* table = nullptr;
  const Table* validate = nullptr;             // of validateTable; null: none
  std::map<std::string, std::string> scripts;  // texts of ClusterParams::scripts, by name
  std::string path;                            // of the model
  std::string folder;                          // which a relative path of the script begins at
  std::function<bool()> stopped = nullptr;
};

// Places of a cluster's directory, which the tasks see by these paths:
//   project/        the script or project, mlsql.py, pyjava/; each task starts in a copy
//   plan.json       what mlsql.py reads
//   data/N/         the part of worker N (enableDataLocal); data/all of PythonAlg
//   rows.jsonl      all rows, for read_data()
//   model/N, checkpoint/N    what group N saves
//   score/N         the validation score that it printed
//   cluster.json    addresses of all tasks, from DTF's tasks
class ClusterJob {
 public:
  // Makes the directory beside the model's, with the script and the data. Errors of the script, the
  // table and the disk; Cancelled.
  static Result<ClusterJob> Make(const ClusterParams& params, const ClusterInput& input);

  const job::Job& job() const { return job_; }
  // Notes for the user: what was accepted and has no effect.
  const std::vector<std::string>& notes() const { return notes_; }

  // The score that group N printed as "mlsql_validation_score:0.9"; nothing if it did not.
  std::optional<double> ScoreOf(uint64_t number) const;
  // "host:port" of a task of DTF; empty if it is not known.
  std::string AddressOf(const ClusterGroup& group) const;

  // The lines of meta/0 for a model in this directory.
  using MetaRows = std::function<Result<std::string>(const std::string& model)>;
  // After the job's success: what workers saved, with meta/0, becomes the model in one step.
  // Returns its directory. FailedPrecondition if no worker saved anything, or something else is at
  // the path.
  Result<std::filesystem::path> Publish(const MetaRows& meta_rows);

 private:
  ClusterJob(ClusterParams params, std::filesystem::path target, StagedDirectory directory)
      : params_(std::move(params)), target_(std::move(target)), directory_(std::move(directory)) {}
  Status CopyProject(const ClusterInput& input);
  Status CopyScript(const std::filesystem::path& script);
  Status WriteScripts(const std::map<std::string, std::string>& scripts);
  Status WriteModules() const;
  void SetCommand(const std::string& script);
  Status ReadProject(const std::filesystem::path& project);
  Status WriteParts(const ClusterInput& input);
  std::filesystem::path DataOf(const ClusterGroup& group) const;
  Status WritePlan(const ClusterInput& input);
  Result<std::string> RowsFile(const Table& table, const std::string& name,
                               const std::function<bool()>& stopped) const;
  Status ChoosePython();
  Status MakeJob();
  Status CollectModels(const std::filesystem::path& result) const;

  ClusterParams params_;
  std::filesystem::path target_;
  StagedDirectory directory_;
  std::vector<std::string> command_;
  job::Job job_;
  std::vector<std::string> notes_;
};

}  // namespace shoal::sql
