#include "learn/ffm/row_fields.h"

#include <algorithm>
#include <cstring>

namespace shoal::learn::ffm {

RowFields::RowFields(const Rule& rule, Scratch* scratch)
    : rule_(rule), stored_(rule.stored), k_(rule.per_field()) {
  Bind(scratch);
}

RowFields::RowFields(const Rule& rule, const Row& row, Scratch* scratch)
    : rule_(rule), stored_(rule.stored), k_(rule.per_field()) {
  const size_t places = 2 + 3 * size_t{rule.fields} + stored_ / fm::kLanes;
  if (scratch->places.size() != places) {
    scratch->places.assign(places, 0);
  } else {
    Bind(scratch);
    for (uint32_t place = 0; place < count(); ++place) places_[fields_[place]] = 0;
  }
  Bind(scratch);
  Number(row);
  FindGroups();
  const size_t floats = size_t{stored_} * (1 + 2 * size_t{count()});
  if (scratch->factors.size() < floats) scratch->factors.resize(floats + floats / 2);
  Bind(scratch);
  for (const uint32_t group : groups()) {
    std::fill_n(floats_ + group, fm::kLanes, 0.0f);
    for (uint32_t place = 0; place < 2 * count(); ++place)
      std::fill_n(sums(place) + group, fm::kLanes, 0.0f);
  }
  for (uint32_t place = 0; place < count(); ++place)
    std::fill_n(floats_ + size_t{fields_[place]} * k_, k_, rule.l2);
}

void RowFields::Bind(Scratch* scratch) {
  header_ = scratch->places.data();
  places_ = header_ + 2;
  fields_ = places_ + rule_.fields;
  features_ = fields_ + rule_.fields;
  groups_ = features_ + rule_.fields;
  floats_ = scratch->factors.data();
}

void RowFields::Number(const Row& row) {
  header_[0] = 0;
  for (uint32_t i = 0; i < row.count; ++i) {
    uint32_t& place = places_[row.fields[i]];
    if (place == 0) {
      fields_[header_[0]] = row.fields[i];
      features_[header_[0]] = 0;
      place = ++header_[0];
    }
    ++features_[place - 1];
  }
}

void RowFields::FindGroups() {
  header_[1] = 0;
  uint32_t next = 0;  // the first group not yet handled
  for (uint32_t field = 0; field < rule_.fields; ++field) {
    if (places_[field] == 0) continue;
    const uint32_t end = ((field + 1) * k_ + fm::kLanes - 1) / fm::kLanes;
    for (next = std::max(next, field * k_ / fm::kLanes); next < end; ++next)
      groups_[header_[1]++] = next * fm::kLanes;
  }
}

void RowFields::Transpose() {
  for (uint32_t f = 0; f < count(); ++f) {
    const float* const from = sums(f);
    const size_t own = size_t{fields_[f]} * k_;
    for (uint32_t g = 0; g < count(); ++g) {
      if (f == g && IsAlone(f)) continue;
      std::memcpy(others(g) + own, from + size_t{fields_[g]} * k_, k_ * sizeof(float));
    }
  }
}

void RowFields::TakeOut(uint32_t place, uint32_t feature, const float* at, float x) {
  const uint32_t own = fields_[place] * k_;
  if (IsAlone(place)) {
    std::fill_n(floats_ + own, k_, 0.0f);
    return;
  }
  for (uint32_t slot = own; slot < own + k_; ++slot)
    others(place)[slot] =
        sums(place)[slot] - (at[slot] + fm::InitialFactor(rule_, feature, slot)) * x;
}

void RowFields::PutBack(uint32_t place) {
  if (IsAlone(place)) std::fill_n(floats_ + size_t{fields_[place]} * k_, k_, rule_.l2);
}

}  // namespace shoal::learn::ffm
