/** The headers of rely's packets, as docs/wire-formats.md draws them. */
export const SOURCE = 0xb8
export const REPAIR = 0xb9

/** Kind, session, number: what precedes the symbol of a source, which begins with the two bytes of its payload's length. */
export const SOURCE_SYMBOL_AT = 8
export const SOURCE_HEADER_BYTES = 10
/** Kind, session, first source, how many, key: what precedes a repair's symbol. */
export const REPAIR_SYMBOL_AT = 12
/** With the length that the repaired symbols begin with. */
export const REPAIR_HEADER_BYTES = 14
export const LENGTH_BYTES = 2
/** Longest payload that its length can say. */
export const MAX_PAYLOAD = 0xffff
