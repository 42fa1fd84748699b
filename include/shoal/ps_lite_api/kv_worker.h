// KVWorker of shoal/ps_lite_compat.h: slices requests over the servers and gathers their answers.
#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include <shoal/ps_lite_api/kv_pairs.h>

namespace ps {

// A worker. All methods are thread-safe; callbacks run in this object's own thread. Push and Pull
// take copies of vectors; the Z variants use the arrays, which must not change until done.
template <typename Val>
class KVWorker : public SimpleApp {
 public:
  using Callback = std::function<void()>;
  using SlicedKVs = std::vector<std::pair<bool, KVPairs<Val>>>;
  using Slicer = std::function<void(const KVPairs<Val>& send, const std::vector<Range>& ranges,
                                    SlicedKVs* sliced)>;

  explicit KVWorker(int app_id) : KVWorker(app_id, 0) {}
  KVWorker(int app_id, int customer_id) {
    slicer_ = [](const KVPairs<Val>& send, const std::vector<Range>& ranges, SlicedKVs* sliced) {
      DefaultSlicer(send, ranges, sliced);
    };
    Attach(app_id, customer_id, [this](const Message& message) { Received(message); });
  }
  ~KVWorker() override { Detach(); }

  // Return the number of the request, for Wait.
  int Push(const std::vector<Key>& keys, const std::vector<Val>& vals,
           const std::vector<int>& lens = {}, int cmd = 0, const Callback& cb = nullptr,
           int priority = 0) {
    return ZPush(SArray<Key>(keys), SArray<Val>(vals), SArray<int>(lens), cmd, cb, priority);
  }
  int Pull(const std::vector<Key>& keys, std::vector<Val>* vals, std::vector<int>* lens = nullptr,
           int cmd = 0, const Callback& cb = nullptr, int priority = 0) {
    const SArray<Key> own(keys);
    const int ts = AddPullCallback(own, vals, lens, cb);
    Send(ts, {cmd, false, true}, {own, {}, {}, priority});
    return ts;
  }
  int PushPull(const std::vector<Key>& keys, const std::vector<Val>& vals, std::vector<Val>* outs,
               std::vector<int>* lens = nullptr, int cmd = 0, const Callback& cb = nullptr,
               int priority = 0) {
    CHECK_NOTNULL(outs);
    if (outs->empty()) outs->resize(vals.size());
    CHECK_EQ(outs->size(), vals.size());
    const SArray<Key> own(keys);
    const int ts = AddPullCallback(own, outs, lens, cb);
    const SArray<int> lengths = lens != nullptr ? SArray<int>(*lens) : SArray<int>();
    Send(ts, {cmd, true, true}, {own, SArray<Val>(vals), lengths, priority});
    return ts;
  }
  int ZPush(const SArray<Key>& keys, const SArray<Val>& vals, const SArray<int>& lens = {},
            int cmd = 0, const Callback& cb = nullptr, int priority = 0) {
    const int ts = obj_->NewRequest(kServerGroup);
    AddCallback(ts, cb);
    Send(ts, {cmd, true, false}, {keys, vals, lens, priority});
    return ts;
  }
  int ZPull(const SArray<Key>& keys, SArray<Val>* vals, SArray<int>* lens = nullptr, int cmd = 0,
            const Callback& cb = nullptr, int priority = 0) {
    const int ts = AddPullCallback(keys, vals, lens, cb);
    Send(ts, {cmd, false, true}, {keys, {}, {}, priority});
    return ts;
  }
  int ZPushPull(const SArray<Key>& keys, const SArray<Val>& vals, SArray<Val>* outs,
                SArray<int>* lens = nullptr, int cmd = 0, const Callback& cb = nullptr,
                int priority = 0) {
    const int ts = AddPullCallback(keys, outs, lens, cb);
    Send(ts, {cmd, true, true}, {keys, vals, lens != nullptr ? *lens : SArray<int>(), priority});
    return ts;
  }
  void Wait(int timestamp) override { obj_->WaitRequest(timestamp); }
  void set_slicer(const Slicer& slicer) {
    CHECK(slicer);
    slicer_ = slicer;
  }

