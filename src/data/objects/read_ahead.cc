#include "data/objects/read_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shoal::data {

ReadAhead::ReadAhead(std::shared_ptr<const Object> object, uint64_t end, ReadAheadOptions options)
    : object_(std::move(object)),
      end_(std::min(end, object_->info().bytes)),
      options_(options),
      next_size_(std::min(options.first_block, options.block)) {}

ReadAhead::~ReadAhead() {
  {
    const MutexLock lock(mu_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

// Appends blocks behind the last one, as many as may be held. Called with mu_ locked.
void ReadAhead::Plan() {
  const size_t most = sequential_ ? static_cast<size_t>(std::max(1, options_.blocks)) : 1;
  uint64_t next = blocks_.empty() ? offset_ : blocks_.back()->begin + blocks_.back()->size;
  while (blocks_.size() < most && next < end_) {
    auto block = std::make_shared<Block>();
    block->begin = next;
    block->size = static_cast<size_t>(std::min<uint64_t>(next_size_, end_ - next));
    next += block->size;
    next_size_ = std::min(options_.block, 2 * next_size_);
    blocks_.push_back(std::move(block));
  }
}

void ReadAhead::StartThreads() {
  while (threads_.size() < static_cast<size_t>(std::max(1, options_.blocks)))
    threads_.emplace_back([this] { FetchLoop(); });
}

Result<std::string> ReadAhead::Fetch(uint64_t begin, size_t size) const {
  std::string bytes(size, '\0');
  TRY_ASSIGN(const size_t got, object_->ReadAt(begin, bytes.data(), bytes.size()));
  if (got != bytes.size()) return DataLoss(object_->info().uri + " ends early");
  return bytes;
}

void ReadAhead::Put(Result<std::string> bytes, Block* block) {
  block->status = bytes.status();
  if (bytes.ok()) block->bytes = std::move(*bytes);
  block->state = State::kHere;
  changed_.notify_all();
}

void ReadAhead::FetchLoop() {
  MutexLock lock(mu_);
  while (!stop_) {
    const auto wanted = std::ranges::find_if(
        blocks_, [](const auto& block) { return block->state == State::kWanted; });
    if (wanted == blocks_.end()) {
      changed_.wait(lock);
      continue;
    }
    const std::shared_ptr<Block> block = *wanted;
    block->state = State::kOnItsWay;
    lock.unlock();
    Result<std::string> bytes = Fetch(block->begin, block->size);
    lock.lock();
    Put(std::move(bytes), block.get());
  }
}

Result<size_t> ReadAhead::Read(char* to, size_t size) {
  MutexLock lock(mu_);
  if (!blocks_.empty() && offset_ == blocks_.front()->begin + blocks_.front()->size) {
    blocks_.pop_front();
    if (!sequential_) {
      sequential_ = true;
      StartThreads();
    }
  }
  const size_t before = blocks_.size();
  Plan();
  if (blocks_.empty()) return size_t{0};
  if (blocks_.size() > before) changed_.notify_all();
  const std::shared_ptr<Block> block = blocks_.front();
  if (block->state == State::kWanted) {
    block->state = State::kOnItsWay;
    lock.unlock();
    Result<std::string> bytes = Fetch(block->begin, block->size);
    lock.lock();
    Put(std::move(bytes), block.get());
  }
  while (block->state != State::kHere) changed_.wait(lock);
  if (!block->status.ok()) return block->status;
  const auto from = static_cast<size_t>(offset_ - block->begin);
  const size_t count = std::min(size, block->size - from);
  std::memcpy(to, block->bytes.data() + from, count);
  offset_ += count;
  return count;
}

void ReadAhead::Jump(uint64_t offset) {
  const MutexLock lock(mu_);
  offset_ = std::min(offset, end_);
  while (!blocks_.empty() && (offset_ < blocks_.front()->begin ||
                              offset_ >= blocks_.front()->begin + blocks_.front()->size))
    blocks_.pop_front();
  if (!blocks_.empty()) return;
  next_size_ = std::min(options_.first_block, options_.block);
  sequential_ = !threads_.empty();
}

}  // namespace shoal::data
