/** The codes that `fec advise` tries: parameters of each that fit a link, its delay budget and the overhead allowed. */

/** What is sent, over which link, and what may be spent on it. */
export interface Link {
  /** Share of the packets that are lost, above 0. */
  readonly loss: number
  /** Mean number of packets lost in a row; 1: each by itself. */
  readonly burst: number
  /** Mbit/s of payload. */
  readonly rate: number
  /** Payload of each packet, bytes. */
  readonly packet: number
  /** Longest that a packet may take beyond the time of its way, ms. */
  readonly budget: number
  /** Bytes that may be sent beyond those of the payload, as a share of them. */
  readonly overhead: number
  /** Packets are to be handed over in their order. */
  readonly inOrder?: true
}

type Fields = Readonly<Record<string, unknown>>

/** One code with its parameters: what stands in a configuration, but for the connections. */
export interface Candidate {
  readonly code: string
  /** The parameters for people: `26 + 4`. */
  readonly settings: string
  readonly encoder: Readonly<Record<string, Fields>>
  readonly decoder: Readonly<Record<string, Fields>>
  /** Packets that are lost together at least, when any stay lost. */
  readonly together: number
}

/** Time from one packet to the next, ms. */
export const spacing = ({ rate, packet }: Pick<Link, 'rate' | 'packet'>): number => (packet * 8) / (rate * 1000)

/** Longest header that a code puts before a payload, rounded up, bytes (docs/wire-formats.md). */
const HEADER_BYTES = 16
/** Part of the budget that a code may take: the rest is for what real packets are late by themselves. */
const USABLE = 0.9
/** Most packets of a block, repairs included. */
const MAX_BLOCK = 255
const MIN_GRID = 2
const MAX_GRID = 64
const MAX_WINDOW = 4096
const MAX_COPIES = 3

/** What the parameters of all codes follow from. */
interface Room {
  /** ms */
  readonly interval: number
  /** Most repair packets per source packet. */
  readonly ratio: number
  /** Most source packets of a block: those that come within the usable budget. */
  readonly block: number
  /** ms */
  readonly budget: number
  /** Silence after which an unfinished block is closed, ms. */
  readonly silence: number
  readonly inOrder: boolean
}

function roomOf(link: Link): Room {
  const interval = spacing(link)
  return {
    interval,
    ratio: ((1 + link.overhead) * link.packet) / (link.packet + HEADER_BYTES) - 1,
    block: Math.min(MAX_BLOCK - 1, Math.floor((link.budget * USABLE) / interval) + 1),
    budget: link.budget,
    silence: Math.ceil(Math.max(link.budget / 2, 2 * interval)),
    inOrder: link.inOrder === true,
  }
}

/** Sources lost when one more packet of a block is lost than it has repairs. */
const lostOfBlock = (k: number, r: number): number => ((r + 1) * k) / (k + r)

/** Blocks (k, r), the greatest first: as much repair as is allowed over several lengths, then less over the longest. */
function blocks({ ratio, block }: Room): [k: number, r: number][] {
  const fits = (r: number) => r >= 1 && Math.ceil(r / ratio) <= block && Math.ceil(r / ratio) + r <= MAX_BLOCK
  let most = Math.min(MAX_BLOCK - 1, Math.floor(block * ratio))
  while (most > 0 && !fits(most)) most--
  const lengths = [1, 0.75, 0.5, 0.25].map((part) => Math.ceil(most * part)).filter(fits)
  const longest = Math.ceil(most / ratio)
  const less = [2 / 3, 1 / 3].map((part) => Math.ceil(most * part)).filter((r) => r >= 1 && r < most)
  const found = [
    ...lengths.map((r): [number, number] => [Math.max(2, Math.ceil(r / ratio)), r]),
    ...less.map((r): [number, number] => [longest, r]),
  ]
  return found.filter(([k, r], i) => found.findIndex(([k2, r2]) => k === k2 && r === r2) === i)
}

function reedSolomon(room: Room): Candidate[] {
  return blocks(room).map(([k, r]) => ({
    code: 'reed_solomon',
    settings: `${k} + ${r}`,
    encoder: { reed_solomon_encoder: { symbols: k, repair: r, flush_after_ms: room.silence } },
    decoder: { reed_solomon_decoder: {} },
    together: lostOfBlock(k, r),
  }))
}

function rlnc(room: Room): Candidate[] {
  return blocks(room)
    .slice(0, 3)
    .map(([k, r]) => ({
      code: 'rlnc',
      settings: `${k} + ${r}`,
      encoder: { rlnc_encoder: { symbols: k, repair: r, flush_after_ms: room.silence } },
      decoder: { rlnc_decoder: {} },
      together: lostOfBlock(k, r),
    }))
}

