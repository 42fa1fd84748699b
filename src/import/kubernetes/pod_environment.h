// The variables of Kubernetes' containers, and references $(NAME) to them in values, commands and
// arguments, by the kubelet's rule.
//
// kubernetes.cc reads a container's `env` with it; import.cc expands the commands when the job that
// a file becomes has been validated with its overrides, so that they see what --set gave.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "import/conversion/importer.h"
#include "job/spec/job.h"

namespace shoal::importer {

// Reads `env` and `envFrom` of a container into the role.
void ReadPodEnvironment(FieldReader* container, job::Role* role, JobBuilder* builder);

// `text` with "$(NAME)" replaced by a variable of `env`, and "$$" by "$"; a reference to a variable
// that `env` lacks stays as it is, and its name is added to `unresolved`. So do those that would
// add more than 128 KiB, or more than `budget`, from which is taken what they add.
std::string ExpandReferences(const std::string& text, const std::map<std::string, std::string>& env,
                             std::set<std::string>* unresolved = nullptr, size_t* budget = nullptr);

// `command` with its references replaced as above. Variables whose values are known only when the
// task starts, which the framework or Shoal sets, are left to a shell that is put before the
// command.
std::vector<std::string> ExpandCommand(const std::vector<std::string>& command,
                                       const std::map<std::string, std::string>& env,
                                       job::Framework framework, std::set<std::string>* unresolved);

// True for names that are variables' by convention ("POD_IP"), unlike those of programs in
// "$(date)".
bool LooksLikeVariable(const std::string& name);

}  // namespace shoal::importer
