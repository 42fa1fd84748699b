#include <model.h>

namespace line {

void Model::Train(const vector<float>& xs, const vector<float>& ys) {
  CHECK_EQ(xs.size(), ys.size());
  vector<ps::Key> keys = {0, 1};
  for (size_t i = 0; i < xs.size(); i++) {
    vector<float> weights;
    kv_->Wait(kv_->Pull(keys, &weights));
    CHECK_EQ(weights.size(), 2);
    float error = weights[0] * xs[i] + weights[1] - ys[i];
    vector<float> step = {-learning_rate_ * error * xs[i], -learning_rate_ * error};
    kv_->Wait(kv_->Push(keys, step));
  }
}

vector<float> Model::Weights() {
  vector<float> weights;
  vector<ps::Key> keys = {0, 1};
  kv_->Wait(kv_->Pull(keys, &weights));
  return weights;
}

}  // namespace line