/** Half of the repairs in the middle of the block, the rest at its end: what is lost early is back early. */
function kodok(room: Room): Candidate[] {
  return blocks(room)
    .filter(([, r]) => r >= 2)
    .slice(0, 3)
    .map(([k, r]) => {
      const [middle, first] = [Math.ceil(k / 2), Math.floor(r / 2)]
      const repair_configs = [
        { source_packets: middle, repair_packets: first },
        { source_packets: k, repair_packets: r - first },
      ]
      return {
        code: 'kodok',
        settings: `${middle} + ${first}, ${k} + ${r - first}`,
        encoder: { kodok_encoder: { repair_configs, timeout: room.budget } },
        decoder: { kodok_decoder: {} },
        together: lostOfBlock(middle, first),
      }
    })
}

function grids({ ratio, block }: Room): [columns: number, rows: number][] {
  const all: [number, number][] = []
  for (let columns = MIN_GRID; columns <= MAX_GRID; columns++) {
    for (let rows = MIN_GRID; rows <= MAX_GRID; rows++) {
      // Where the block is longer than the budget its rows still help in time.
      const isTimely = columns * rows <= block || (columns <= block && rows === MAX_GRID)
      if (isTimely && 1 / columns + 1 / rows <= ratio) all.push([columns, rows])
    }
  }
  const first = (order: (a: [number, number], b: [number, number]) => number) => [...all].sort(order).slice(0, 1)
  const repair = ([columns, rows]: [number, number]) => 1 / columns + 1 / rows
  const chosen = [
    ...first((a, b) => repair(b) - repair(a)),
    ...first((a, b) => a[0] * a[1] - b[0] * b[1]),
    ...first((a, b) => b[0] - a[0] || repair(b) - repair(a)),
  ]
  return chosen.filter((grid, i) => chosen.indexOf(grid) === i)
}

function parity2d(room: Room): Candidate[] {
  return grids(room).map(([columns, rows]) => ({
    code: 'parity_2d',
    settings: `${columns} × ${rows}`,
    encoder: { parity_2d_encoder: { columns, rows, flush_after_ms: room.silence } },
    decoder: { parity_2d_decoder: {} },
    // The corners of a rectangle are the least that its lines do not solve.
    together: (4 * columns * rows) / (columns * rows + columns + rows),
  }))
}

function rely({ ratio, interval, budget, silence, inOrder }: Room): Candidate[] {
  const rates = [1, 2 / 3, 1 / 3].map((part) => Math.floor(Math.min(4, ratio) * part * 1000) / 1000)
  const windows = [USABLE, USABLE / 2].map((part) => Math.floor(budget * part))
  return rates.flatMap((rate) =>
    windows.flatMap((window) => {
      const packets = Math.min(MAX_WINDOW, Math.floor(window / interval) + 1)
      // A window that is over before the next repair leaves packets without any.
      if (rate <= 0 || window < 1 || packets * rate < 1) return []
      return [
        {
          code: 'rely',
          settings: `rate ${rate}, ${window} ms`,
          encoder: {
            rely_encoder: {
              repair_target_rate: rate,
              repair_time_window: window,
              max_payloads: packets,
              flush_after_ms: silence,
            },
          },
          decoder: { rely_decoder: { timeout: budget, ...(inOrder && { release_in_order: true }) } },
          together: lostOfBlock(packets, Math.floor(packets * rate)),
        },
      ]
    }),
  )
}

/** Each packet several times: a block of one, whose repairs are copies. */
function replication({ ratio, silence }: Room): Candidate[] {
  return Array.from({ length: Math.max(0, Math.min(MAX_COPIES, Math.floor(ratio))) }, (_, i) => ({
    code: 'replication',
    settings: `${i + 2} times`,
    encoder: { reed_solomon_encoder: { symbols: 1, repair: i + 1, flush_after_ms: silence } },
    decoder: { reed_solomon_decoder: {} },
    together: 1,
  }))
}

/** All that is tried on a link; none where not a single repair packet fits. */
export function candidatesFor(link: Link): Candidate[] {
  const room = roomOf(link)
  if (room.ratio <= 0) return []
  // Decoders of the others hand recovered packets over behind those that came meanwhile.
  const codes = room.inOrder ? [rely] : [reedSolomon, rlnc, kodok, parity2d, rely, replication]
  return codes.flatMap((code) => code(room))
}
