// Which of a file's documents are jobs of other systems, which of these is meant, and what the
// others are: the surroundings of the job.
#pragma once

#include <string>
#include <vector>

#include "import/conversion/importer.h"

namespace shoal::importer {

// A document that is a job.
struct JobDocument {
  const Importer* importer = nullptr;
  const job::Node* document = nullptr;
  std::string dialect;
  std::string name;  // its metadata's, or its id; may be empty
  int number = 0;    // of the document, from 1
};

// "a TFJob", "an MPIJob".
std::string WithArticle(const std::string& dialect);

// The documents without those that are empty; the items of Kubernetes' lists are documents too, and
// several documents that are apps of Marathon are one, a list of them.
std::vector<const job::Node*> ListDocuments(std::vector<job::Node>* documents);
std::vector<JobDocument> FindJobDocuments(const std::vector<const job::Node*>& documents);

// The job of that name or whose document has that number; the only one if `which` is empty. Without
// one an error, and a JobDocument without importer.
JobDocument ChooseJobDocument(const std::vector<JobDocument>& jobs, const std::string& which,
                              job::Errors* errors);

// True if the file can only be meant for Kubernetes.
bool IsKubernetesOnly(const std::vector<const job::Node*>& documents);
// An error for such a file without a job that is known here.
void ReportNoKnownJob(const std::vector<const job::Node*>& documents, job::Errors* errors);
// Of the documents beside the job.
void ReportOtherDocuments(const std::vector<const job::Node*>& documents,
                          const std::vector<JobDocument>& jobs, const JobDocument& job,
                          Diagnostics* diagnostics);

}  // namespace shoal::importer
