// Requests for named byte strings: decodes them and answers from a BlobStore.
//
// Part of ServerCore. Only server 0's store has content. All functions: under lane 0's lock.
#pragma once

#include "ps/lane/control_request.h"
#include "ps/lane/server_options.h"
#include "ps/storage/blob_store.h"

namespace shoal::ps {

class BlobService {
 public:
  explicit BlobService(const ServerOptions& options)
      : store_(options.max_blob_bytes, options.max_blobs_bytes) {}

  // kPutBlob, kGetBlob, kListBlobs, kDeleteBlob.
  Status Handle(ControlRequest* request);
  BlobStore& store() { return store_; }
  const BlobStore& store() const { return store_; }

  // Replication. Appends all blobs and unfinished uploads to the log of `lane`, which is lane 0.
  void LogAll(Lane* lane) const;
  // Applies a kBlob entry of the primary's log.
  Status ApplyEntry(const Entry& entry);

 private:
  Status Put(ControlRequest* request);
  Status Get(ControlRequest* request);
  Status List(ControlRequest* request);

  BlobStore store_;
};

}  // namespace shoal::ps
