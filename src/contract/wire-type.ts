/** How the values of a field lie on the wire: the wire types of protobuf. */
import type { FieldSchema } from './schema.ts'

const VARINT = 0
const FIXED64 = 1
/** Length-delimited: texts, bytes, messages, packed lists. */
export const LENGTH = 2
const FIXED32 = 5

/** Of one value; a list of numbers may lie packed in a LENGTH. */
export function wireType({ type }: FieldSchema): number {
  if (type.kind === 'message') return LENGTH
  if (type.kind === 'enum') return VARINT
  switch (type.scalar) {
    case 'double':
      return FIXED64
    case 'float':
      return FIXED32
    case 'string':
    case 'bytes':
      return LENGTH
    default:
      return VARINT
  }
}
