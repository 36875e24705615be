/** 64-bit numbers as they are written in configurations. */

/** High and low half of `value`, decimal digits or a whole number below 2^53; null when it is none from 0 to 2^64 - 1. */
export function uint64Words(value: string | number): [high: number, low: number] | null {
  if (typeof value === 'number' ? !Number.isSafeInteger(value) : !/^\d{1,20}$/.test(value)) return null
  const whole = BigInt(value)
  return whole < 0n || whole >= 1n << 64n ? null : [Number(whole >> 32n), Number(whole & 0xffffffffn)]
}
