// The key-value store by which Horovod's ranks find each other over Gloo, without its sockets: HTTP
// requests as bytes in, answers out. Role `rendezvous` of framework horovod
// (docs/formats/horovod.md).
//
// Driven by horovod_server.cc. Source: Horovod 0.28.1 horovod/runner/http/http_server.py (what is
// answered), horovod/common/gloo/http_store.cc (what is asked).
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

// One connection's request, of which at most one is read. Not thread-safe.
class HorovodRequestReader {
 public:
  static constexpr size_t kMostHead = 8 << 10;
  static constexpr size_t kMostBody = 4 << 20;

  // Bytes as they come. The request once it is whole; nothing while more is needed; an error if it
  // is none of ours. Not to be fed again after either.
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

  // `hosts` are the tasks with their numbers of ranks, "worker-0:2 worker-1:2". A group is
  // forgotten when all its ranks have left it, so that it can form again: `global`, `local_HOST`
  // and `cross_LOCALRANK`. InvalidArgument for hosts that are none.
  static Result<HorovodStore> Make(std::string_view hosts);

  // The whole answer, after which the connection is to be closed.
  std::string Answer(HorovodStoreRequest request);

  // To who sent no request of ours.
  static std::string Refusal(const Status& why);

 private:
  std::map<std::string, size_t> ranks_of_;  // by scope
  std::map<std::string, std::map<std::string, std::string>> values_;
  std::map<std::string, std::set<std::string>> left_;
  size_t bytes_ = 0;
  size_t keys_ = 0;
};

}  // namespace shoal::rendezvous
