// JobBuilder, with which importers build the job, and helpers for names and commands.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/conversion/field_reader.h"
#include "job/file/decode.h"

namespace shoal::importer {

// The maximum of restart.limit, for foreign jobs whose tasks restart without a limit.
inline constexpr int kUnlimitedRestarts = 1000;

// Builds the job of one import. Remembers which fields the foreign file decides, so that the
// framework's presets fill in only the others.
//
// Importers call the setters while they read and import.cc calls Build at the end. Conflicts
// between roles (a second image, different directories) and variables that Shoal sets itself become
// losses in diagnostics(). Not thread-safe; `diagnostics` is not owned.
class JobBuilder {
 public:
  JobBuilder(std::string file, Diagnostics* diagnostics);

  // Adds a role. `name` is converted to a valid, unused role name. The pointer is valid until the
  // next AddRole. Beyond the maximum number of roles: an error, and a role that is not part of the
  // job.
  job::Role* AddRole(const std::string& name, const job::SourceLocation& place,
                     const std::string& field);
  job::Role* FindRole(const std::string& name);
  void SetName(const std::string& name);
  // Marks a field of the job file, such as "roles.ps.follows", as decided by the foreign file.
  void MarkDecided(const std::string& path) { draft_.places.at[path] = {}; }
  void SetFollows(job::Role* role, const std::string& leader);
  void SetScope(job::Role* role, job::RestartScope scope);
  void SetSuccess(job::SuccessRule rule, std::vector<std::string> roles, int count = 0);
  // Sets the image of a role. The job has one image; a different second one is a loss.
  void SetImage(const std::string& image, const job::Role& role, FieldReader* from);
  // Sets the working directory of a role. The job has one; directories that differ between roles
  // are losses.
  void SetWorkDir(const job::Role& role, const std::string& dir, FieldReader* from);
  // The role runs the entry point of its image, with `arguments` in place of the image's default
  // arguments unless they are empty. `field` of `from` is where problems are reported.
  void SetEntryPoint(job::Role* role, std::vector<std::string> arguments, FieldReader* from,
                     const std::string& field);
  // Sets an environment variable of a role. Variables that Shoal or the framework sets are losses,
  // reported at `from`.
  void SetVariable(job::Role* role, const std::string& name, const std::string& value,
                   FieldReader* from);

  job::Job* job() { return &draft_.job; }
  Diagnostics* diagnostics() const { return diagnostics_; }
  // The number of tasks of all roles so far.
  int TotalReplicas() const;
  // Applies the presets, adds the losses that concern the whole job, and gives the job. Call once,
  // last.
  job::Job Build();
  // After Build: the roles that would need the entry point of an image other than the job's, and
  // the reason for each.
  std::map<std::string, ImportLoss> TakeRolesWithoutCommand() { return std::move(commandless_); }

 private:
  // Variables of one role that were refused because Shoal sets them.
  struct Refused {
    job::SourceLocation place;
    std::string field;
    std::string names;
  };

  struct WorkDir {
    std::string dir;
    job::SourceLocation place;
    std::string field;
  };

  void SetCommonWorkDir();
  void FindRolesWithoutCommand();

  job::JobDraft draft_;
  job::Role overflow_role_;
  std::map<std::string, WorkDir> work_dirs_;   // by role
  std::map<std::string, Refused> refused_;     // by role
  std::map<std::string, std::string> images_;  // by role
  std::map<std::string, ImportLoss>
      entry_points_;  // by role; FindRolesWithoutCommand adds the sentence
  std::map<std::string, ImportLoss> commandless_;
  Diagnostics* const diagnostics_;
  job::SourceLocation image_place_;
  std::string image_field_;
};

// Converts a name to one that job files accept: "My_Task.1" → "my-task-1", at most `most` bytes.
std::string ToRoleName(const std::string& name, size_t most);
// True for a valid name of an environment variable.
bool IsVariableName(const std::string& name);
// Converts a name to one for a variable: "my-task.1" → "MY_TASK_1".
std::string ToVariableName(const std::string& name);
// Puts a shell statement ("export PORT0=$SHOAL_PORT") before the role's command, which is then run
// by a shell.
void PrependStatement(const std::string& statement, job::Role* role);

// The name that metadata.generateName stands for: "train" of "train-".
std::string NameOfPrefix(std::string prefix);

}  // namespace shoal::importer
