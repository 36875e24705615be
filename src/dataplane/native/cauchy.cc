/** Decoding matrices of the systematic Cauchy code, by pattern of erasures. */
#include "cauchy.h"

#include <algorithm>

#include "gf256.h"

namespace penstock {

/** Patterns kept, and of those how many of one hash value. */
static constexpr size_t kEntries = 256, kWays = 4;
/** Coefficients up to which a matrix is kept as bit matrices too, 8 bytes each. */
static constexpr size_t kMostCoefficients = 1024;

static size_t repairPoint(size_t j) { return 255 - j; }
static uint8_t times(uint8_t a, size_t b) { return gfTables.product[a][b]; }
static uint8_t by(uint8_t a, size_t b) { return gfTables.product[a][gfTables.inverse[b]]; }

/** In closed form, by residues: D[m][z] = a(z) b(m) / (m + z), as `decodingMatrix` of cauchy.ts has it. */
static void make(const Erasures& erasures, std::vector<uint8_t>& rows) {
  const size_t k = erasures.k, count = erasures.count;
  rows.resize(k * count);
  uint8_t b[kMaxSymbols];
  for (size_t m = 0; m < count; m++) {
    const size_t y = erasures.missing[m];
    b[m] = 1;
    for (size_t n = 0; n < count; n++) {
      b[m] = times(b[m], y ^ repairPoint(erasures.repairs[n]));
      if (n != m) b[m] = by(b[m], y ^ erasures.missing[n]);
    }
  }
  size_t column = 0;
  const auto add = [&](size_t z) {
    uint8_t a = 1;
    for (size_t n = 0; n < count; n++) {
      a = times(a, z ^ erasures.missing[n]);
      const size_t other = z ^ repairPoint(erasures.repairs[n]);
      if (other != 0) a = by(a, other);
    }
    for (size_t m = 0; m < count; m++) rows[m * k + column] = by(times(a, b[m]), z ^ erasures.missing[m]);
    column++;
  };
  for (size_t i = 0, m = 0; i < k; i++) {
    const bool isMissing = m < count && erasures.missing[m] == i;
    add(isMissing ? repairPoint(erasures.repairs[m++]) : i);
  }
}

static bool isKeyOf(const std::vector<uint8_t>& key, const Erasures& erasures) {
  const size_t count = erasures.count;
  return key.size() == 2 * count + 1 && key[0] == erasures.k && std::equal(erasures.missing, erasures.missing + count, key.data() + 1) &&
         std::equal(erasures.repairs, erasures.repairs + count, key.data() + 1 + count);
}

const DecodingMatrices::Matrix& DecodingMatrices::get(const Erasures& erasures) {
  const size_t k = erasures.k, count = erasures.count;
  if (matrices_.empty()) {
    matrices_.resize(kEntries);
    had_.resize(kEntries / kWays);
  }
  auto hash = static_cast<uint32_t>(k << 8 | count);
  for (size_t n = 0; n < count; n++) {
    hash = (hash ^ static_cast<uint32_t>(erasures.missing[n] << 8 | erasures.repairs[n])) * 0x9e3779b1u;
    hash ^= hash >> 15;
  }
  const size_t value = hash % had_.size();
  Matrix* const ways = matrices_.data() + value * kWays;
  for (size_t way = 0; way < kWays; way++) {
    if (isKeyOf(ways[way].key, erasures)) return ways[way];
  }
  Matrix& made = ways[had_[value]++ % kWays];
  made.key.assign(1, static_cast<uint8_t>(k));
  made.key.insert(made.key.end(), erasures.missing, erasures.missing + count);
  made.key.insert(made.key.end(), erasures.repairs, erasures.repairs + count);
  make(erasures, made.rows);
  made.coefficients.clear();
  if (made.rows.size() > kMostCoefficients) return made;
  for (size_t i = 0; i < k; i++) {
    for (size_t m = 0; m < count; m++) made.coefficients.push_back(gfTables.affine[made.rows[m * k + i]]);
  }
  return made;
}

}  // namespace penstock
