// A mutex, a lock and a condition variable whose use clang checks: each field that a mutex protects
// says so by GUARDED_BY, each function that expects a mutex to be held by REQUIRES, and script/lint
// fails where one is used without it. Other compilers see the plain ones of the standard library.
//
// Members have the names that std::mutex, std::unique_lock and std::condition_variable give them.
// Source: clang's documentation, "Thread Safety Analysis".
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#ifdef __clang__
#define SHOAL_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define SHOAL_THREAD_SAFETY(attribute)
#endif

// After a field: its mutex, or that of what it points to.
#define GUARDED_BY(mutex) SHOAL_THREAD_SAFETY(guarded_by(mutex))
#define PT_GUARDED_BY(mutex) SHOAL_THREAD_SAFETY(pt_guarded_by(mutex))
// After a function's parameters: the mutexes that its caller holds, or must not hold.
#define REQUIRES(...) SHOAL_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) SHOAL_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) SHOAL_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) SHOAL_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define RELEASE(...) SHOAL_THREAD_SAFETY(release_capability(__VA_ARGS__))
// After a function that locks in a way that cannot be checked; a comment says why it is right.
#define NO_THREAD_SAFETY_ANALYSIS SHOAL_THREAD_SAFETY(no_thread_safety_analysis)

namespace shoal {

// std::mutex. Not movable.
class SHOAL_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  // Tells clang that the calling thread holds it, for functions that are called under it in a way
  // that clang cannot follow, such as callbacks. Checks nothing at run time.
  void AssertHeld() const SHOAL_THREAD_SAFETY(assert_capability(this)) {}

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex until the end of the scope, as std::unique_lock does.
class SHOAL_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  // Of a mutex that the calling thread holds already; releases it at the end.
  MutexLock(Mutex& mutex, std::adopt_lock_t adopt) REQUIRES(mutex) : lock_(mutex.mutex_, adopt) {}
  ~MutexLock() RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // In the middle of the scope: releases it, and takes it again.
  void unlock() RELEASE() { lock_.unlock(); }
  void lock() ACQUIRE() { lock_.lock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

// std::condition_variable. A predicate reads fields of the mutex, which clang does not follow into
// a lambda: write `[this]() REQUIRES(mu_) { return … }`.
class CondVar {
 public:
  void notify_one() { variable_.notify_one(); }
  void notify_all() { variable_.notify_all(); }

  void wait(MutexLock& lock) { variable_.wait(lock.lock_); }
  template <typename Predicate>
  void wait(MutexLock& lock, Predicate predicate) {
    variable_.wait(lock.lock_, std::move(predicate));
  }
  template <typename Duration>
  std::cv_status wait_for(MutexLock& lock, const Duration& duration) {
    return variable_.wait_for(lock.lock_, duration);
  }
  template <typename Duration, typename Predicate>
  bool wait_for(MutexLock& lock, const Duration& duration, Predicate predicate) {
    return variable_.wait_for(lock.lock_, duration, std::move(predicate));
  }
  template <typename Time>
  std::cv_status wait_until(MutexLock& lock, const Time& time) {
    return variable_.wait_until(lock.lock_, time);
  }
  template <typename Time, typename Predicate>
  bool wait_until(MutexLock& lock, const Time& time, Predicate predicate) {
    return variable_.wait_until(lock.lock_, time, std::move(predicate));
  }

 private:
  std::condition_variable variable_;
};

}  // namespace shoal
