/** The part of V8's heap that only a full collection clears: what is moved there was alive through two young ones. */
import { getHeapSpaceStatistics } from 'node:v8'

/** Bytes that are used in it. */
export function oldGeneration(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? Number.NaN
}
