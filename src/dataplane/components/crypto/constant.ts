/** What constant_auth_sign and constant_auth_verify have in common: their configuration, and where the constant stands. */
import { Type } from '@sinclair/typebox'
import { Input, Output, Uint64 } from '../../engine/schema.ts'
import { uint64Words } from '../../engine/uint64.ts'

/** Bytes behind every packet. */
export const CONSTANT_BYTES = 8

export const constantConfig = Type.Object({
  input: Input(),
  output: Output(),
  constant: Uint64(
    'The constant that both ends have: decimal digits in a string, or a number up to 9,007,199,254,740,991.',
    { secret: true },
  ),
})

/** Its halves as signed 32-bit numbers, which is how packets are read. */
export function constantWords(constant: string | number): [high: number, low: number] {
  const [high, low] = uint64Words(constant) as [number, number]
  return [high | 0, low | 0]
}