 private:
  struct What {
    int cmd;
    bool push;
    bool pull;
  };
  static void DefaultSlicer(const KVPairs<Val>& send, const std::vector<Range>& ranges,
                            SlicedKVs* sliced) {
    sliced->assign(ranges.size(), {});
    const size_t n = send.keys.size();
    if (n == 0) return;
    const size_t each = send.lens.empty() ? send.vals.size() / n : 0;
    if (send.lens.empty()) CHECK_EQ(each * n, send.vals.size()) << "values do not divide by keys";
    if (!send.lens.empty()) CHECK_EQ(send.lens.size(), n);
    size_t at = 0, value = 0;
    for (size_t i = 0; i < ranges.size() && at < n; ++i) {
      const Key* const end =
          i + 1 == ranges.size()
              ? send.keys.end()
              : std::lower_bound(send.keys.begin() + at, send.keys.end(), ranges[i].end());
      const auto next = static_cast<size_t>(end - send.keys.begin());
      if (next == at) continue;
      size_t values = each * (next - at);
      for (size_t k = at; k < next && !send.lens.empty(); ++k)
        values += static_cast<size_t>(send.lens[k]);
      auto& [used, part] = (*sliced)[i];
      used = true;
      part.keys = send.keys.segment(at, next);
      if (!send.lens.empty()) part.lens = send.lens.segment(at, next);
      if (!send.vals.empty()) part.vals = send.vals.segment(value, value + values);
      at = next;
      value += values;
    }
  }
  void AddCallback(int ts, const Callback& cb) {
    if (!cb) return;
    const std::lock_guard<std::mutex> lock(mu_);
    callbacks_[ts] = cb;
  }
  void RunCallback(int ts) {
    Callback callback;
    {
      const std::lock_guard<std::mutex> lock(mu_);
      const auto found = callbacks_.find(ts);
      if (found == callbacks_.end()) return;
      callback = std::move(found->second);
      callbacks_.erase(found);
    }
    callback();
  }
  void Send(int ts, const What& what, const KVPairs<Val>& pairs) {
    SlicedKVs sliced;
    slicer_(pairs, Postoffice::Get()->GetServerKeyRanges(), &sliced);
    int skipped = 0;
    for (const auto& slice : sliced) skipped += !slice.first;
    // Before anything is sent: the last answer must find them counted.
    if (skipped == static_cast<int>(sliced.size())) RunCallback(ts);
    obj_->AddResponse(ts, skipped);
    for (size_t i = 0; i < sliced.size(); ++i) {
      if (!sliced[i].first) continue;
      Message message;
      message.app = obj_->app_id();
      message.customer = obj_->customer_id();
      message.request = true;
      message.push = what.push;
      message.pull = what.pull;
      message.head = what.cmd;
      message.timestamp = ts;
      message.recver = Postoffice::ServerRankToID(static_cast<int>(i));
      lite_kv::AddParts(sliced[i].second, &message);
      ::shoal::ps::lite::Postoffice::Get().Send(message);
    }
  }
  void Received(const Message& message) {
    if (message.simple) return Process(message);
    if (message.pull) {
      const std::lock_guard<std::mutex> lock(mu_);
      received_[message.timestamp].push_back(lite_kv::PairsOf<Val>(message));
    }
    // This answer is counted after we return.
    if (obj_->NumResponse(message.timestamp) == Postoffice::Get()->num_servers() - 1)
      RunCallback(message.timestamp);
  }
  static void CheckLens(size_t lens, size_t keys) {
    CHECK_EQ(lens, keys) << "lens: got room for " << lens << " lengths and " << keys
                         << " keys, expected as many, or an empty one to be filled";
  }
  // vals, lens: a std::vector or an SArray, filled when all answers are in.
  template <typename Values, typename Lengths>
  int AddPullCallback(const SArray<Key>& keys, Values* vals, Lengths* lens, const Callback& cb) {
    CHECK_NOTNULL(vals);
    if (lens != nullptr && !lens->empty()) CheckLens(lens->size(), keys.size());
    const int ts = obj_->NewRequest(kServerGroup);
    AddCallback(ts, [this, ts, keys, vals, lens, cb] {
      std::vector<KVPairs<Val>> parts;
      {
        const std::lock_guard<std::mutex> lock(mu_);
        parts = std::move(received_[ts]);
        received_.erase(ts);
      }
      parts.erase(std::remove_if(parts.begin(), parts.end(),
                                 [](const auto& part) { return part.keys.empty(); }),
                  parts.end());
      std::sort(parts.begin(), parts.end(),
                [](const auto& a, const auto& b) { return a.keys.front() < b.keys.front(); });
      Gather(keys, parts, vals, lens);
      if (cb) cb();
    });
    return ts;
  }
  template <typename Values, typename Lengths>
  static void Gather(const SArray<Key>& keys, const std::vector<KVPairs<Val>>& parts, Values* vals,
                     Lengths* lens) {
    size_t all_keys = 0, all_vals = 0;
    for (const KVPairs<Val>& part : parts) {
      if (lens != nullptr) CHECK_EQ(part.lens.size(), part.keys.size());
      all_keys += part.keys.size();
      all_vals += part.vals.size();
    }
    CHECK_EQ(all_keys, keys.size()) << "a server answered with other keys than it was asked for";
    if (vals->empty()) vals->resize(all_vals);
    CHECK_EQ(vals->size(), all_vals) << "vals: got room for " << vals->size() << " values, and "
                                     << all_vals << " were pulled; expected as many, or none";
    if (lens != nullptr && lens->empty()) lens->resize(keys.size());
    if (lens != nullptr) CheckLens(lens->size(), keys.size());
    size_t value = 0, length = 0;
    for (const KVPairs<Val>& part : parts) {
      std::copy(part.vals.begin(), part.vals.end(), vals->data() + value);
      if (lens != nullptr) std::copy(part.lens.begin(), part.lens.end(), lens->data() + length);
      value += part.vals.size();
      length += part.keys.size();
    }
  }

  Slicer slicer_;
  std::mutex mu_;
  std::unordered_map<int, std::vector<KVPairs<Val>>> received_;  // guarded by mu_
  std::unordered_map<int, Callback> callbacks_;                  // guarded by mu_
};

}  // namespace ps
