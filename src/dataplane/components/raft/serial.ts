/** Numbers that count modulo 2^32 (RFC 1982), kept as signed 32-bit integers. */

/** How far `to` is ahead of `from`; below zero: behind. */
export const ahead = (to: number, from: number): number => (to - from) | 0

/** The number after `number`. */
export const following = (number: number): number => (number + 1) | 0
