// Finds the documents of a file that are jobs, selects one, and reports the others
// (PersistentVolumeClaim, Service, ConfigMap …), which are the job's surroundings.
//
// Used by import.cc. The documents outlive all results.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/conversion/importer.h"

namespace shoal::importer {

// A document that is a job.
struct JobDocument {
  const Importer* importer = nullptr;
  const job::Node* document = nullptr;
  std::string format;
  std::string name;  // metadata.name or the app's id; may be empty
  int number = 0;    // of the document, from 1
};

// "a TFJob", "an MPIJob".
std::string WithArticle(const std::string& format);

// The documents of a file, with lists expanded: items of a Kubernetes List become documents,
// several Marathon apps become one list document; empty documents are dropped. Modifies
// `documents`, which must outlive the result.
std::vector<const job::Node*> ListDocuments(std::vector<job::Node>* documents);
std::vector<JobDocument> FindJobDocuments(const std::vector<const job::Node*>& documents);

// Selects a job by name or document number; `which` may be empty if there is only one. On a failure
// adds an error and returns a JobDocument without importer.
JobDocument ChooseJobDocument(const std::vector<JobDocument>& jobs, const std::string& which,
                              job::Errors* errors);

// True if all documents are Kubernetes objects.
bool IsKubernetesOnly(const std::vector<const job::Node*>& documents);
// Adds an error for a Kubernetes file in which no importer recognises a job.
void ReportNoKnownJob(const std::vector<const job::Node*>& documents, job::Errors* errors);
// True if the text is a template of Kubernetes objects (Helm, Go's text/template), whose directives
// "{{ … }}" are no YAML; ReportTemplate adds the error that says how to render it.
bool IsTemplate(std::string_view text);
void ReportTemplate(std::string_view text, job::Errors* errors);
// Adds an error if the text is a script, of a shell or for another batch system than Slurm (PBS,
// LSF, Grid Engine …); else false. `documents`: what the text is as YAML; a job file may begin with
// "#!", too.
bool ReportScript(std::string_view text, const std::vector<const job::Node*>& documents,
                  job::Errors* errors);
// Adds an error if a document is a pod of Marathon (v2/pods), which is no app; else false.
bool ReportMarathonPod(const std::vector<const job::Node*>& documents, job::Errors* errors);
// Reports the documents that are not the selected job as losses.
void ReportOtherDocuments(const std::vector<const job::Node*>& documents,
                          const std::vector<JobDocument>& jobs, const JobDocument& job,
                          Diagnostics* diagnostics);

}  // namespace shoal::importer
