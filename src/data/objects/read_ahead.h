// An object as a stream of bytes whose next ranges are fetched while the caller works. Bounded: at
// most `blocks` ranges of `block` bytes are held or on their way.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "data/objects/object.h"

namespace shoal::data {

struct ReadAheadOptions {
  size_t first_block = 128 << 10;  // doubled with each range up to `block`
  size_t block = 4 << 20;
  int blocks = 4;
};

// One thread reads; the ranges are fetched by up to `blocks` threads, which are started once a
// second range is asked for. Destroying it waits for requests on their way.
class ReadAhead {
 public:
  // Reads bytes [0, end) of the object; `end` may be its length.
  ReadAhead(std::shared_ptr<const Object> object, uint64_t end, ReadAheadOptions options = {});
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Reads up to `size` (≥ 1) bytes; 0 means the end. Errors as Object::ReadAt.
  Result<size_t> Read(char* to, size_t size);
  // The next byte to read. What was fetched for another place is dropped.
  void Jump(uint64_t offset);
  uint64_t offset() const { return offset_; }

 private:
  enum class State : uint8_t { kWanted, kOnItsWay, kHere };
  struct Block {
    uint64_t begin = 0;
    std::string bytes;
    size_t size = 0;
    State state = State::kWanted;
    Status status;
  };

  void Plan() REQUIRES(mu_);
  void StartThreads();
  void FetchLoop();
  Result<std::string> Fetch(uint64_t begin, size_t size) const;
  void Put(Result<std::string> bytes, Block* block) REQUIRES(mu_);

  const std::shared_ptr<const Object> object_;
  const uint64_t end_;
  const ReadAheadOptions options_;

  // Of the reading thread.
  uint64_t offset_ = 0;
  size_t next_size_;
  bool sequential_ = false;

  Mutex mu_;
  CondVar changed_;
  std::deque<std::shared_ptr<Block>> blocks_ GUARDED_BY(mu_);  // in the order of the object
  bool stop_ GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace shoal::data
