// For models that are explored exhaustively: every state that any order of steps leads to, each
// once.
#pragma once

#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace shoal::ps {

// State: all bytes, so that it is compared and hashed as it lies.
template <typename State>
class StateSpace {
  static_assert(std::has_unique_object_representations_v<State>);

 public:
  void Add(const State& state) {
    ++steps_;
    std::string key(reinterpret_cast<const char*>(&state), sizeof state);
    if (seen_.insert(std::move(key)).second) open_.push_back(state);
  }
  // The first thing that goes wrong ends the exploration.
  void Fail(const char* what) {
    if (wrong_.empty()) wrong_ = what;
  }
  // From `first` on; model.Steps(state, this) adds what may follow a state, and model.AtEnd sees
  // the states that nothing follows. What went wrong; empty: nothing does, in any order.
  template <typename Model>
  std::string Explore(const State& first, Model& model) {
    Add(first);
    while (!open_.empty() && wrong_.empty()) {
      const State state = open_.back();
      open_.pop_back();
      const size_t before = steps_;
      model.Steps(state, this);
      if (steps_ == before) model.AtEnd(state, this);
    }
    return wrong_;
  }
  size_t states() const { return seen_.size(); }

 private:
  std::unordered_set<std::string> seen_;
  std::vector<State> open_;
  std::string wrong_;
  size_t steps_ = 0;
};

}  // namespace shoal::ps
