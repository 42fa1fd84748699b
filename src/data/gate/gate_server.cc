#include "data/gate/gate_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <deque>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/id.h"
#include "base/mutex.h"
#include "data/gate/gate_proof.h"
#include "data/gate/table_filter.h"
#include "data/objects/object_stores.h"
#include "net/http/http_server.h"

namespace shoal::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRange = 32 << 20;
constexpr size_t kThreads = 4;
constexpr size_t kMaxQueued = 1000;

constexpr const char* kContentRange = "Content-Range";
constexpr int kStatusOk = 200;
constexpr int kStatusPreparing = 202;
constexpr int kStatusPartial = 206;
constexpr int kStatusUnauthenticated = 401;
constexpr int kStatusRefused = 403;
constexpr int kStatusMissing = 404;
constexpr int kStatusMethod = 405;
constexpr int kStatusFailed = 409;
constexpr int kStatusChanged = 412;
constexpr int kStatusRange = 416;
constexpr int kStatusBusy = 503;

net::HttpServerReply JsonAnswer(int status, const json::object& body) {
  return {status, {{"Content-Type", "application/json"}}, ToText(body)};
}

net::HttpServerReply ErrorAnswer(int status, const std::string& why) {
  return JsonAnswer(status, {{"state", "failed"}, {"error", why}});
}

