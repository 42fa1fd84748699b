// A list that grows while other threads read it: elements do not move, readers never wait.
//
// For what a client has one of for every lane it has ever been connected to (client_core.h).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace shoal::ps {

template <typename T>
class AppendOnlyList {
 public:
  static constexpr size_t kMost = 1u << 17;

  class Iterator {
   public:
    Iterator(const AppendOnlyList* list, size_t at) : list_(list), at_(at) {}
    const T& operator*() const { return (*list_)[at_]; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    const AppendOnlyList* list_;
    size_t at_;
  };

  // Any thread. A thread that has seen a size may use all elements below it.
  size_t size() const { return size_.load(std::memory_order_acquire); }
  const T& operator[](size_t i) const { return pieces_[i / kPiece][i % kPiece]; }
  T& operator[](size_t i) { return pieces_[i / kPiece][i % kPiece]; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  // One thread at a time: the element after the last, which readers do not see before Publish. The
  // list must hold less than kMost.
  T& Next() {
    const size_t i = size_.load(std::memory_order_relaxed);
    if (pieces_[i / kPiece] == nullptr) pieces_[i / kPiece] = std::make_unique<T[]>(kPiece);
    return pieces_[i / kPiece][i % kPiece];
  }
  void Publish() { size_.fetch_add(1, std::memory_order_release); }

 private:
  static constexpr size_t kPiece = 256;
  std::array<std::unique_ptr<T[]>, kMost / kPiece> pieces_;
  std::atomic<size_t> size_{0};
};

}  // namespace shoal::ps
