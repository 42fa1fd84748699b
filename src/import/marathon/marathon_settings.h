// Settings of Marathon apps for Mesos that the job's block `marathon` has too. Used by marathon.cc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/conversion/job_builder.h"

namespace shoal::importer {

// Reports the list `networks` of an app or of a Metronome job; `definition` names its entries in
// the table of fields.
void ReportNetworks(FieldReader* app, std::string_view definition);

// Collects the settings of all apps. The job has one block for all roles: artifacts and secrets of
// all apps are merged; other settings are kept if all apps agree.
//
// Call ReadApp, ReadDocker and ReadSecret for each app, then AddToJob once.
class MarathonSettings {
 public:
  // Reads the settings of an app, and of its container.docker. `role` is the app's role.
  void ReadApp(FieldReader* app, const std::string& role);
  void ReadDocker(FieldReader* docker, const std::string& role);
  // Reads a variable whose value is {"secret": NAME}; false for any other value.
  bool ReadSecret(const std::string& variable, const job::Node& value, FieldReader* env);
  // Writes the collected settings to the job.
  void AddToJob(JobBuilder* builder);

 private:
  // One app's value of a field, in the block's format.
  struct Setting {
    std::string role;
    std::vector<std::string> value;
    job::SourceLocation place;
    std::string field;
  };

  void AddSetting(FieldReader* section, const std::string& name, const std::string& role,
                  std::vector<std::string> value, const char* field);
  void ReadConstraints(FieldReader* app, const std::string& role);
  void ReadArtifacts(FieldReader* app);
  void ReadSources(FieldReader* app);

  std::map<std::string, std::vector<Setting>> settings_;  // by field of the block
  size_t apps_ = 0;
  std::vector<std::string> fetch_;
  job::SourceLocation fetch_place_;
  std::string fetch_field_;
  std::map<std::string, std::string> sources_;  // of the current app's secrets
  std::map<std::string, std::string> secrets_;  // variable → source
};

}  // namespace shoal::importer
