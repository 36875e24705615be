/** Decoding matrices of the systematic Cauchy code, whose mathematics is in src/dataplane/codes/cauchy.ts. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <vector>

namespace penstock {

/** Most symbols of a block, sources and repairs together. */
constexpr int64_t kMaxSymbols = 255;

/** What of a block of k sources is at hand: its sources but for the missing ones, and as many repairs as those are. */
struct Erasures {
  size_t k = 0;
  size_t count = 0;
  /** Indices of the missing sources, then of the repairs, both ascending. */
  uint8_t missing[kMaxSymbols];
  uint8_t repairs[kMaxSymbols];
};

/** Those of the newest patterns of erasures, 256 of them. */
class DecodingMatrices {
 public:
  struct Matrix {
    /** Of which pattern. */
    std::vector<uint8_t> key;
    /** `count` rows of k coefficients: each source at hand in its own column, in those of the missing ones the repairs. */
    std::vector<uint8_t> rows;
    /** The same as Product has them, where they are few enough to be kept. */
    std::vector<uint64_t> coefficients;
  };

  /** That of a pattern; valid until the next call. */
  const Matrix& get(const Erasures& erasures);

 private:
  std::vector<Matrix> matrices_;
  /** Of each hash value, how many patterns it has had. */
  std::vector<uint8_t> had_;
};

}  // namespace penstock
