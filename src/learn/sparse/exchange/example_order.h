// The order in which a thread trains its examples, an epoch at a time: that of the next epoch is
// drawn early where an exchange needs to know what will be trained, that of the one before is kept
// where an exchange replays what was trained.
//
// Used by training.h; one object a thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "learn/sparse/dataset.h"

namespace shoal::learn::sparse {

class ExampleOrder {
 public:
  // The order of this key is the present one. `keeps`: the one before it stays at hand. Throws
  // std::bad_alloc.
  void Enter(const OrderKey& key, size_t size, bool keeps) {
    if (keeps) std::swap(before_, now_);
    if (next_epoch_ == key.epoch) {
      std::swap(now_, next_);
    } else {
      DrawExampleOrder(key, size, &now_);
    }
    epoch_ = key.epoch;
  }
  bool IsOf(uint64_t epoch) const { return epoch_ == epoch; }
  // The order that Enter(key, …) will make the present one. Throws std::bad_alloc.
  const std::vector<uint32_t>& DrawNext(const OrderKey& key, size_t size) {
    if (next_epoch_ != key.epoch) DrawExampleOrder(key, size, &next_);
    next_epoch_ = key.epoch;
    return next_;
  }
  const std::vector<uint32_t>& present() const { return now_; }
  // With `trained` examples of the present epoch: how many examples are known that were trained
  // last, and which was the `back`-th of them, from 1.
  uint64_t known(uint64_t trained) const { return trained + before_.size(); }
  uint32_t Back(uint64_t trained, uint64_t back) const {
    return back <= trained ? now_[trained - back] : before_[before_.size() + trained - back];
  }

 private:
  uint64_t epoch_ = UINT64_MAX;  // of now_
  std::vector<uint32_t> now_;
  std::vector<uint32_t> before_;  // empty: not trained in this life
  uint64_t next_epoch_ = UINT64_MAX;
  std::vector<uint32_t> next_;
};

}  // namespace shoal::learn::sparse
