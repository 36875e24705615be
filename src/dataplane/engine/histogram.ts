/** Histograms of a run's metrics: counted in fine buckets for quantiles, published with coarse ones. */

/** What telemetry shows of a histogram. */
export const HISTOGRAM_PARTS = ['count', 'min', 'max', 'mean', 'p50', 'p90', 'p99'] as const
export type HistogramPart = (typeof HISTOGRAM_PARTS)[number]
/** Published buckets of a histogram, each twice as wide as the one before. */
export const HISTOGRAM_BUCKETS = 31
/** Exponent of the first bound: times are nanoseconds, of which fewer than 1,024 tell nobody anything. */
const firstExponent = (unit: string): number => (unit === 'ns' ? 10 : 0)

const QUANTILES = [0.5, 0.9, 0.99] as const
/** Where a histogram's sum is, after its parts; its buckets follow. */
const SUM_AT = HISTOGRAM_PARTS.length
/** How many numbers a histogram has. */
export const HISTOGRAM_NUMBERS = SUM_AT + 1 + HISTOGRAM_BUCKETS

/** The sum of a histogram's values at index `sum`, and how many of them fell into each of `HISTOGRAM_BUCKETS` from index `first` on. */
export interface HistogramBuckets {
  readonly sum: number
  readonly first: number
  /** The n-th bucket, from 0, has the values up to 2^(exponent + n) that are in no bucket before it; larger ones are in none. */
  readonly exponent: number
  /** Of the values. */
  readonly unit: string
  readonly description: string
}

/** Those of a histogram of `unit` whose numbers begin at `index`. */
export function bucketsAt(index: number, unit: string, description: string): HistogramBuckets {
  return { sum: index + SUM_AT, first: index + SUM_AT + 1, exponent: firstExponent(unit), unit, description }
}

const SUB = 32
const OCTAVES = 49

/** Log-linear histogram (after HdrHistogram): 32 buckets an octave, values 0..2^53, so quantiles are within 1/32. */
export class Histogram {
  private readonly buckets = new Float64Array(SUB * OCTAVES)
  /** How many values are in the buckets of each octave: where a quantile is to be found is known without a look at all buckets before it. */
  private readonly octaves = new Float64Array(OCTAVES)
  private readonly values: Float64Array
  private readonly index: number
  private readonly exponent: number
  private dirty = false

  /** Its parts begin at `index`; its sum and its published buckets follow them. */
  constructor(values: Float64Array, index: number, unit: string) {
    this.values = values
    this.index = index
    this.exponent = firstExponent(unit)
  }

  record(value: number): void {
    this.recordMany(value, 1)
  }

  /** Records `times` observations of `value`. */
  recordMany(value: number, times: number): void {
    const { values, index } = this
    const at = Math.max(value, 0)
    if (values[index] === 0 || at < values[index + 1]) values[index + 1] = at
    if (at > values[index + 2]) values[index + 2] = at
    values[index] += times
    values[index + SUM_AT] += at * times
    const bucket = Math.max(Histogram.exponentOf(at) - this.exponent, 0)
    if (bucket < HISTOGRAM_BUCKETS) values[index + SUM_AT + 1 + bucket] += times
    const fine = Histogram.bucketOf(at)
    this.buckets[fine] += times
    this.octaves[(fine / SUB) | 0] += times
    this.dirty = true
  }

  /** Brings mean and quantiles up to date; cheap when nothing was recorded since. */
  summarise(): void {
    if (!this.dirty) return
    this.dirty = false
    const { values, index, buckets, octaves } = this
    const count = values[index]
    values[index + 3] = values[index + SUM_AT] / count
    let before = 0
    let octave = 0
    for (let n = 0; n < QUANTILES.length; n++) {
      const rank = count * QUANTILES[n]
      while (octave < OCTAVES - 1 && before + octaves[octave] < rank) before += octaves[octave++]
      let bucket = octave * SUB
      const last = bucket + SUB - 1
      let seen = before + buckets[bucket]
      while (bucket < last && seen < rank) seen += buckets[++bucket]
      values[index + 4 + n] = Math.min(Math.max(Histogram.middleOf(bucket), values[index + 1]), values[index + 2])
    }
  }

  /** The least whole n with `value` ≤ 2^n; 64 above 2^53. */
  private static exponentOf(value: number): number {
    if (value <= 1) return 0
    if (value > 9007199254740992) return 64
    if (value <= 2147483648) return 32 - Math.clz32(Math.ceil(value) - 1)
    return 64 - Math.clz32(Math.ceil(value / 4294967296) - 1)
  }

  private static bucketOf(value: number): number {
    if (value < SUB) return value | 0
    if (value >= 9007199254740992) return SUB * OCTAVES - 1
    const octave = value < 2147483648 ? 31 - Math.clz32(value | 0) : 63 - Math.clz32((value / 4294967296) | 0)
    if (octave < 31) return (octave - 4) * SUB + (((value | 0) >>> (octave - 5)) - SUB)
    const exact = Math.floor(Math.log2(value))
    return (exact - 4) * SUB + (Math.floor(value / 2 ** (exact - 5)) - SUB)
  }

  private static middleOf(bucket: number): number {
    if (bucket < SUB) return bucket
    const octave = Math.floor(bucket / SUB) + 4
    const width = 2 ** (octave - 5)
    return ((bucket % SUB) + SUB) * width + (width - 1) / 2
  }
}
