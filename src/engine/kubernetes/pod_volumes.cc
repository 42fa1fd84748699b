#include "engine/kubernetes/pod_volumes.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "engine/kubernetes/decode.h"

namespace shoal::engine::kubernetes {
namespace {

constexpr std::string_view kOwn = "/.shoal";

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(':', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string Plain(const std::string& path) {
  std::string plain = std::filesystem::path(path).lexically_normal().string();
  while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return plain;
}

bool HasBackstep(const std::string& path) {
  return std::ranges::any_of(std::filesystem::path(path),
                             [](const std::filesystem::path& part) { return part == ".."; });
}

// The source from the parts before the target; empty if they are invalid.
json::object SourceOf(const std::vector<std::string>& parts) {
  const std::string& kind = parts[0];
  const size_t count = parts.size();
  if (kind == "pvc" && count == 2 && !parts[1].empty())
    return {{"persistentVolumeClaim", {{"claimName", parts[1]}}}};
  if (kind == "host" && count == 2 && parts[1].starts_with('/') && !HasBackstep(parts[1]))
    return {{"hostPath", {{"path", parts[1]}}}};
  if (kind == "nfs" && count == 3 && !parts[1].empty() && parts[2].starts_with('/'))
    return {{"nfs", {{"server", parts[1]}, {"path", parts[2]}}}};
  const bool empty = kind == "empty" || kind == "memory";
  if (!empty || count > 2 || (count == 2 && !ReadQuantity(parts[1]))) return {};
  json::object directory;
  if (kind == "memory") directory["medium"] = "Memory";
  if (count == 2) directory["sizeLimit"] = parts[1];
  return {{"emptyDir", std::move(directory)}};
}

}  // namespace

Result<PodVolume> ParsePodVolume(const std::string& text) {
  std::vector<std::string> parts = Split(text);
  PodVolume volume;
  if (parts.size() > 2 && (parts.back() == "ro" || parts.back() == "rw")) {
    volume.read_only = parts.back() == "ro";
    parts.pop_back();
  }
  const std::string target = parts.back();
  parts.pop_back();
  if (!parts.empty() && target.starts_with('/')) volume.source = SourceOf(parts);
  volume.target = Plain(target);
  if (!volume.source.empty()) return volume;
  return InvalidArgument(
      "kubernetes.volumes: got \"" + text.substr(0, 200) +
      "\", expected pvc:CLAIM:/TARGET, host:/PATH:/TARGET, "
      "nfs:SERVER:/PATH:/TARGET, empty:SIZE:/TARGET or memory:SIZE:/TARGET, with "
      ":ro behind it or not");
}

Status CheckPodVolumes(const job::PodSettings& ask) {
  std::set<std::string> targets;
  for (const std::string& text : ask.volumes) {
    TRY_ASSIGN(const PodVolume volume, ParsePodVolume(text));
    if (!targets.insert(volume.target).second)
      return InvalidArgument("kubernetes.volumes: two of them are mounted at " + volume.target);
    if (volume.target == "/" || volume.target == kOwn ||
        volume.target.starts_with(std::string(kOwn) + "/")) {
      return InvalidArgument("kubernetes.volumes: got \"" + text.substr(0, 200) +
                             "\", expected a target that is neither / nor below " +
                             std::string(kOwn) + ", where the launcher has its files");
    }
  }
  return Status::Ok();
}

}  // namespace shoal::engine::kubernetes
