/** fragmentizer: cuts packets that are too long in pieces. */
import { type Static, Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { created, drop } from '../../engine/metrics.ts'
import { Input, Optional, Output, Uint32 } from '../../engine/schema.ts'
import { FRAGMENT_BYTES, MAX_FRAGMENTS, writeFragment } from './fragment-header.ts'

const DEFAULT_FRAGMENT = 1200
const MIN_FRAGMENT = 64

const config = Type.Object({
  input: Input(),
  output: Output(),
  fragment_size: Optional(
    Uint32(
      `Longest packet that leaves, header included; at least ${MIN_FRAGMENT}, and ${DEFAULT_FRAGMENT} when unset or 0.`,
      { unit: 'bytes' },
    ),
  ),
})

/** Bytes of a packet in each of its fragments but the last. */
const pieceOf = ({ fragment_size }: Static<typeof config>) => (fragment_size || DEFAULT_FRAGMENT) - FRAGMENT_BYTES

export const fragmentizer = defineComponent({
  key: 'fragmentizer',
  family: 'routing',
  summary: 'Cuts packets into fragments of limited size, for defragmentizer to join.',
  details:
    'Every packet gets a header of 8 bytes (see wire formats), those that are left whole too. A packet that is cut is lost when one of its ' +
    `fragments is. More than ${MAX_FRAGMENTS} fragments a packet cannot have.`,
  config,
  metrics: {
    added_fragments: created('Fragments made, beyond the first of each packet.'),
    oversize_packets: drop(`Packets dropped because they would make more than ${MAX_FRAGMENTS} fragments.`),
    no_slot_packets: drop('Packets dropped because there were not enough free packet slots for their fragments.'),
  },
  live: ['fragment_size'],
  alters: true,
  room: () => ({ front: FRAGMENT_BYTES, back: 0 }),
  cuts: true,
  check({ fragment_size = 0 }) {
    if (fragment_size === 0 || fragment_size >= MIN_FRAGMENT) return []
    const message = `${fragment_size} is below the minimum of ${MIN_FRAGMENT} bytes; 0 or nothing is ${DEFAULT_FRAGMENT}`
    return [{ pointer: '/fragment_size', message }]
  },
  create(config, { packets, outlets, metrics, entropy }) {
    const [high, low] = entropy(2)
    const sender = (high << 8) | low
    const { data, view } = packets
    const { output } = outlets
    let piece = pieceOf(config)
    let serial = 0

    /** The fragments of one packet. */
    const fragments = new Int32Array(MAX_FRAGMENTS)

    /** Cuts a packet, which has its header and becomes the first of its `count` fragments. */
    const cut = (packet: number, whole: number, count: number): void => {
      const from = packets.offset[packet] + FRAGMENT_BYTES
      fragments[0] = packet
      for (let index = 1; index < count; index++) {
        const fragment = packets.allocate()
        const bytes = Math.min(piece, whole - index * piece)
        const start = from + index * piece
        data.copyWithin(packets.append(fragment, bytes), start, start + bytes)
        writeFragment(view, packets.prepend(fragment, FRAGMENT_BYTES), sender, serial, index, count)
        packets.annotateAs(fragment, packet)
        fragments[index] = fragment
      }
      packets.trimBack(packet, whole - piece)
      metrics.added_fragments.add(count - 1)
    }

    return {
      input({ handles, length }) {
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          const whole = packets.length[packet]
          const count = Math.max(1, Math.ceil(whole / piece))
          if (count > MAX_FRAGMENTS || packets.available < count - 1) {
            packets.release(packet)
            const reason = count > MAX_FRAGMENTS ? metrics.oversize_packets : metrics.no_slot_packets
            reason.add(1)
            continue
          }
          writeFragment(view, packets.prepend(packet, FRAGMENT_BYTES), sender, serial, 0, count)
          if (count === 1) output.push(packet)
          else {
            cut(packet, whole, count)
            // Only now: with the first fragment goes the slot that the others are copied from.
            for (let index = 0; index < count; index++) output.push(fragments[index])
          }
          serial = (serial + 1) >>> 0
        }
        output.flush()
      },
      reconfigure(next) {
        piece = pieceOf(next)
      },
    }
  },
})
