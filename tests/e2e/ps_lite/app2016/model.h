// A line is fitted to points; its two weights are on the servers.
#pragma once

#include <vector>
using namespace std;  // NOLINT: as programs of that time do, before the includes

#include "dmlc/logging.h"
#include "ps/ps.h"

namespace line {

class Model {
 public:
  explicit Model(float learning_rate) : learning_rate_(learning_rate) {
    kv_ = new ps::KVWorker<float>(0);
  }
  ~Model() { delete kv_; }
  void Train(const vector<float>& xs, const vector<float>& ys);
  vector<float> Weights();

 private:
  ps::KVWorker<float>* kv_;
  float learning_rate_;
};

}  // namespace line
