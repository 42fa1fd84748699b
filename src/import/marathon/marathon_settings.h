// What apps of Marathon ask of Mesos that a job's block `marathon` asks too. Used by marathon.cc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/conversion/importer.h"

namespace shoal::importer {

// The list `networks` of an app, or of Metronome's job; `definition`: of its entries.
void ReportNetworks(FieldReader* app, std::string_view definition);

// A job has one block for all of its roles: artifacts and secrets of all apps are kept, of the rest
// what all apps say alike.
class MarathonSettings {
 public:
  // Reads its fields of an app, and of its container.docker; `role` is what it became.
  void ReadApp(FieldReader* app, const std::string& role);
  void ReadDocker(FieldReader* docker, const std::string& role);
  // A variable whose value is {"secret": NAME}; false if it is none.
  bool ReadSecret(const std::string& variable, const job::Node& value, FieldReader* env);
  // When all apps are read.
  void AddToJob(JobBuilder* builder);

 private:
  // What one app says of a field, as the block has it.
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

  std::map<std::string, std::vector<Setting>> settings_;  // by the field of the block
  size_t apps_ = 0;
  std::vector<std::string> fetch_;
  job::SourceLocation fetch_place_;
  std::string fetch_field_;
  std::map<std::string, std::string> sources_;  // of this app's secrets
  std::map<std::string, std::string> secrets_;  // variable → source
};

}  // namespace shoal::importer
