// What tests of the importers share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "import/import.h"

namespace shoal::importer {

inline job::Job Import(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto imported = ImportText(text, "f.yaml");
  if (!imported.ok() || !imported->has_value()) {
    ADD_FAILURE() << imported.status().message();
    return {};
  }
  auto finished = FinishImport(**imported, overrides);
  if (!finished.ok()) {
    ADD_FAILURE() << finished.status().message();
    return {};
  }
  return finished->job;
}

// The sentences of what is lost with every engine, and not minor.
inline std::string Told(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto imported = ImportText(text, "f.yaml");
  if (!imported.ok() || !imported->has_value()) return imported.status().message();
  const auto finished = FinishImport(**imported, overrides);
  if (!finished.ok()) return finished.status().message();
  std::string told;
  for (const ImportLoss& loss : finished->losses) {
    if (!loss.minor && loss.engine.empty()) told += loss.sentence + "\n";
  }
  return told;
}

inline std::string PytorchJob(const std::string& spec, const std::string& container) {
  const std::string replicas =
      "{replicas: 2, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, " +
      container + "}]}}}";
  return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x, namespace: ml}\n"
         "spec: {" +
         spec + "pytorchReplicaSpecs: {Worker: " + replicas + "}}\n";
}

}  // namespace shoal::importer
