/** The 4-byte header in front of a packet that a tag or a client id is written in. */
import type { Batch } from '../../engine/batch.ts'
import type { Packets } from '../../engine/packets.ts'

export const WORD_BYTES = 4

/** Puts `word`, 32 bits, in front of every packet of a batch. */
export function writeWord(packets: Packets, { handles, length }: Batch, word: number): void {
  for (let i = 0; i < length; i++) packets.view.setInt32(packets.prepend(handles[i], WORD_BYTES), word)
}
