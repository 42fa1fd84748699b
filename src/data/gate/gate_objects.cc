#include "data/gate/gate_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/id.h"
#include "base/json.h"
#include "base/mutex.h"
#include "data/gate/gate_plan.h"
#include "data/gate/gate_proof.h"
#include "data/objects/http_objects.h"
#include "net/http/server_exchange.h"

namespace shoal::data {
namespace {

constexpr size_t kMaxListing = 64 << 20;
constexpr size_t kMaxPiece = 32 << 20;
constexpr int kAttempts = 16;  // with pauses up to 10 s: about a minute
constexpr int kPreparing = 202;
constexpr int kUnauthenticated = 401;
constexpr std::chrono::milliseconds kPause{200};

// Of one job's gate.
struct GatePlace {
  std::string server;
  std::string token;
};

// The sentence of an answer that is no success.
Status RefusalOf(const std::string& uri, const net::HttpReply& reply) {
  const auto body = ParseJsonObject(reply.body);
  const std::string why = body.ok() ? GetStringOr(*body, "error", "") : "";
  if (reply.status == kHttpPreconditionFailed)
    return DataLoss(uri + ": " + why + "; do not change data while it is used");
  return StatusOfHttp(
      reply.status,
      fmt::format("{}: {}", uri,
                  why.empty() ? fmt::format("the gate answers {}", reply.status) : why));
}

class GateClient {
 public:
  GateClient(const ObjectContext& context, GatePlace place)
      : transport_(context, ""), place_(std::move(place)) {}

  // The gate's answer, whatever its status. What answers without the job's token is waited out like
  // a gate that is away.
  Result<net::HttpReply> Get(const std::string& uri, const std::string& target,
                             const net::HttpHeaders& headers, size_t max_body) {
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const std::string instance = Instance();
      std::string nonce;
      GateQuestion question{
          instance, {}, target, ValueOf(headers, "Range"), ValueOf(headers, "If-Match")};
      TransportCall call;
      call.server = place_.server;
      call.max_body = max_body;
      call.request = [&](WallTime) -> Result<net::HttpRequest> {
        nonce = RandomHex(kNonceBytes);
        question.nonce = nonce;
        net::HttpRequest request;
        request.target = target;
        request.headers = headers;
        request.headers.emplace_back(kNonceHeader, nonce);
        if (!instance.empty())
          request.headers.emplace_back("Authorization", std::string(kProofScheme) + instance + " " +
                                                            QuestionProof(place_.token, question));
        return request;
      };
      auto reply = transport_.Run(call);
      if (!reply.ok())
        return Status(reply.status().code(),
                      uri + ": the job's gate cannot be reached: " + reply.status().message());
      const std::string told = reply->Header("shoal-gate");
      question.instance = told;
      const std::string proof =
          AnswerProof(place_.token, question, reply->status, reply->Header("content-range"));
      if (!EqualInConstantTime(reply->Header("shoal-proof"), proof)) {
        transport_.Pause(attempt);
        continue;
      }
      if (reply->status != kUnauthenticated) return reply;
      const MutexLock lock(mu_);
      instance_ = told;
    }
    return Unauthenticated(uri + ": what answers at " + place_.server +
                           " in place of the job's gate does not have the job's token");
  }

  // The objects of a data set, once they are ready.
  Result<std::vector<ObjectInfo>> List(const std::string& data) {
    const std::string uri = "gate://" + data;
    for (;;) {
      TRY_ASSIGN(const net::HttpReply reply,
                 Get(uri, "/" + net::PercentEncode(data), {}, kMaxListing));
      if (reply.status == kHttpOk) return ParseListing(uri, reply.body);
      if (reply.status != kPreparing) return RefusalOf(uri, reply);
      Pause();
    }
  }

  void Pause() { transport_.context().sleep(kPause); }

 private:
  static Result<std::vector<ObjectInfo>> ParseListing(const std::string& uri,
                                                      const std::string& text) {
    const auto body = ParseJsonObject(text);
    const json::value* const list = body.ok() ? body->if_contains("objects") : nullptr;
    if (list == nullptr || !list->is_array())
      return DataLoss(uri + ": the gate's answer has no list of objects");
    std::vector<ObjectInfo> objects;
    for (const json::value& one : list->get_array()) {
      if (!one.is_object()) return DataLoss(uri + ": the gate's answer has a wrong object");
      ObjectInfo info;
      TRY_ASSIGN(const std::string name, GetString(one.get_object(), "name"));
      TRY_ASSIGN(const int64_t bytes, GetInt(one.get_object(), "bytes"));
      TRY_ASSIGN(info.version, GetString(one.get_object(), "version"));
      if (bytes < 0 || name.empty() || name.find('/') != std::string::npos)
        return DataLoss(uri + ": the gate's answer has a wrong object");
      info.uri = uri + "/" + name;
      info.bytes = static_cast<uint64_t>(bytes);
      objects.push_back(std::move(info));
    }
    return objects;
  }

