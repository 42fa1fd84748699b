// The CustomResourceDefinition of ShoalJob. Its spec is the job file's schema
// (job/file/resource_schema.h), so that the API server refuses what the server would.
//
// Stored in deploy/helm/shoal-server/files/shoaljob.yaml; a test fails if it differs, and
// SHOAL_REGENERATE=1 api_test rewrites it.
#pragma once

#include <string>

#include "base/json.h"

namespace shoal::api {

json::object ShoalJobDefinition();
// As YAML (JSON, with a comment that says where it comes from).
std::string ShoalJobDefinitionText();

}  // namespace shoal::api
