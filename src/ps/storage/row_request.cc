#include "ps/storage/row_request.h"

#include <algorithm>
#include <cstring>

#include "ps/wire/value_codec.h"

namespace shoal::ps {
namespace {

// Decoded rows of one batch: what stays in the first-level cache until it is applied.
constexpr size_t kScratchBytes = 16u << 10;

}  // namespace

Result<RowRequest> RowRequest::Open(const FrameHeader& head, const RowSource& source,
                                    KeyCache* memory, Scratch* scratch) {
  RowRequest request(head, source, scratch);
  if (source.part != nullptr) {
    request.values_ = source.part->coded;
    request.argument_ = source.part->argument;
  } else {
    request.argument_ = source.front.substr(0, ArgumentArea(head) == 0 ? 0 : head.body);
    TRY(request.OpenKeys(source.front.substr(ArgumentArea(head), KeyAreaOf(head)), memory));
    request.values_ = source.values;
  }
  const bool decodes = HasDeltas(head) && head.values != ValueType::kF32;
  const bool encodes = WantsRows(head) && head.answer != ValueType::kF32 && source.part == nullptr;
  if (decodes || encodes) {
    request.step_ = std::clamp<size_t>(kScratchBytes / (head.dim * sizeof(float)), 1, kBatchRows);
  }
  if (decodes) scratch->deltas.resize(request.step_ * head.dim);
  if (encodes) scratch->out.resize(request.step_ * head.dim);
  return request;
}

Status RowRequest::OpenKeys(std::string_view area, KeyCache* memory) {
  if (head_->key_bytes == kKeysAreRemembered) {
    const std::vector<Key>* kept = memory->Find(head_->key_slot, head_->argument);
    if (kept == nullptr || kept->size() != head_->rows) {
      return FailedPrecondition("the digest of a key list that this connection has not carried");
    }
    keys_ = kept->data();
    return Status::Ok();
  }
  std::vector<Key>& keys = scratch_->keys;
  if (head_->key_bytes == kKeysAreDeltas) {
    TRY(DecodeAscending(area, head_->rows, &keys));
    keys_ = keys.data();
  } else {
    raw_keys_ = area.data();
  }
  if (head_->key_slot == 0) return Status::Ok();
  if (keys_ == nullptr) {
    keys.resize(head_->rows);
    if (head_->key_bytes == sizeof(Key)) {
      std::memcpy(keys.data(), raw_keys_, keys.size() * sizeof(Key));
    } else {
      for (size_t i = 0; i < keys.size(); ++i) {
        uint32_t key = 0;
        std::memcpy(&key, raw_keys_ + i * sizeof key, sizeof key);
        keys[i] = key;
      }
    }
    keys_ = keys.data();
  }
  return memory->Keep(head_->key_slot, head_->argument, keys);
}

void RowRequest::FillKeys(size_t first, size_t n, KeyBatch* batch) const {
  batch->n = n;
  if (part_ != nullptr) {
    for (size_t i = 0; i < n; ++i) batch->keys[i] = part_->keys[part_->At(first + i)];
  } else if (keys_ != nullptr) {
    std::memcpy(batch->keys.data(), keys_ + first, n * sizeof(Key));
  } else if (head_->key_bytes == sizeof(Key)) {
    std::memcpy(batch->keys.data(), raw_keys_ + first * sizeof(Key), n * sizeof(Key));
  } else {
    for (size_t i = 0; i < n; ++i) {
      uint32_t key = 0;
      std::memcpy(&key, raw_keys_ + (first + i) * sizeof key, sizeof key);
      batch->keys[i] = key;
    }
  }
}

void RowRequest::Fill(size_t first, size_t n, KeyBatch* batch) {
  FillKeys(first, n, batch);
  const size_t dim = head_->dim;
  if (!HasDeltas(*head_)) {
    std::fill_n(batch->deltas.begin(), n, nullptr);
  } else if (head_->values != ValueType::kF32) {
    std::array<float*, kBatchRows> to;
    for (size_t i = 0; i < n; ++i) batch->deltas[i] = to[i] = scratch_->deltas.data() + i * dim;
    DecodeRows(head_->values, values_ + first * WireRowBytes(head_->values, dim), n, dim,
               to.data());
  } else if (part_ != nullptr) {
    for (size_t i = 0; i < n; ++i) batch->deltas[i] = part_->deltas[part_->At(first + i)];
  } else {
    const auto* values = reinterpret_cast<const float*>(values_) + first * dim;
    for (size_t i = 0; i < n; ++i) batch->deltas[i] = values + i * dim;
  }
  if (!WantsRows(*head_)) {
    std::fill_n(batch->out.begin(), n, nullptr);
  } else if (part_ != nullptr) {
    for (size_t i = 0; i < n; ++i) batch->out[i] = part_->out[part_->At(first + i)];
  } else {
    const bool direct = head_->answer == ValueType::kF32;
    float* const to = direct ? reinterpret_cast<float*>(out_) + first * dim : scratch_->out.data();
    for (size_t i = 0; i < n; ++i) batch->out[i] = to + i * dim;
    batch->in_a_row = true;
  }
}

void RowRequest::PutAnswer(size_t first, const KeyBatch& batch) {
  if (part_ != nullptr || head_->answer == ValueType::kF32 || !WantsRows(*head_)) return;
  EncodeRows(head_->answer, batch.out.data(), batch.n, head_->dim,
             out_ + first * WireRowBytes(head_->answer, head_->dim));
}

}  // namespace shoal::ps
