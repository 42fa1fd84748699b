// The interface of an importer. One implementation for each format, registered in
// job_documents.cc.
#pragma once

#include <string>
#include <vector>

#include "import/conversion/job_builder.h"

namespace shoal::importer {

// Imports one format. Implementations are stateless singletons; all methods are thread-safe.
class Importer {
 public:
  virtual ~Importer() = default;
  // The kind of the document, such as "TFJob", if it has this format; otherwise empty.
  virtual std::string DetectKind(const job::Node& document) const = 0;
  // Builds the job of a document for which DetectKind is not empty. Errors and losses go to the
  // builder's diagnostics.
  virtual void Import(const job::Node& document, JobBuilder* builder) const = 0;

  // The other documents of the file that the job is made of, such as the runtime of a TrainJob.
  virtual std::vector<const job::Node*> FindParts(
      const job::Node& /*document*/, const std::vector<const job::Node*>& /*documents*/) const {
    return {};
  }
  // As Import, with the documents that FindParts gave.
  virtual void ImportWithParts(const job::Node& document,
                               const std::vector<const job::Node*>& /*parts*/,
                               JobBuilder* builder) const {
    Import(document, builder);
  }
};

const Importer& BatchJobImporter();
const Importer& KubeflowImporter();
const Importer& VolcanoImporter();
const Importer& JobSetImporter();
const Importer& TrainJobImporter();
const Importer& RayJobImporter();
const Importer& SparkApplicationImporter();
const Importer& MarathonImporter();
const Importer& MetronomeImporter();

}  // namespace shoal::importer
