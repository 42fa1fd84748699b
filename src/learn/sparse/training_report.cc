#include "learn/sparse/training_report.h"

#include <algorithm>

namespace shoal::learn::sparse {

void TrainingReport::AddEpoch(const EpochQuality& quality) {
  json::object event{{"epoch", quality.epoch}, {"train_loss", quality.train_loss}};
  if (quality.held_out.examples > 0) event["held_out"] = ToJson(quality.held_out);
  if (quality.validation.examples > 0) event["validation"] = ToJson(quality.validation);
  setup_.reporter->Event(event);
  const MutexLock lock(mu_);
  latest_ = quality;
}

void TrainingReport::SendProgress(uint64_t trained, bool ended, const ExchangeCost& cost) {
  const double seconds = std::chrono::duration<double>(clock_->Now() - begun_).count();
  const double rate = seconds > 0 ? static_cast<double>(trained) / seconds : 0;
  json::object progress{{"step", ended ? examples_ : std::min(trained, examples_)},
                        {"total", examples_},
                        {"rate", rate},
                        {"unit", "examples"},
                        {"phase", "train"}};
  {
    const MutexLock lock(mu_);
    if (latest_.epoch > 0) {
      const bool held_out = latest_.held_out.examples > 0;
      progress["loss"] = held_out ? latest_.held_out.loss : latest_.train_loss;
      for (const Metric& metric : MetricsOf(latest_.held_out)) {
        if (metric.key == "auc" || metric.key == "r2" || metric.key == "accuracy")
          progress[metric.key] = metric.value;
      }
    }
  }
  if (setup_.workers > 1) {
    progress["exchange"] = cost.exchange + cost.waited;
    progress["bytes_per_step"] = cost.bytes_per_example;
  }
  if (rate > 0)
    progress["eta_s"] = static_cast<double>(examples_ - std::min(examples_, trained)) / rate;
  setup_.reporter->Progress(progress);
}

}  // namespace shoal::learn::sparse
