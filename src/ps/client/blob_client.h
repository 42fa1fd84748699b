// Named byte strings on the leader: sent and read in pieces of bounded frames, a few at a time.
//
// Behind Client::PutBlob and Client::GetBlob.
#pragma once

#include <string>
#include <string_view>

#include "ps/client/channel.h"

namespace shoal::ps {

// Thread-safe: holds nothing but the channel, which must outlive it.
class BlobClient {
 public:
  // `leader`: to lane 0 of server 0.
  explicit BlobClient(Channel* leader) : leader_(leader) {}

  // Starts over when the server has restarted and forgotten a part of the upload.
  Status Put(std::string_view name, std::string_view bytes, TimePoint deadline);
  // One version of the blob as a whole, even while it is being replaced. NotFound.
  Result<std::string> Get(std::string_view name, TimePoint deadline);

 private:
  Status PutOnce(std::string_view name, std::string_view bytes, TimePoint deadline);
  Result<std::string> GetOnce(std::string_view name, TimePoint deadline);

  Channel* const leader_;
};

}  // namespace shoal::ps
