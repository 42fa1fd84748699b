#include "import/kubernetes/pod_resources.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "import/kubernetes/pod_template.h"
#include "job/text/units.h"

namespace shoal::importer {
namespace {

constexpr int64_t kLeastMemory = int64_t{1} << 20;
constexpr size_t kMaxExtendedResources = 32;
constexpr std::string_view kStorage = "ephemeral-storage";

constexpr UnsupportedField kUnsupported[] = {
    {kStorage, "how much disk the pod asks for", "tasks use their machine's disk"},
};

std::optional<double> Quantity(std::optional<FieldReader>* section, const std::string& name,
                               double most) {
  if (!*section || !(*section)->HasField(name)) return std::nullopt;
  const auto text = (*section)->ReadText(name);
  if (!text) return std::nullopt;
  const auto value = ParseQuantity(*text);
  if (value && *value >= 0 && *value <= most) return value;
  (*section)->AddError(name, "got " + job::PrintableText(*text) +
                                 ", expected a quantity of Kubernetes, such as 500m, 2 or 4Gi" +
                                 HintForVariable(*text));
  return std::nullopt;
}

// Reads one container's requests and limits into a role.
class ResourceReader {
 public:
  ResourceReader(FieldReader* resources, job::Role* role, JobBuilder* builder)
      : role_(role),
        builder_(builder),
        limits_(resources->ReadObject("limits")),
        requests_(resources->ReadObject("requests")) {}

  void Run() {
    ReadCpu();
    ReadMemory();
    for (const char* name : {"nvidia.com/gpu", "amd.com/gpu", "alpha.kubernetes.io/nvidia-gpu"}) {
      ReadGpus(name);
    }
    ReadExtendedResources(&limits_);
    ReadExtendedResources(&requests_);
    if (limits_) limits_->ReportUnread("", kUnsupported);
    if (requests_) requests_->ReportUnread("", kUnsupported);
  }

 private:
  void ReadCpu() {
    const double limit = Quantity(&limits_, "cpu", job::kMaxCpus).value_or(0);
    const double request = Quantity(&requests_, "cpu", job::kMaxCpus).value_or(0);
    role_->resources.cpu = limit;
    if (request != limit) role_->resources.cpu_request = request;
    if (limit > 0 && request > limit) ReportTooMuch("cpu");
  }

  void ReadMemory() {
    constexpr auto kMost = static_cast<double>(job::kMaxMemoryBytes);
    const auto limit =
        static_cast<int64_t>(std::ceil(Quantity(&limits_, "memory", kMost).value_or(0)));
    const auto request =
        static_cast<int64_t>(std::ceil(Quantity(&requests_, "memory", kMost).value_or(0)));
    if (limit > 0 && limit < kLeastMemory) {
      limits_->AddError("memory", "got less than 1 MiB, expected a quantity such as 512Mi");
    }
    role_->resources.memory_bytes = limit;
    if (request > 0 && request != limit) {
      role_->resources.memory_request = std::max(request, kLeastMemory);
    }
    if (limit > 0 && request > limit) ReportTooMuch("memory");
  }

  void ReportTooMuch(const std::string& name) {
    requests_->AddError(name, "got more than the limit, expected a request of at most that");
  }

  // The job has one GPU resource name; GPUs with another name are passed to the pods unchanged.
  void ReadGpus(const std::string& name) {
    auto gpus = Quantity(&limits_, name, job::kMaxGpus);
    const auto request = Quantity(&requests_, name, job::kMaxGpus);
    std::optional<FieldReader>& from = gpus ? limits_ : requests_;
    if (!gpus) gpus = request;
    if (!gpus || *gpus == 0) return;
    if (*gpus != std::floor(*gpus)) {
      return from->AddError(name, "got a part of a GPU, expected whole ones");
    }
    const std::string resource = name.starts_with("alpha.") ? "nvidia.com/gpu" : name;
    std::string& kept = builder_->job()->kubernetes.gpu_resource;
    const auto& roles = builder_->job()->roles;
    const bool others = std::any_of(roles.begin(), roles.end(),
                                    [](const job::Role& role) { return role.resources.gpu > 0; });
    if (others && kept != resource) {
      return AddExtendedResource(name, std::to_string(static_cast<int64_t>(*gpus)), &*from);
    }
    kept = resource;
    role_->resources.gpu += static_cast<int>(*gpus);
  }

  // Extended resources (names with a domain) and huge pages.
  void ReadExtendedResources(std::optional<FieldReader>* section) {
    if (!*section) return;
    for (const std::string& name : (*section)->Names()) {
      const bool device = name.find('/') != std::string::npos || name.starts_with("hugepages-") ||
                          (name == kStorage && section == &limits_);
      if (!device || !read_.insert(name).second || name.ends_with("/gpu") ||
          name.ends_with("/nvidia-gpu")) {
        continue;
      }
      const auto text = (*section)->ReadText(name);
      if (!text) continue;
      if (ParseQuantity(*text)) {
        AddExtendedResource(name, *text, &**section);
        if (requests_) requests_->ReadNode(name);
      } else {
        (*section)->AddError(name, "got " + job::PrintableText(*text) +
                                       ", expected a quantity of Kubernetes, such as 1 or 64Mi" +
                                       HintForVariable(*text));
      }
    }
  }

  void AddExtendedResource(const std::string& name, const std::string& quantity,
                           FieldReader* from) {
    std::vector<std::string>& kept = builder_->job()->kubernetes.resources;
    const bool fits = kept.size() < kMaxExtendedResources;
    if (fits) kept.push_back(role_->name + ":" + name + "=" + quantity);
    from->AddLoss(name, fits ? "kept in kubernetes.resources for the pods; other engines do not "
                               "lease it"
                             : "not kept: kubernetes.resources takes 32");
  }

  job::Role* const role_;
  JobBuilder* const builder_;
  std::optional<FieldReader> limits_;
  std::optional<FieldReader> requests_;
  std::set<std::string> read_;
};

}  // namespace

void ReadPodResources(FieldReader* container, job::Role* role, JobBuilder* builder) {
  auto resources = container->ReadObject("resources");
  if (!resources) return;
  resources->set_at("roles." + role->name + ".resources");
  ResourceReader(&*resources, role, builder).Run();
  resources->ReportUnread("ResourceRequirements");
}

}  // namespace shoal::importer
