// The interpreter's lock, let go of while C++ works.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <cxxabi.h>

namespace shoal::python {

// Without the GIL while it lives.
//
// A daemon thread that wants the GIL back while the interpreter ends gets none: Python ends it by
// unwinding its stack, which C++ answers with std::terminate in a destructor, and the program that
// had ended well with SIGABRT. Such a thread stays here until the process has gone.
class NoGil {
 public:
  NoGil() : state_(PyEval_SaveThread()) {}
  ~NoGil() {
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      for (;;) ::pause();
    }
  }
  NoGil(const NoGil&) = delete;
  NoGil& operator=(const NoGil&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace shoal::python