// The bytes that were filtered from one object.
class ScratchFile {
 public:
  static Result<ScratchFile> Make(const std::string& directory) {
    const int fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) return ErrnoStatus(errno, directory);
    return ScratchFile(UniqueFd(fd));
  }
  Status Append(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t done =
          ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(bytes_));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return ErrnoStatus(errno, "the gate's scratch file");
      bytes_ += static_cast<uint64_t>(done);
      bytes.remove_prefix(static_cast<size_t>(done));
    }
    return Status::Ok();
  }
  Status ReadAt(uint64_t offset, char* to, size_t size) const {
    while (size > 0) {
      const ssize_t got = ::pread(fd_.get(), to, size, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoStatus(errno, "the gate's scratch file");
      if (got == 0) return DataLoss("the gate's scratch file has become shorter");
      offset += static_cast<uint64_t>(got);
      to += got;
      size -= static_cast<size_t>(got);
    }
    return Status::Ok();
  }
  uint64_t bytes() const { return bytes_; }

 private:
  explicit ScratchFile(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  uint64_t bytes_ = 0;
};

struct GivenObject {
  std::string name;
  std::string version;
  uint64_t bytes = 0;
  std::shared_ptr<const Object> source;  // given as it is, or …
  std::optional<ScratchFile> filtered;   // … this part of it
};

// One data set. `objects` and `failure` are written before `state` says so.
struct DataSet {
  enum class State : uint8_t { kPreparing, kReady, kFailed };
  const GateTable* table = nullptr;
  ObjectContext context;  // with the credentials of the table
  std::unique_ptr<ObjectStores> stores;
  std::atomic<State> state{State::kPreparing};
  std::vector<GivenObject> objects;
  std::string failure;
};

struct MadeObject {
  ObjectInfo source;
  FilterCounts counts;
};

// A local file behind a link must not lead out of the table's locations.
Status CheckLocation(const GateTable& table, const std::string& uri) {
  if (IsRemoteUri(uri)) return Status::Ok();
  std::error_code error;
  const fs::path real = fs::canonical(uri, error);
  if (error) return NotFound(uri + ": " + error.message());
  for (const std::string& location : table.locations) {
    if (IsRemoteUri(location)) continue;
    const fs::path root = fs::canonical(location, error);
    if (error) continue;
    const auto [end, inside] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
    if (end == root.end()) return Status::Ok();
  }
  return PermissionDenied(uri + " leads out of the locations of the database of " + table.table);
}

class GateServer final : public Gate {
 public:
  explicit GateServer(GateOptions options) : options_(std::move(options)) {}

  ~GateServer() override {
    stopping_ = true;
    http_.reset();
    {
      const MutexLock lock(mu_);
      queue_.clear();
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Status Begin() {
    for (const GateTable& table : plan().tables) {
      auto set = std::make_unique<DataSet>();
      set->table = &table;
      set->context.env = [&table](const char* name) {
        const auto found = table.environment.find(name);
        return found == table.environment.end() ? std::string() : found->second;
      };
      set->stores = std::make_unique<ObjectStores>(set->context);
      sets_.push_back(std::move(set));
    }
    net::HttpServerOptions http;
    http.address = plan().address;
    http.port = plan().port;
    http.handler = [this](std::shared_ptr<net::HttpExchange> exchange) {
      Enqueue(std::move(exchange));
    };
    TRY_ASSIGN(http_, net::HttpServer::Start(std::move(http)));
    for (size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Work(); });
    if (plan().refusal.empty())
      threads_.emplace_back([this] {
        for (const auto& set : sets_) Prepare(set.get());
      });
    return Status::Ok();
  }

  uint16_t port() const override { return http_->port(); }

 private:
  const GatePlan& plan() const { return options_.plan; }

  // ---- Making what is given ----

  void Prepare(DataSet* set) {
    const auto made = MakeObjects(set);
    if (!made.ok()) set->failure = made.status().message();
    set->state = made.ok() ? DataSet::State::kReady : DataSet::State::kFailed;
    if (stopping_) return;
    if (made.ok() && options_.on_ready) options_.on_ready(*made);
    if (!made.ok() && options_.on_failed) options_.on_failed(set->table->data, made.status());
  }

  Result<GateSources> MakeObjects(DataSet* set) {
    GateSources sources{.data = set->table->data, .objects = {}};
    std::vector<std::string> uris;
    for (const std::string& source : set->table->sources) {
      TRY_ASSIGN(const std::vector<std::string> some, set->stores->Expand(source));
      uris.insert(uris.end(), some.begin(), some.end());
      if (uris.size() > kMaxGateObjects)
        return ResourceExhausted(
            fmt::format("{} has more than {} objects", set->table->table, kMaxGateObjects));
    }
    TRY_ASSIGN(const TableFilter filter, TableFilter::Make(set->table, plan().hash_key));
    set->objects.resize(uris.size());
    sources.objects.resize(uris.size());
    std::atomic<size_t> next{0};
    Mutex mu;  // of `failed` and the counts
    Status failed;
    const auto work = [&] {
      for (size_t i = next++; i < uris.size() && !stopping_; i = next++) {
        const auto made = MakeObject(set, filter, uris[i], i);
        const MutexLock lock(mu);
        if (!made.ok() && failed.ok()) failed = made.status();
        if (!failed.ok()) return;
        sources.objects[i] = made->source;
        sources.records_read += made->counts.read;
        sources.records_given += made->counts.given;
      }
    };
    std::vector<std::thread> threads;
    const size_t cores = std::max(1U, std::thread::hardware_concurrency());
    for (size_t i = 1; i < std::min({cores, kThreads, uris.size()}); ++i)
      threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
    if (stopping_) return Aborted("the gate ends");
    TRY(failed);
    return sources;
  }

  Result<MadeObject> MakeObject(DataSet* set, const TableFilter& filter, const std::string& uri,
                                size_t index) {
    MadeObject made;
    TRY(CheckLocation(*set->table, uri));
    GivenObject& given = set->objects[index];
    const RecordFormat format =
        set->table->filtered ? FilteredFormat(set->table->format) : set->table->format;
    given.name = fmt::format("{:06}.{}", index, NameOf(format));
    TRY_ASSIGN(std::shared_ptr<const Object> object, set->stores->Open(uri));
    made.source = object->info();
    if (!set->table->filtered) {
      given.version = Sha256Hex(uri + "\n" + made.source.version);
      given.bytes = made.source.bytes;
      given.source = std::move(object);
      return made;
    }
    TRY_ASSIGN(ScratchFile scratch, ScratchFile::Make(plan().scratch));
    if (made.source.bytes > 0) {
      TRY_ASSIGN(const Corpus corpus,
                 Corpus::Open({uri}, set->context, ContentOf(set->table->format)));
      TRY_ASSIGN(made.counts, filter.Run(corpus, [&](std::string_view bytes) {
        return stopping_ ? Aborted("the gate ends") : scratch.Append(bytes);
      }));
    }
    TRY(CheckUnchanged(set, made.source));
    given.bytes = scratch.bytes();
    given.version = Sha256Hex(uri + "\n" + made.source.version + "\n" + FilterText(*set->table));
    given.filtered = std::move(scratch);
    return made;
  }

  static Status CheckUnchanged(DataSet* set, const ObjectInfo& before) {
    TRY_ASSIGN(const auto now, set->stores->Open(before.uri));
    if (now->info().version == before.version && now->info().bytes == before.bytes)
      return Status::Ok();
    return DataLoss(before.uri +
                    " has changed while it was read; do not change data while it is used");
  }

  // All that decides what is given of the same source.
  std::string FilterText(const GateTable& table) const {
    GatePlan part;
    part.tables = {table};
    part.tables[0].environment.clear();
    part.hash_key = plan().hash_key;
    return ToText(ToJson(part));
  }

  // ---- Requests ----

  void Enqueue(std::shared_ptr<net::HttpExchange> exchange) {
    {
      const MutexLock lock(mu_);
      if (queue_.size() < kMaxQueued) {
        queue_.push_back(exchange);
        exchange.reset();
      }
    }
    if (exchange != nullptr) {
      exchange->Reply(ErrorAnswer(kStatusBusy, "the gate is busy"));
      return;
    }
    wake_.notify_one();
  }

  void Work() {
    for (;;) {
      std::shared_ptr<net::HttpExchange> exchange;
      {
        MutexLock lock(mu_);
        while (!stopping_ && queue_.empty()) wake_.wait(lock);
        if (stopping_) return;
        exchange = std::move(queue_.front());
        queue_.pop_front();
      }
      exchange->Reply(Answer(exchange->request()));
    }
  }

  // Shows that it knows the token, and answers programs that do so.
  net::HttpServerReply Answer(const net::HttpServerRequest& request) const {
    const GateQuestion question{instance_, request.Header("shoal-nonce"), request.target,
                                request.Header("range"), request.Header("if-match")};
    const std::string expected =
        std::string(kProofScheme) + instance_ + " " + QuestionProof(plan().token, question);
    const bool known =
        !question.nonce.empty() && EqualInConstantTime(request.Header("authorization"), expected);
    net::HttpServerReply reply =
        known ? AnswerKnown(request)
              : ErrorAnswer(kStatusUnauthenticated, "the gate wants the token of its job");
    std::string range;
    for (const auto& [name, value] : reply.headers)
      if (name == kContentRange) range = value;
    reply.headers.emplace_back(kInstanceHeader, instance_);
    reply.headers.emplace_back(kProofHeader,
                               AnswerProof(plan().token, question, reply.status, range));
    return reply;
  }

  net::HttpServerReply AnswerKnown(const net::HttpServerRequest& request) const {
    if (!plan().refusal.empty()) return ErrorAnswer(kStatusRefused, plan().refusal);
    if (request.method != "GET") return ErrorAnswer(kStatusMethod, "the gate is only read");
    if (request.path.empty() || request.path.size() > 2)
      return ErrorAnswer(kStatusMissing, "expected /DATA or /DATA/OBJECT");
    for (const auto& set : sets_)
      if (set->table->data == request.path[0]) return AnswerSet(*set, request);
    return ErrorAnswer(kStatusMissing, "the job has no data " + request.path[0] + " of a gate");
  }

  static net::HttpServerReply AnswerSet(const DataSet& set, const net::HttpServerRequest& request) {
    const DataSet::State state = set.state;
    if (state == DataSet::State::kPreparing)
      return JsonAnswer(kStatusPreparing, {{"state", "preparing"}});
    if (state == DataSet::State::kFailed) return ErrorAnswer(kStatusFailed, set.failure);
    if (request.path.size() == 2) {
      const auto found =
          std::ranges::lower_bound(set.objects, request.path[1], {}, &GivenObject::name);
      if (found == set.objects.end() || found->name != request.path[1])
        return ErrorAnswer(kStatusMissing, "the data " + request.path[0] + " has no such object");
      return AnswerRange(*found, request);
    }
    json::array objects;
    for (const GivenObject& object : set.objects)
      objects.push_back(json::object{
          {"name", object.name}, {"bytes", object.bytes}, {"version", object.version}});
    return JsonAnswer(kStatusOk, {{"state", "ready"}, {"objects", std::move(objects)}});
  }

  // "bytes=FIRST-LAST".
  static std::optional<std::pair<uint64_t, uint64_t>> ParseRange(std::string_view text) {
    constexpr std::string_view kBytes = "bytes=";
    if (!text.starts_with(kBytes)) return std::nullopt;
    std::pair<uint64_t, uint64_t> range;
    const char* const end = text.data() + text.size();
    auto parsed = std::from_chars(text.data() + kBytes.size(), end, range.first);
    if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '-') return std::nullopt;
    parsed = std::from_chars(parsed.ptr + 1, end, range.second);
    if (parsed.ec != std::errc() || parsed.ptr != end || range.second < range.first)
      return std::nullopt;
    return range;
  }

  static net::HttpServerReply AnswerRange(const GivenObject& object,
                                          const net::HttpServerRequest& request) {
    const std::string_view wanted = request.Header("if-match");
    if (!wanted.empty() && wanted != object.version)
      return ErrorAnswer(kStatusChanged, "the source has changed since the job began");
    const auto range = ParseRange(request.Header("range"));
    if (!range || range->first >= object.bytes)
      return ErrorAnswer(kStatusRange, fmt::format("expected a range of {} bytes", object.bytes));
    const uint64_t last = std::min({range->second, object.bytes - 1, range->first + kMaxRange - 1});
    net::HttpServerReply reply{kStatusPartial, {}, std::string(last - range->first + 1, '\0')};
    reply.headers = {
        {"Content-Type", "application/octet-stream"},
        {kContentRange, fmt::format("bytes {}-{}/{}", range->first, last, object.bytes)}};
    const Status read = ReadObject(object, range->first, &reply.body);
    if (read.ok()) return reply;
    const bool passes = read.code() == Code::kUnavailable || read.code() == Code::kDeadlineExceeded;
    return ErrorAnswer(passes ? kStatusBusy : kStatusFailed, read.message());
  }

  static Status ReadObject(const GivenObject& object, uint64_t offset, std::string* to) {
    if (object.filtered) return object.filtered->ReadAt(offset, to->data(), to->size());
    TRY_ASSIGN(const size_t got, object.source->ReadAt(offset, to->data(), to->size()));
    return got == to->size() ? Status::Ok() : DataLoss("the source has become shorter");
  }

  const GateOptions options_;
  const std::string instance_ = RandomHex(kNonceBytes);
  std::vector<std::unique_ptr<DataSet>> sets_;
  std::atomic<bool> stopping_{false};
  Mutex mu_;
  CondVar wake_;
  std::deque<std::shared_ptr<net::HttpExchange>> queue_ GUARDED_BY(mu_);
  std::vector<std::thread> threads_;
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace

Result<std::unique_ptr<Gate>> Gate::Start(GateOptions options) {
  auto gate = std::make_unique<GateServer>(std::move(options));
  TRY(gate->Begin());
  return std::unique_ptr<Gate>(std::move(gate));
}

}  // namespace shoal::data
