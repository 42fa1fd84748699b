// The schema of a job inside a Kubernetes custom resource: the job file's JSON Schema
// (reference_page.h) in the form that an API server demands of a CustomResourceDefinition
// ("structural": each value has one type). Used by api/operator/crd.cc.
//
// Shorthands of the job file have their long form there: a list where the file takes a text or a
// list, a section where it takes a section or its most important field. Values that may have
// several types in either form (parameters of `learn` and `matrix`, variables, ports) are taken as
// they are, and checked by the server.
#pragma once

#include "base/json.h"

namespace shoal::job {

// Of the whole job file.
json::object ResourceSchema();
// Of one schema in draft 2020-12. Exposed for tests.
json::object StructuralSchema(const json::object& schema);

}  // namespace shoal::job
