/** The codes that are compared, with their settings: the same overhead for all, or one overhead and blocks and windows from short to long. */
import type { Keyed } from '../support/coded-link.ts'

export const CODES = ['ideal', 'rely', 'reed_solomon', 'rlnc', 'kodok', 'parity_2d', 'sent twice', 'raft'] as const
type Code = (typeof CODES)[number]

/** A code with its settings. */
export interface Candidate {
  code: Code
  /** The settings, for people. */
  settings: string
  /** Repair packets per source packet, as asked for. */
  rate: number
  /** Components; absent where the code is none of the catalogue's, or made otherwise. */
  encoder?: Keyed
  decoder?: Keyed
}

export const OVERHEADS = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1] as const
/** Sources of a block, or of rely's window, where overheads are compared. */
const BLOCK = 100
const RELY_WINDOW_MS = 100
/** Points of a block at which kodok makes repairs. */
const KODOK_POINTS = 5

/** Columns and rows of about this overhead: the smallest grid that has it. */
const GRIDS: readonly (readonly [rate: number, columns: number, rows: number])[] = [
  [0.05, 40, 40],
  [0.1, 20, 20],
  [0.15, 20, 10],
  [0.2, 10, 10],
  [0.3, 10, 5],
  [0.5, 4, 4],
  [1, 2, 2],
]

function rely(rate: number, window?: number): Candidate {
  const covered = window === undefined ? {} : { max_payloads: window }
  return {
    code: 'rely',
    settings: window === undefined ? `window ${RELY_WINDOW_MS} ms` : `window ${window} packets`,
    rate,
    encoder: { rely_encoder: { repair_time_window: RELY_WINDOW_MS, repair_target_rate: rate, ...covered } },
    decoder: { rely_decoder: {} },
  }
}

function block(code: 'reed_solomon' | 'rlnc', rate: number, symbols: number): Candidate {
  const repair = Math.round(symbols * rate)
  return {
    code,
    settings: `${symbols} + ${repair}`,
    rate,
    encoder: { [`${code}_encoder`]: { symbols, repair } },
    decoder: { [`${code}_decoder`]: {} },
  }
}

function kodok(rate: number, symbols: number): Candidate {
  const part = symbols / KODOK_POINTS
  const repairs = Math.round(part * rate)
  const points = Array.from({ length: KODOK_POINTS }, (_, i) => ({
    source_packets: part * (i + 1),
    repair_packets: repairs,
  }))
  return {
    code: 'kodok',
    settings: `${symbols}, ${repairs} each ${part}`,
    rate,
    encoder: { kodok_encoder: { repair_configs: points } },
    decoder: { kodok_decoder: {} },
  }
}

function parity(rate: number): Candidate[] {
  return GRIDS.filter(([of]) => of === rate).map(([, columns, rows]) => ({
    code: 'parity_2d',
    settings: `${columns} × ${rows}`,
    rate,
    encoder: { parity_2d_encoder: { columns, rows } },
    decoder: { parity_2d_decoder: {} },
  }))
}

const ideal = (rate: number): Candidate => ({ code: 'ideal', settings: '', rate })

/** A block of one packet whose only repair is a copy of it. */
const twice: Candidate = { ...block('reed_solomon', 1, 1), code: 'sent twice' }

/** Every code at one overhead. */
export function ofOverhead(rate: number): Candidate[] {
  const blocks = [block('reed_solomon', rate, BLOCK), block('rlnc', rate, BLOCK), kodok(rate, BLOCK)]
  return [ideal(rate), rely(rate), ...blocks, ...parity(rate), ...(rate === 1 ? [twice] : [])]
}

/** Overhead at which delays are compared: enough for the loss, with some to spare. */
export function overheadFor(loss: number): number {
  if (loss <= 0.01) return 0.05
  if (loss <= 0.05) return 0.1
  return loss <= 0.1 ? 0.2 : 0.5
}

const WINDOWS = [20, 50, 100, 200, 500, 1000]
/** A block has 255 packets at most, repairs included. */
const MAX_BLOCK = 255
const BLOCKS = [10, 20, 40, 60, 100, 160, 240]

/** Every code at one overhead, from short windows and blocks to the longest. */
export function ofDelay(rate: number): Candidate[] {
  const whole = (symbols: number): boolean => Math.abs(symbols * rate - Math.round(symbols * rate)) < 1e-9
  const blocks = BLOCKS.filter((symbols) => whole(symbols) && symbols * (1 + rate) <= MAX_BLOCK)
  return [
    ideal(rate),
    ...WINDOWS.map((window) => rely(rate, window)),
    ...blocks.map((symbols) => block('reed_solomon', rate, symbols)),
    ...blocks.map((symbols) => block('rlnc', rate, symbols)),
    ...[20, 50, 100, 200].filter((symbols) => whole(symbols / KODOK_POINTS)).map((symbols) => kodok(rate, symbols)),
    ...parity(rate),
  ]
}

/** raft with one carrier; how many repairs it sends follows from the loss that it measures. */
export const RAFT_TIMEOUT_MS = 100
export const raft: Candidate = { code: 'raft', settings: `timeout ${RAFT_TIMEOUT_MS} ms`, rate: 0 }
