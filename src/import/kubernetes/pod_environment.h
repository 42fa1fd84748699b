// Environment variables of Kubernetes containers, and references $(NAME) in values, commands and
// arguments, by the kubelet's rules.
//
// pod_template.cc reads a container's `env`. import.cc expands commands later, after overrides have
// been applied, so that they see values of --set.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "import/conversion/job_builder.h"
#include "job/spec/job.h"

namespace shoal::importer {

// A label or annotation of a pod whose value is known without a cluster.
struct KnownPodField {
  std::string value;
  std::string meaning;  // for comments, of a value that says nothing to the reader; else empty
};
using KnownPodFields = std::map<std::string, KnownPodField>;  // by the label's name

// Reads a container's `env` and `envFrom` into the role. `known`: labels and annotations that the
// kind's controller writes on the pod.
void ReadPodEnvironment(FieldReader* container, const KnownPodFields& known, job::Role* role,
                        JobBuilder* builder);

// Replaces "$(NAME)" by the variable's value and "$$" by "$". A reference to a variable that `env`
// lacks stays, and its name is added to `unresolved`; so do references that would add more than 128
// KiB, or more than `budget`, which is reduced by what was added.
std::string ExpandReferences(const std::string& text, const std::map<std::string, std::string>& env,
                             std::set<std::string>* unresolved = nullptr, size_t* budget = nullptr);

// Expands the references in a command. Variables whose values are known only when the task starts
// (set by Shoal or the framework) are expanded by a shell that is put before the command.
std::vector<std::string> ExpandCommand(const std::vector<std::string>& command,
                                       const std::map<std::string, std::string>& env,
                                       job::Framework framework, std::set<std::string>* unresolved);

// True for names in the style of variables ("POD_IP"), as opposed to shell commands in "$(date)".
bool LooksLikeVariable(const std::string& name);

}  // namespace shoal::importer
