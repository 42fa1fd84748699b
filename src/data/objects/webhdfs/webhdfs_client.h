// One operation of WebHDFS: which name node, the redirect to a data node, and errors in words. For
// webhdfs_objects.cc.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "data/objects/http_transport.h"
#include "data/objects/object.h"
#include "data/objects/webhdfs/webhdfs_objects.h"

namespace shoal::data {

struct WebHdfsCall {
  std::string method = "GET";
  std::string op = {};     // "OPEN"
  std::string query = {};  // further parameters, percent-encoded: "offset=0&length=9"
  std::string body = {};   // sent to the data node
  bool redirects = false;  // to a data node
  size_t max_body = 1 << 20;
  bool repeat = true;  // false: sending it twice may do harm
};

// Thread-safe.
class WebHdfsClient {
 public:
  WebHdfsClient(WebHdfsSettings settings, const ObjectUri& place,
                std::shared_ptr<HttpTransport> transport);

  // The reply of a call that succeeded (status 200 or 201). Errors name the URI of `path`:
  // NotFound, PermissionDenied, … by the exception that the server names; Unavailable if no name
  // node is active.
  Result<net::HttpReply> Call(const std::string& path, const WebHdfsCall& call) const;
  // The object of its JSON.
  Result<json::object> CallForJson(const std::string& path, const WebHdfsCall& call) const;

  std::string UriOf(const std::string& path) const { return place_.WithPath(path).text(); }

 private:
  Result<net::HttpReply> CallOne(const std::string& node, const std::string& path,
                                 const WebHdfsCall& call) const;
  Result<net::HttpReply> CallAll(const std::string& path, const WebHdfsCall& call) const;
  Status ErrorOf(const std::string& path, const net::HttpReply& reply) const;

  const WebHdfsSettings settings_;
  const ObjectUri place_;
  const std::shared_ptr<HttpTransport> transport_;
  std::vector<std::string> nodes_;  // "http://HOST:PORT"
  mutable std::atomic<size_t> active_{0};
};

}  // namespace shoal::data
