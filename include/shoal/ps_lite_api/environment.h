// ps-lite's Environment: variables that a program gives itself, before those of the process.
#pragma once

#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <string>

#include <shoal/ps_lite_api/postoffice.h>

namespace ps {

class Environment {
 public:
  static Environment* Get() {
    static Environment one;
    return &one;
  }
  // Before Start: what DMLC_… variables say here counts instead of the process's own.
  template <typename Map>
  static Environment* Init(const Map& variables) {
    Environment* const one = Get();
    const std::lock_guard<std::mutex> lock(one->mu_);
    for (const auto& variable : variables) one->own_[variable.first] = variable.second;
    ::shoal::ps::lite::Postoffice::Get().SetVariables(one->own_);
    return one;
  }
  // Null if there is none. Valid until Init is called again.
  const char* find(const char* name) {
    const std::lock_guard<std::mutex> lock(mu_);
    const auto found = own_.find(name);
    return found == own_.end() ? std::getenv(name) : found->second.c_str();
  }

 private:
  Environment() = default;
  std::mutex mu_;
  std::map<std::string, std::string> own_;  // guarded by mu_
};

template <typename Value>
Value GetEnv(const char* name, Value otherwise) {
  const char* const text = Environment::Get()->find(name);
  if (text == nullptr) return otherwise;
  std::istringstream in{std::string(text)};
  in >> otherwise;
  return otherwise;
}

}  // namespace ps
