// ps-lite's shared array: like std::vector, but copies and slices share the memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <ostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <shoal/ps_lite_api/logging.h>

namespace ps {

// [begin, end)
class Range {
 public:
  Range() = default;
  Range(uint64_t begin, uint64_t end) : begin_(begin), end_(end) {}
  uint64_t begin() const { return begin_; }
  uint64_t end() const { return end_; }
  uint64_t size() const { return end_ - begin_; }

 private:
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

// Elements must be trivially copyable. Not thread-safe; what it shares is freed with its last copy.
template <typename V>
class SArray {
  static_assert(std::is_trivially_copyable_v<V>, "elements travel as their bytes");

 public:
  SArray() = default;
  explicit SArray(size_t size, V value = V()) { resize(size, value); }
  // The memory of another array, element by element reinterpreted: its bytes must divide evenly.
  template <typename W>
  explicit SArray(const SArray<W>& other) {
    *this = other;
  }
  template <typename W>
  void operator=(const SArray<W>& other) {
    CHECK_EQ(other.size() * sizeof(W) % sizeof(V), 0u) << "cannot be divided";
    size_ = other.size() * sizeof(W) / sizeof(V);
    capacity_ = size_;
    ptr_ = std::shared_ptr<V>(other.ptr(), reinterpret_cast<V*>(other.data()));
  }
  // A view of memory that the caller keeps, or hands over (`delete[]` at the end).
  SArray(V* data, size_t size, bool deletable = false) {
    if (deletable) {
      reset(data, size, [](V* at) { delete[] at; });
    } else {
      reset(data, size, [](V*) {});
    }
  }
  explicit SArray(const std::vector<V>& values) { CopyFrom(values.data(), values.size()); }
  explicit SArray(const std::shared_ptr<std::vector<V>>& values) {
    ptr_ = std::shared_ptr<V>(values, values->data());
    size_ = capacity_ = values->size();
  }
  template <typename W>
  SArray(const std::initializer_list<W>& values) {
    CopyFrom(values.begin(), values.end());
  }
  template <typename W>
  void operator=(const std::initializer_list<W>& values) {
    CopyFrom(values.begin(), values.end());
  }

  void CopyFrom(const V* data, size_t size) {
    Allocate(size);
    if (size > 0) std::memcpy(ptr_.get(), data, size * sizeof(V));
  }
  void CopyFrom(const SArray<V>& other) {
    if (this != &other) CopyFrom(other.data(), other.size());
  }
  template <typename Iterator>
  void CopyFrom(const Iterator& first, const Iterator& last) {
    Allocate(static_cast<size_t>(std::distance(first, last)));
    std::copy(first, last, ptr_.get());
  }
  template <typename Deleter>
  void reset(V* data, size_t size, Deleter deleter) {
    size_ = capacity_ = size;
    ptr_.reset(data, deleter);
  }

  // What is beyond the present size becomes `value`; beyond the capacity the memory is a new one.
  void resize(size_t size, V value = V()) {
    const size_t before = size_;
    reserve(size);
    size_ = size;
    if (size > before) std::fill(data() + before, data() + size, value);
  }
  void reserve(size_t size) {
    if (capacity_ >= size) return;
    const SArray old = *this;
    Allocate(size);
    if (old.size() > 0) std::memcpy(ptr_.get(), old.data(), old.size() * sizeof(V));
    size_ = old.size();
  }
  void clear() {
    reset(nullptr, 0, [](V*) {});
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  V* begin() { return data(); }
  const V* begin() const { return data(); }
  V* end() { return data() + size_; }
  const V* end() const { return data() + size_; }
  V* data() const { return ptr_.get(); }
  std::shared_ptr<V>& ptr() { return ptr_; }
  const std::shared_ptr<V>& ptr() const { return ptr_; }
  V back() const { return CHECK(!empty()), data()[size_ - 1]; }
  V front() const { return CHECK(!empty()), data()[0]; }
  V& operator[](size_t i) { return data()[i]; }
  const V& operator[](size_t i) const { return data()[i]; }

  void push_back(const V& value) {
    if (size_ == capacity_) reserve(size_ * 2 + 5);
    data()[size_++] = value;
  }
  void pop_back() { size_ -= size_ > 0; }
  void append(const SArray<V>& other) {
    const size_t before = size_;
    if (other.empty()) return;
    resize(before + other.size());
    std::memcpy(data() + before, other.data(), other.size() * sizeof(V));
  }
  // [begin, end), sharing the memory.
  SArray<V> segment(size_t begin, size_t end) const {
    CHECK_GE(end, begin);
    CHECK_LE(end, size());
    SArray<V> part;
    part.ptr_ = std::shared_ptr<V>(ptr_, data() + begin);
    part.size_ = part.capacity_ = end - begin;
    return part;
  }

 private:
  void Allocate(size_t size) {
    reset(new V[size + 1], size, [](V* at) { delete[] at; });
  }

  size_t size_ = 0;
  size_t capacity_ = 0;
  std::shared_ptr<V> ptr_;
};

// The places of an ascending array whose values are in [lower, upper).
template <typename V>
Range FindRange(const SArray<V>& array, V lower, V upper) {
  if (upper <= lower) return {0, 0};
  const V* const first = std::lower_bound(array.begin(), array.end(), lower);
  const V* const last = std::lower_bound(array.begin(), array.end(), upper);
  return {static_cast<uint64_t>(first - array.begin()),
          static_cast<uint64_t>(last - array.begin())};
}

template <typename V>
std::string DebugStr(const V* data, int n, int m = 5) {
  std::ostringstream text;
  text << "[" << n << "]: ";
  for (int i = 0; i < n; ++i) {
    if (n >= 2 * m && i == m) text << "... ";
    if (n < 2 * m || i < m || i >= n - m) text << data[i] << " ";
  }
  return text.str();
}

template <typename V>
std::ostream& operator<<(std::ostream& out, const SArray<V>& array) {
  return out << DebugStr(array.data(), static_cast<int>(array.size()));
}

}  // namespace ps
