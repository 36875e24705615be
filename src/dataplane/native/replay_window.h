/** Which of the last packet counters have been seen (RFC 4303, section 3.4.3), as a ring of bits that is never shifted (RFC 6479). */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace penstock {

class ReplayWindow {
 public:
  /** Takes note of a counter below 2^64 - 1; false when it was seen before or is older than the window. */
  bool accept(uint64_t counter) {
    if (counter >= next_) {
      if (counter - next_ >= kSpan) {
        memset(seen_, 0, sizeof seen_);
      } else {
        for (uint64_t skipped = next_; skipped < counter; skipped++) word(skipped) &= ~bit(skipped);
      }
      word(counter) |= bit(counter);
      next_ = counter + 1;
      return true;
    }
    if (next_ - counter > kSpan || (word(counter) & bit(counter))) return false;
    word(counter) |= bit(counter);
    return true;
  }

 private:
  /** Counters that the window spans, the highest seen and those below it: REPLAY_WINDOW of native.ts. */
  static constexpr uint64_t kSpan = 1024;

  uint64_t& word(uint64_t counter) { return seen_[counter % kSpan / 64]; }
  static uint64_t bit(uint64_t counter) { return 1ull << (counter % 64); }

  /** One above the highest counter seen. */
  uint64_t next_ = 0;
  uint64_t seen_[kSpan / 64] = {};
};

}  // namespace penstock
