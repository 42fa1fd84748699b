#include "api/operator/kube_objects.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/log.h"
#include "base/mutex.h"
#include "engine/docker/decode.h"

namespace shoal::api {
namespace {

using engine::kubernetes::KubeClient;
using std::chrono::milliseconds;

constexpr int kPageSize = 40;       // objects of 1.5 MB at most
constexpr int kWatchSeconds = 300;  // the server ends a watch then; the next one goes on
constexpr milliseconds kStep{60'000};
constexpr size_t kMaxLine = 8 << 20;
constexpr size_t kMaxPage = 64 << 20;
constexpr size_t kMaxEventName = 200;

std::string ListPath(const std::string& name_space) {
  const std::string group = std::string("/apis/") + kResourceGroup + "/" + kResourceVersion + "/";
  const std::string place =
      name_space.empty() ? "" : "namespaces/" + net::PercentEncode(name_space) + "/";
  return group + place + kResourcePlural;
}

std::string PathOf(const ResourceKey& key) {
  return ListPath(key.name_space) + "/" + net::PercentEncode(key.name);
}

// The change is refused if the object has changed, or is another one of the same name.
json::object Guarded(const ShoalJob& object) {
  return {{"resourceVersion", object.version}, {"uid", object.uid}};
}

class KubeObjects final : public ShoalJobApi {
 public:
  KubeObjects(const KubeClient* client, const Clock* clock) : client_(client), clock_(clock) {}

  Result<ShoalJob> Get(const ResourceKey& key) override {
    TRY_ASSIGN(const json::object object, client_->Get(PathOf(key)));
    return DecodeShoalJob(object);
  }

  Result<ShoalJob> SetFinalizers(const ShoalJob& object,
                                 const std::vector<std::string>& finalizers) override {
    json::object meta = Guarded(object);
    meta["finalizers"] = json::array(finalizers.begin(), finalizers.end());
    return Patch(PathOf(object.key), {{"metadata", std::move(meta)}});
  }

  Result<ShoalJob> SetStatus(const ShoalJob& object, const json::object& status) override {
    return Patch(PathOf(object.key) + "/status",
                 {{"metadata", Guarded(object)}, {"status", MergeChange(object.status, status)}});
  }

  void Announce(const ShoalJob& object, bool warning, const std::string& reason,
                const std::string& message) override {
    const WallTime now = clock_->Wall();
    const std::string time = FormatWall(std::chrono::time_point_cast<std::chrono::seconds>(now));
    const std::string digest = Sha256Hex(object.uid + "\n" + reason + "\n" + message + "\n" + time);
    const std::string name = object.key.name.substr(0, kMaxEventName) + "." + digest.substr(0, 16);
    const json::object event{{"apiVersion", "v1"},
                             {"kind", "Event"},
                             {"metadata", {{"name", name}, {"namespace", object.key.name_space}}},
                             {"involvedObject",
                              {{"apiVersion", std::string(kResourceGroup) + "/" + kResourceVersion},
                               {"kind", kResourceKind},
                               {"namespace", object.key.name_space},
                               {"name", object.key.name},
                               {"uid", object.uid}}},
                             {"type", warning ? "Warning" : "Normal"},
                             {"reason", reason},
                             {"message", message},
                             {"source", {{"component", "shoal"}}},
                             {"reportingComponent", "shoal"},
                             {"reportingInstance", "shoal-operator"},
                             {"firstTimestamp", time},
                             {"lastTimestamp", time},
                             {"count", 1}};
    const Status told =
        client_->Apply("/api/v1/namespaces/" + object.key.name_space + "/events/" + name, event)
            .status();
    if (!told.ok())
      LogWarning("ShoalJob {}: its event cannot be written: {}", object.key.text(), told.message());
  }

 private:
  Result<ShoalJob> Patch(const std::string& path, const json::object& change) {
    TRY_ASSIGN(const json::object changed, client_->MergePatch(path, change));
    return DecodeShoalJob(changed);
  }

  const KubeClient* const client_;
  const Clock* const clock_;
};

class ClientFeed final : public KubeFeed {
 public:
  ClientFeed(KubeClient* client, const std::string& name_space)
      : client_(client), path_(ListPath(name_space)) {}

  Result<ShoalJobList> List() override {
    ShoalJobList all;
    std::string more;
    do {
      std::string path = path_ + "?limit=" + std::to_string(kPageSize);
      if (!more.empty()) path += "&continue=" + net::PercentEncode(more);
      TRY_ASSIGN(const std::string text, client_->Text(path, kMaxPage));
      TRY_ASSIGN(const json::object answer, ParseAnswer(text));
      TRY_ASSIGN(ShoalJobList page, DecodeShoalJobs(answer));
      for (ShoalJob& one : page.items) all.items.push_back(std::move(one));
      all.version = page.version;
      more = page.continues;
    } while (!more.empty());
    return all;
  }

  Status Watch(const std::string& version,
               const std::function<Status(std::string_view)>& on_line) override {
    TRY_ASSIGN(std::unique_ptr<net::HttpStream> opened,
               client_->Watch(path_ + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" +
                              std::to_string(kWatchSeconds) +
                              "&resourceVersion=" + net::PercentEncode(version)));
    const std::shared_ptr<net::HttpStream> stream = std::move(opened);
    {
      const MutexLock lock(mu_);
      if (ending_) return Cancelled("the operator ends");
      stream_ = stream;
    }
    engine::docker::LineCutter cutter(kMaxLine);
    for (;;) {
      const Result<std::string> bytes = stream->Next(kStep);
      if (bytes.status().code() == Code::kDeadlineExceeded) continue;
      TRY(bytes.status());
      if (bytes->empty()) return Status::Ok();
      std::vector<std::string> lines;
      TRY(cutter.Feed(*bytes, &lines));
      for (const std::string& line : lines) TRY(on_line(line));
    }
  }

  bool Pause(int failures) override {
    MutexLock lock(mu_);
    return !changed_.wait_for(lock, engine::kubernetes::BackOff(failures, RandomSeed()),
                              [this]() REQUIRES(mu_) { return ending_; });
  }

  bool ending() override {
    const MutexLock lock(mu_);
    return ending_;
  }

  void End() override {
    {
      const MutexLock lock(mu_);
      ending_ = true;
      if (stream_ != nullptr) stream_->Cancel();
    }
    client_->Shutdown();
    changed_.notify_all();
  }

 private:
  KubeClient* const client_;
  const std::string path_;
  Mutex mu_;
  CondVar changed_;
  bool ending_ GUARDED_BY(mu_) = false;
  std::shared_ptr<net::HttpStream> stream_ GUARDED_BY(mu_);
};

}  // namespace

std::unique_ptr<ShoalJobApi> MakeKubeObjects(const KubeClient* client, const Clock* clock) {
  return std::make_unique<KubeObjects>(client, clock);
}

std::unique_ptr<KubeFeed> MakeKubeFeed(KubeClient* client, const std::string& name_space) {
  return std::make_unique<ClientFeed>(client, name_space);
}

json::object MergeChange(const json::object& from, const json::object& to) {
  json::object change;
  for (const auto& field : from)
    if (!to.contains(field.key())) change[field.key()] = nullptr;
  for (const auto& field : to) {
    const json::value* const before = from.if_contains(field.key());
    if (before != nullptr && *before == field.value()) continue;
    const bool both = before != nullptr && before->is_object() && field.value().is_object();
    if (both) {
      change[field.key()] = MergeChange(before->get_object(), field.value().get_object());
    } else {
      change[field.key()] = field.value();
    }
  }
  return change;
}

}  // namespace shoal::api
