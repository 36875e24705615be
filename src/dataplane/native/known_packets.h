/** What a call has found out about packets, for the call that goes on with them. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "block_recovery.h"

namespace penstock {

/** Packets of a list in the memory of an id that were looked up. */
class KnownPackets {
 public:
  /** Where those of the first `count` of `list` are to be written. */
  Packet* begin(int32_t memory, const int32_t* list, size_t count) {
    memory_ = memory;
    list_ = list;
    count_ = count;
    if (packets_.size() < count) packets_.resize(count);
    return packets_.data();
  }
  /** Those of `list` from `from` up to `end`; nullptr where they are not known. */
  const Packet* find(int32_t memory, const int32_t* list, size_t from, size_t end) const {
    return memory == memory_ && list == list_ && end <= count_ ? packets_.data() + from : nullptr;
  }
  void clear() { count_ = 0; }

 private:
  int32_t memory_ = 0;
  const int32_t* list_ = nullptr;
  size_t count_ = 0;
  std::vector<Packet> packets_;
};

/** The sources of a block, and what of them its repairs depend on. */
struct FramedBlock {
  /** The longest symbol, bytes of the shortest, and the last source. */
  Packet longest;
  int32_t shortest, last;
};
constexpr FramedBlock kNoSources = {{nullptr, -1, 0}, 0x7fffffff, 0};

/** The blocks that one call has put whole into a list, `stride` apart. All symbols that it says lie in its memory. */
class FramedBlocks {
 public:
  /** Takes the blocks from place `at` of `list` on, which has no more than `size`; of the first `index` sources came before. */
  void begin(int32_t memory, const int32_t* list, size_t stride, size_t wanted, size_t at, size_t index, size_t size) {
    const bool isBlocks = stride >= wanted && at % stride == 0;
    memory_ = memory;
    list_ = isBlocks ? list : nullptr;
    stride_ = stride;
    wanted_ = wanted;
    // One that had begun before is not whole here.
    first_ = end_ = isBlocks ? at / stride + (index > 0 ? 1 : 0) : 0;
    if (symbols_.size() < size) {
      symbols_.resize(size);
      lengths_.resize(size);
    }
    if (isBlocks && blocks_.size() <= size / stride) blocks_.resize(size / stride + 1);
  }
  const uint8_t** symbols() { return symbols_.data(); }
  int32_t* lengths() { return lengths_.data(); }
  /** Block `place / stride` is whole. */
  void add(size_t place, const FramedBlock& block) {
    const size_t at = place / stride_;
    if (!list_ || at != end_) return;
    blocks_[at] = block;
    end_++;
  }
  void clear() { end_ = 0; }

  /** Block `n` of blocks of `wanted` sources that stand `stride` apart in `list`; nullptr where it is not one of these. */
  const FramedBlock* find(int32_t memory, const int32_t* list, size_t stride, size_t wanted, size_t n) const {
    const bool isKnown = memory == memory_ && list == list_ && stride == stride_ && wanted == wanted_ && n >= first_ && n < end_;
    return isKnown ? &blocks_[n] : nullptr;
  }
  const uint8_t* const* symbolsOf(size_t n) const { return symbols_.data() + n * stride_; }
  const int32_t* lengthsOf(size_t n) const { return lengths_.data() + n * stride_; }

 private:
  int32_t memory_ = 0;
  const int32_t* list_ = nullptr;
  size_t stride_ = 1, wanted_ = 0, first_ = 0, end_ = 0;
  /** As they stand in the list. */
  std::vector<const uint8_t*> symbols_;
  std::vector<int32_t> lengths_;
  std::vector<FramedBlock> blocks_;
};

}  // namespace penstock