  static std::string_view ValueOf(const net::HttpHeaders& headers, std::string_view name) {
    for (const auto& [one, value] : headers)
      if (one == name) return value;
    return {};
  }
  std::string Instance() {
    const MutexLock lock(mu_);
    return instance_;
  }

  HttpTransport transport_;
  const GatePlace place_;
  Mutex mu_;
  std::string instance_ GUARDED_BY(mu_);  // of the gate; empty: not known yet
};

class GateObject final : public Object {
 public:
  GateObject(std::shared_ptr<GateClient> client, std::string target, ObjectInfo info)
      : client_(std::move(client)), target_(std::move(target)), info_(std::move(info)) {}
  const ObjectInfo& info() const override { return info_; }

  Result<size_t> ReadAt(uint64_t offset, char* to, size_t size) const override {
    size =
        static_cast<size_t>(std::min<uint64_t>(size, info_.bytes - std::min(offset, info_.bytes)));
    for (size_t done = 0; done < size;) {
      const size_t piece = std::min(size - done, kMaxPiece);
      TRY(ReadPiece(offset + done, to + done, piece));
      done += piece;
    }
    return size;
  }

 private:
  Status ReadPiece(uint64_t offset, char* to, size_t size) const {
    const net::HttpHeaders headers = {
        {"Range", fmt::format("bytes={}-{}", offset, offset + size - 1)},
        {"If-Match", info_.version}};
    // Until a gate that was started again has made its objects anew.
    for (;;) {
      TRY_ASSIGN(const net::HttpReply reply,
                 client_->Get(info_.uri, target_, headers, std::max<size_t>(size, 64 << 10)));
      if (reply.status == kPreparing) {
        client_->Pause();
        continue;
      }
      if (reply.status != kHttpPartial) return RefusalOf(info_.uri, reply);
      TRY_ASSIGN(const uint64_t length, LengthOfContentRange(reply.Header("content-range")));
      if (length != info_.bytes || reply.body.size() != size)
        return DataLoss(fmt::format("{}: got {} bytes of {} at {}, expected {} of {}", info_.uri,
                                    reply.body.size(), length, offset, size, info_.bytes));
      std::memcpy(to, reply.body.data(), size);
      return Status::Ok();
    }
  }

  const std::shared_ptr<GateClient> client_;
  const std::string target_;
  const ObjectInfo info_;
};

class GateStore final : public ObjectStore {
 public:
  explicit GateStore(std::shared_ptr<GateClient> client) : client_(std::move(client)) {}

  Result<std::shared_ptr<const Object>> Open(const ObjectUri& uri) override {
    TRY_ASSIGN(const auto* objects, ObjectsOf(uri.authority));
    const auto found = std::ranges::find(*objects, uri.text(), &ObjectInfo::uri);
    if (found == objects->end()) return NotFound(uri.text() + ": the gate has no such object");
    const std::string target = "/" + net::PercentEncode(uri.authority) + uri.path;
    return std::shared_ptr<const Object>(std::make_shared<GateObject>(client_, target, *found));
  }
  Status List(const ObjectUri& prefix, const VisitObject& visit) override {
    TRY_ASSIGN(const auto* objects, ObjectsOf(prefix.authority));
    for (const ObjectInfo& object : *objects)
      if (object.uri.starts_with(prefix.text())) TRY(visit(object));
    return Status::Ok();
  }
  Result<std::unique_ptr<ObjectWriter>> Create(const ObjectUri& uri) override {
    return Unimplemented(uri.text() + ": nothing is written to a gate");
  }

 private:
  // They are the same for the life of the job.
  Result<const std::vector<ObjectInfo>*> ObjectsOf(const std::string& data) {
    const MutexLock lock(mu_);
    const auto found = objects_.find(data);
    if (found != objects_.end()) return &found->second;
    TRY_ASSIGN(std::vector<ObjectInfo> objects, client_->List(data));
    return &objects_.emplace(data, std::move(objects)).first->second;
  }

  const std::shared_ptr<GateClient> client_;
  Mutex mu_;
  std::map<std::string, std::vector<ObjectInfo>> objects_ GUARDED_BY(mu_);
};

}  // namespace

Result<std::unique_ptr<ObjectStore>> MakeGateStore(ObjectContext context) {
  const std::string text = context.env(kGateVariable);
  const size_t blank = text.find(' ');
  if (blank == std::string::npos || blank == 0)
    return FailedPrecondition(
        "gate:// is read by the programs of a job whose data is a table of a server's catalogue "
        "(docs/catalog.md); this process has no " +
        std::string(kGateVariable));
  context.retry.attempts = kAttempts;
  context.env = [](const char* /*name*/) { return std::string(); };  // no proxy leads to a gate
  GatePlace place{"http://" + text.substr(0, blank), text.substr(blank + 1)};
  return std::unique_ptr<ObjectStore>(
      std::make_unique<GateStore>(std::make_shared<GateClient>(context, std::move(place))));
}

}  // namespace shoal::data
