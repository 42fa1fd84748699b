// A growable array for the long columns of an example set. Unlike std::vector it leaves new space
// uninitialised, and realloc moves large blocks by remapping pages instead of copying. Move-only;
// not thread-safe.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace shoal::data {

template <typename T>
class GrowableArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowableArray() = default;
  GrowableArray(GrowableArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  GrowableArray& operator=(GrowableArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~GrowableArray() { std::free(data_); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  std::span<const T> span() const { return {data_, size_}; }
  void clear() { size_ = 0; }

  // Ensures space for `more` elements after the last; throws std::bad_alloc.
  void Reserve(size_t more) {
    if (capacity_ - size_ >= more) return;
    const size_t capacity = size_ + more + size_ / 2;
    void* const grown = std::realloc(data_, capacity * sizeof(T));
    if (grown == nullptr) throw std::bad_alloc();
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
  }
  void Push(T value) {
    Reserve(1);
    data_[size_++] = value;
  }
  // Sets the size after elements were written through data() into reserved space.
  void SetSize(size_t size) { size_ = size; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace shoal::data
