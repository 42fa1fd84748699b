// The layout of a stored row: its values, the planes of its optimizer's state, a count of pushes.
//
// Used by table.cc (memory), optimizer_kernels.cc (optimizers) and checkpoint_file.cc (what is
// saved). In memory every plane begins on 64 bytes; in a checkpoint they follow each other without
// padding.
#pragma once

#include <cstddef>

#include "ps/types.h"

namespace shoal::ps {

// Planes of `dim` floats that the optimizer keeps beside the values.
constexpr size_t StatePlanes(const OptimizerSpec& spec) {
  switch (spec.kind) {
    case OptimizerKind::kAdd:
    case OptimizerKind::kSgd:
    case OptimizerKind::kCombine:  // counts in its values
      return 0;
    case OptimizerKind::kAdagrad:   // sum of squares
    case OptimizerKind::kMomentum:  // velocity
      return 1;
    case OptimizerKind::kAdam:  // m, v
    case OptimizerKind::kFtrl:  // z, n
      return 2;
    case OptimizerKind::kFunction:
      return spec.state_planes;
  }
  return 0;
}

// True where pushes are counted by row, as a u32 in the bits of one float.
constexpr bool CountsSteps(const OptimizerSpec& spec) { return spec.kind == OptimizerKind::kAdam; }

struct RowLayout {
  size_t dim = 0;
  size_t planes = 0;  // of state
  size_t stride = 0;  // floats from one plane to the next; the values are the first
  size_t step = 0;    // where the count lies; 0: there is none
  size_t floats = 0;  // all of it, a multiple of 16

  // The count lies in the padding behind the values where there is some: no cache line more.
  static constexpr RowLayout Of(size_t dim, const OptimizerSpec& optimizer) {
    constexpr size_t kLine = 16;
    RowLayout layout;
    layout.dim = dim;
    layout.planes = StatePlanes(optimizer);
    layout.stride = (dim + kLine - 1) / kLine * kLine;
    layout.floats = layout.stride * (1 + layout.planes);
    if (!CountsSteps(optimizer)) return layout;
    layout.step = dim < layout.stride ? dim : layout.floats;
    if (dim == layout.stride) layout.floats += kLine;
    return layout;
  }
  // Floats of a row in a checkpoint: values, planes, count.
  constexpr size_t saved_floats() const { return dim * (1 + planes) + (step != 0 ? 1 : 0); }
};

}  // namespace shoal::ps
