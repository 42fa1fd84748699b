#include "api/client/remote_queues.h"

#include <filesystem>
#include <utility>

#include "controller/jobs/jobs.h"
#include "job/file/write_yaml.h"
#include "net/http/http_session.h"

namespace shoal::api {
namespace {

class RemoteQueues final : public controller::Queues {
 public:
  RemoteQueues(const ApiClient* client, std::string team)
      : client_(client), team_(std::move(team)) {}

  Result<json::object> Describe() override { return client_->Get("/api/v1/queues"); }
  Status SetMode(const std::string& queue, const std::string& mode) override {
    return client_
        ->CallJson("PUT", "/api/v1/queues/" + net::PercentEncode(queue) + "/mode", {{"mode", mode}})
        .status();
  }
  Result<json::object> Try(const controller::NewRun& run) override {
    json::object body{{"file", job::WriteYaml(run.job)}};
    if (!team_.empty()) body["team"] = team_;
    if (!run.engine.empty()) body["engine"] = run.engine;
    std::error_code error;
    body["directory"] =
        run.work_dir.empty() ? std::filesystem::current_path(error).string() : run.work_dir;
    return client_->CallJson("POST", "/api/v1/dry-run", body);
  }
  Status Reload() override {
    return client_->CallJson("POST", "/api/v1/queues/reload", json::object()).status();
  }

 private:
  const ApiClient* const client_;
  const std::string team_;
};

}  // namespace

std::unique_ptr<controller::Queues> MakeRemoteQueues(const ApiClient* client, std::string team) {
  return std::make_unique<RemoteQueues>(client, std::move(team));
}

}  // namespace shoal::api
