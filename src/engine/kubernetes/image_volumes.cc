#include "engine/kubernetes/image_volumes.h"

#include <cstdio>
#include <optional>
#include <thread>

namespace shoal::engine::kubernetes {
namespace {

constexpr int kOnByDefault = 35;  // the minor version of Kubernetes with image volumes
constexpr int kOnRequest = 33;    // with a container runtime that had them
constexpr const char* kProbe = "shoal-probe";

// "v1.35.2+k3s1" → 35; 0 for versions other than 1.x.
int MinorOf(const std::string& version) {
  int major = 0;
  int minor = 0;
  const bool read = std::sscanf(version.c_str(), "v%d.%d", &major, &minor) == 2;
  return read && major == 1 ? minor : 0;
}

bool RuntimeMountsImages(const std::string& runtime) {
  int major = 0;
  int minor = 0;
  if (std::sscanf(runtime.c_str(), "containerd://%d.%d", &major, &minor) != 2) return false;
  return major > 2 || (major == 2 && minor >= 1);
}

const json::object* InfoOf(const json::value& node) {
  const json::value* at = &node;
  for (const char* field : {"status", "nodeInfo"}) {
    at = at->is_object() ? at->get_object().if_contains(field) : nullptr;
    if (at == nullptr) return nullptr;
  }
  return at->if_object();
}

// A dry run: a server that does not know the volume type rejects it.
json::object Probe() {
  const json::object volume{{"name", "image"}, {"image", {{"reference", "shoal.dev/none:1"}}}};
  const json::object pod{
      {"restartPolicy", "Never"},
      {"containers", json::array{{{"name", "none"}, {"image", "shoal.dev/none:1"}}}},
      {"volumes", json::array{volume}}};
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", {{"name", kProbe}}},
          {"spec", {{"suspend", true}, {"template", {{"spec", pod}}}}}};
}

}  // namespace

bool NodesMountImages(const json::object& version, const json::object& nodes) {
  const int server = MinorOf(GetStringOr(version, "gitVersion", ""));
  const json::value* items = nodes.if_contains("items");
  if (items == nullptr || !items->is_array() || items->get_array().empty()) return false;
  for (const json::value& node : items->get_array()) {
    const json::object* const info = InfoOf(node);
    if (info == nullptr) return false;
    const int kubelet = MinorOf(GetStringOr(*info, "kubeletVersion", ""));
    if (kubelet < (server < kOnByDefault ? kOnRequest : kOnByDefault)) return false;
    if (!RuntimeMountsImages(GetStringOr(*info, "containerRuntimeVersion", ""))) return false;
  }
  return true;
}

bool MountsImages(const KubeClient& client, const std::string& name_space) {
  bool taken = false;
  std::optional<json::object> version;
  std::thread probe([&] {
    taken =
        client.DryRunApply("/apis/batch/v1/namespaces/" + name_space + "/jobs/" + kProbe, Probe())
            .ok();
  });
  std::thread ask([&] {
    if (auto said = client.Get("/version"); said.ok()) version = std::move(*said);
  });
  const auto nodes = client.Get("/api/v1/nodes?limit=500");
  probe.join();
  ask.join();
  return taken && version && nodes.ok() && NodesMountImages(*version, *nodes);
}

}  // namespace shoal::engine::kubernetes
