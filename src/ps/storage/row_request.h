// A row operation as a lane sees it, whatever transport brought it and however keys and values
// travelled: batches of keys with f32 rows.
//
// Made by lane.cc under the lane's lock.
#pragma once

#include <string_view>
#include <vector>

#include "ps/storage/table.h"
#include "ps/transport/transport.h"
#include "ps/wire/frame.h"
#include "ps/wire/key_codec.h"

namespace shoal::ps {

// Where a row operation's keys and rows are: in a frame, or in a client of this process.
struct RowSource {
  const RowChunk* part = nullptr;  // in-process
  // Else, of the sizes that ReadHeader has checked. Rows may be in memory that the client still
  // writes to (a ring); the front may not, it is checked before it is used.
  std::string_view front;        // a call's argument and the keys, each padded to 8; on 8 bytes
  const char* values = nullptr;  // rows; on 8 bytes
  char* out = nullptr;           // room for AnswerBytes; in-process: rows go to part->out
};

class RowRequest {
 public:
  // A lane's, kept for its memory.
  struct Scratch {
    std::vector<Key> keys;
    std::vector<float> deltas;
    std::vector<float> out;
  };

  // Reads the keys, and has `memory` remember them if the frame says so. An error means that the
  // stream is broken: what comes after it cannot be understood. All that is passed must outlive
  // the request.
  static Result<RowRequest> Open(const FrameHeader& head, const RowSource& source, KeyCache* memory,
                                 Scratch* scratch);

  // The most rows of one batch.
  size_t step() const { return step_; }
  // A call's argument.
  std::string_view argument() const { return argument_; }
  // Keys and rows [first, first + n).
  void FillKeys(size_t first, size_t n, KeyBatch* batch) const;
  void Fill(size_t first, size_t n, KeyBatch* batch);
  // After the rows of the batch are in batch->out: on their way as they travel.
  void PutAnswer(size_t first, const KeyBatch& batch);

 private:
  RowRequest(const FrameHeader& head, const RowSource& source, Scratch* scratch)
      : head_(&head), part_(source.part), out_(source.out), scratch_(scratch) {}
  Status OpenKeys(std::string_view area, KeyCache* memory);

  const FrameHeader* head_;
  const RowChunk* part_;
  char* out_;
  Scratch* scratch_;
  const char* raw_keys_ = nullptr;  // as the frame has them; null: in keys_ or part_
  const Key* keys_ = nullptr;
  const char* values_ = nullptr;  // coded, or the frame's; null: the part's deltas, or none
  std::string_view argument_;
  size_t step_ = kBatchRows;
};

}  // namespace shoal::ps
