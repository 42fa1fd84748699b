// HDFS by its HTTP interface WebHDFS (hadoop.apache.org, "WebHDFS REST API"): read, listed and
// written as a user that is named without proof, or with a delegation token.
//
// The name node redirects each transfer to a data node; the transport's rule says where that may
// be. Of several name nodes the one that is not in standby answers; it is asked first from then on.
#pragma once

#include <memory>
#include <string>

#include "data/objects/http_transport.h"
#include "data/objects/object.h"

namespace shoal::data {

struct WebHdfsSettings {
  std::string user;   // empty: the server's default
  std::string token;  // a delegation token; then `user` is not sent
};

// HADOOP_USER_NAME, else USER; HDFS_DELEGATION_TOKEN.
WebHdfsSettings ReadWebHdfsSettings(const std::function<std::string(const char*)>& env);

// Files are pinned by their inode, length and time of change, which are compared after each range.
// A file that is written has a temporary name beside its own until it is finished, and then
// replaces an older one. `place`: of its authority, "HOST:PORT[,HOST:PORT]".
std::unique_ptr<ObjectStore> MakeWebHdfsStore(WebHdfsSettings settings, const ObjectUri& place,
                                              std::shared_ptr<HttpTransport> transport);

}  // namespace shoal::data
