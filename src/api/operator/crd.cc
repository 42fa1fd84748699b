#include "api/operator/crd.h"

#include <utility>

#include "api/operator/shoal_job.h"
#include "job/file/resource_schema.h"

namespace shoal::api {
namespace {

constexpr int kMaxConditions = 16;

json::object Text(const char* description) {
  return {{"type", "string"}, {"description", description}};
}
json::object Integer(const char* description) {
  return {{"type", "integer"}, {"format", "int64"}, {"description", description}};
}
json::object Time(const char* description) {
  return {{"type", "string"}, {"format", "date-time"}, {"description", description}};
}

json::object SpecSchema() {
  json::object job = job::ResourceSchema();
  job["description"] =
      "The job, with the fields of a job file in their long form. The engine is Kubernetes, the "
      "namespace this object's. After the submission only replicas of roles can be changed.";
  return {{"type", "object"},
          {"required", json::array{"job"}},
          {"properties",
           {{"job", std::move(job)},
            {"suspend",
             {{"type", "boolean"},
              {"description",
               "Not submitted while true; a submitted job is suspended and resumed."}}}}}};
}

json::object CountsSchema() {
  json::object counts{{"total", Integer("All tasks.")},
                      {"running", Integer("Tasks whose program runs.")},
                      {"succeeded", Integer("Tasks that have ended well.")},
                      {"failed", Integer("Tasks that have failed and are not started again.")}};
  return {{"type", "object"},
          {"description", "Numbers of the job's tasks, or of the members of a matrix or sweep."},
          {"properties", std::move(counts)}};
}

json::object ConditionsSchema() {
  json::object condition{
      {"type", "object"},
      {"required", json::array{"type", "status"}},
      {"properties",
       {{"type", Text("Accepted, Running, Complete, Failed or SpecApplied.")},
        {"status", {{"type", "string"}, {"enum", json::array{"True", "False", "Unknown"}}}},
        {"reason", Text("One word.")},
        {"message", Text("One sentence.")},
        {"observedGeneration", Integer("Generation of the spec.")},
        {"lastTransitionTime", Time("When status changed.")}}}};
  return {{"type", "array"},
          {"maxItems", kMaxConditions},
          {"x-kubernetes-list-type", "map"},
          {"x-kubernetes-list-map-keys", json::array{"type"}},
          {"items", std::move(condition)}};
}

json::object StatusSchema() {
  return {{"type", "object"},
          {"properties",
           {{"phase", Text("Pending, Admitted, Starting, Running, Suspended, Finishing, Stopping, "
                           "Succeeded, Failed, Cancelled or Refused.")},
            {"reason", Text("Why it is in this phase: one sentence, or empty.")},
            {"job", Text("ID of the job on the server.")},
            {"kind", Text("Job, or Group of a matrix or sweep.")},
            {"server", Text("ID of the store of the server that has the job.")},
            {"observedGeneration", Integer("Generation of the spec that the server has acted on.")},
            {"workers", Text("Running and all tasks of the role worker, or of all roles.")},
            {"tasks", CountsSchema()},
            {"replicas",
             {{"type", "object"},
              {"description", "Tasks of each role that the spec has asked for last."},
              {"additionalProperties", {{"type", "integer"}}}}},
            {"submitted", Time("When it was submitted.")},
            {"started", Time("When it first ran.")},
            {"ended", Time("When it ended.")},
            {"conditions", ConditionsSchema()}}}};
}

json::object Column(const char* name, const char* type, const char* path, int priority) {
  json::object column{{"name", name}, {"type", type}, {"jsonPath", path}};
  if (priority > 0) column["priority"] = priority;
  return column;
}

json::object Version() {
  json::object schema{
      {"type", "object"},
      {"description", "A distributed job that a Shoal server runs in this namespace."},
      {"required", json::array{"spec"}},
      {"properties",
       {{"apiVersion", {{"type", "string"}}},
        {"kind", {{"type", "string"}}},
        {"metadata", {{"type", "object"}}},
        {"spec", SpecSchema()},
        {"status", StatusSchema()}}}};
  return {{"name", kResourceVersion},
          {"served", true},
          {"storage", true},
          {"subresources", {{"status", json::object()}}},
          {"additionalPrinterColumns",
           json::array{Column("Phase", "string", ".status.phase", 0),
                       Column("Workers", "string", ".status.workers", 0),
                       Column("Age", "date", ".metadata.creationTimestamp", 0),
                       Column("Job", "string", ".status.job", 1),
                       Column("Reason", "string", ".status.reason", 0)}},
          {"schema", {{"openAPIV3Schema", std::move(schema)}}}};
}

}  // namespace

json::object ShoalJobDefinition() {
  return {
      {"apiVersion", "apiextensions.k8s.io/v1"},
      {"kind", "CustomResourceDefinition"},
      {"metadata",
       {{"name", "shoaljobs.shoal.dev"}, {"annotations", {{"helm.sh/resource-policy", "keep"}}}}},
      {"spec",
       {{"group", kResourceGroup},
        {"scope", "Namespaced"},
        {"names",
         {{"kind", kResourceKind},
          {"listKind", "ShoalJobList"},
          {"plural", kResourcePlural},
          {"singular", "shoaljob"},
          {"shortNames", json::array{"shj"}}}},
        {"versions", json::array{Version()}}}}};
}

std::string ShoalJobDefinitionText() {
  return "# Made from the table of fields of the job file (src/api/operator/crd.cc): change it "
         "there, "
         "then run SHOAL_REGENERATE=1 api_test.\n" +
         ToPrettyText(ShoalJobDefinition()) + "\n";
}

}  // namespace shoal::api
