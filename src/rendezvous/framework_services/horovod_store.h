// The key-value store by which Horovod's ranks find each other over Gloo, without sockets: HTTP
// requests as bytes in, answers out. Role `rendezvous` of framework horovod
// (docs/formats/horovod.md).
//
// Driven by horovod_server.cc. Source: Horovod 0.28.1 horovod/runner/http/http_server.py (answers),
// horovod/common/gloo/http_store.cc (requests).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shoal::rendezvous {

struct HorovodStoreRequest {
  enum class Method : uint8_t { kGet, kPut, kDelete };
  Method method = Method::kGet;
  std::string scope;
  std::string key;
  std::string body;
};

// Parses the single request of one connection. Not thread-safe.
class HorovodRequestReader {
 public:
  static constexpr size_t kMostHead = 8 << 10;
  static constexpr size_t kMostBody = 4 << 20;

  // Feeds received bytes. Gives the request when it is complete, nothing while more bytes are
  // needed, and an error for anything that Horovod does not send. Not to be called again after a
  // request or an error.
  Result<std::optional<HorovodStoreRequest>> Feed(std::string_view bytes);

 private:
  std::string held_;
  std::optional<HorovodStoreRequest> head_;  // what is read of it
  size_t body_at_ = 0;
  size_t body_bytes_ = 0;
};

// The store of one job. Not thread-safe. O(log keys) a request, and the value's bytes.
class HorovodStore {
 public:
  static constexpr size_t kMostBytes = size_t{256} << 20;  // of all keys and values
  static constexpr size_t kMostKeys = 1 << 20;

  // `hosts`: the tasks with their numbers of ranks, "worker-0:2 worker-1:2". A scope (`global`,
  // `local_HOST`, `cross_LOCALRANK`) is forgotten when all its ranks have left it, so that it can
  // form again. InvalidArgument for malformed hosts.
  static Result<HorovodStore> Make(std::string_view hosts);

  // The complete HTTP answer, after which the connection is to be closed.
  std::string Answer(HorovodStoreRequest request);

  // The HTTP answer to an invalid request.
  static std::string Refusal(const Status& why);

 private:
  std::map<std::string, size_t> ranks_of_;  // by scope
  std::map<std::string, std::map<std::string, std::string>> values_;
  std::map<std::string, std::set<std::string>> left_;
  size_t bytes_ = 0;
  size_t keys_ = 0;
};

}  // namespace shoal::rendezvous
