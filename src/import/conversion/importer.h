// One foreign dialect: what its files look like, and what becomes of them. One file each, in the
// table of import.cc.
#pragma once

#include <map>
#include <set>
#include <string>

#include "import/conversion/field_reader.h"
#include "job/file/decode.h"

namespace shoal::importer {

// The job under construction. `given` remembers which fields the foreign file decides, so that the
// framework's presets fill in only the others.
class JobBuilder {
 public:
  JobBuilder(std::string file, Diagnostics* diagnostics);

  // A role by any name: made one that job files take, and a new one if it is taken. The pointer is
  // good until the next role. Beyond as many as a job may have: an error, and a role that is not
  // in the job.
  job::Role* AddRole(const std::string& name, const job::SourceLocation& place,
                     const std::string& field);
  job::Role* FindRole(const std::string& name);
  void SetName(const std::string& name);
  // Marks a field of the job file as decided: "roles.ps.follows".
  void MarkDecided(const std::string& path) { draft_.places.at[path] = {}; }
  void SetFollows(job::Role* role, const std::string& leader);
  void SetScope(job::Role* role, job::RestartScope scope);
  void SetSuccess(job::SuccessRule rule, std::vector<std::string> roles, int count = 0);
  // What a role's programs run in. The job has one image; a second one is a loss.
  void SetImage(const std::string& image, const job::Role& role, FieldReader* from);
  // Where a role's programs start. The job has one directory for all of them; where roles differ it
  // is a loss.
  void SetWorkDir(const job::Role& role, const std::string& dir, FieldReader* from);
  // A role whose container has no command: the image's own entry point runs, with these arguments
  // in place of the image's own if there are some. `field` of `from` tells it.
  void SetEntryPoint(job::Role* role, std::vector<std::string> arguments, FieldReader* from,
                     const std::string& field);
  // An environment variable of a role; those that Shoal or the framework sets itself are losses,
  // told by `from`.
  void SetVariable(job::Role* role, const std::string& name, const std::string& value,
                   FieldReader* from);

  job::Job* job() { return &draft_.job; }
  Diagnostics* diagnostics() const { return diagnostics_; }
  // Presets, and the losses that hold for the whole.
  job::Job Build();
  // After Build: the roles that cannot start the entry point of their image, as the job has another
  // one, and why.
  std::map<std::string, ImportLoss> TakeRolesWithoutCommand() { return std::move(commandless_); }

 private:
  // Variables of a role that Shoal sets itself.
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
  std::map<std::string, Refused> refused_;     // role → what of its environment
  std::map<std::string, std::string> images_;  // by role
  std::map<std::string, ImportLoss>
      entry_points_;  // by role; sentences are those of FindRolesWithoutCommand
  std::map<std::string, ImportLoss> commandless_;
  Diagnostics* const diagnostics_;
  job::SourceLocation image_place_;
  std::string image_field_;
};

class Importer {
 public:
  virtual ~Importer() = default;
  // What the document is called, if it is this dialect's: "TFJob"; else empty.
  virtual std::string DetectKind(const job::Node& document) const = 0;
  // Everything wrong or lost goes to the builder's diagnostics.
  virtual void Import(const job::Node& document, JobBuilder* builder) const = 0;
};

const Importer& BatchJobImporter();
const Importer& KubeflowImporter();
const Importer& VolcanoImporter();
const Importer& JobSetImporter();
const Importer& MarathonImporter();
const Importer& MetronomeImporter();

// Names for job files: "My_Task.1" → "my-task-1".
std::string ToRoleName(const std::string& name, size_t most);
// Whether it can be the name of an environment variable.
bool IsVariableName(const std::string& name);
// Names for variables: "my-task.1" → "MY_TASK_1".
std::string ToVariableName(const std::string& name);
// Lets a shell say `statement` ("export PORT0=$SHOAL_PORT") before the role's command.
void PrependStatement(const std::string& statement, job::Role* role);

}  // namespace shoal::importer
