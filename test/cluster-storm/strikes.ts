/** Does to processes and to the paths between them what a plan says, each thing at its moment. */
import type { FaultyProxy } from '../storm/proxy.ts'
import type { Strike } from './weather.ts'

/** What connects two parties: the one that dials, and the one that is dialled. */
export interface Path {
  readonly from: string
  readonly to: string
  readonly proxy: FaultyProxy
}

/** A process that can be killed, stopped and started anew. */
export interface Party {
  kill(): Promise<void>
  /** Nothing where it runs, as after two kills that overlap. */
  start(): Promise<void> | void
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
}

export interface StrikesOptions {
  readonly weather: readonly Strike[]
  readonly paths: readonly Path[]
  readonly party: (name: string) => Party
  /** Zero of the plan's moments, as performance.now() gives it. */
  readonly begun: number
}

/** Resolves once everything is well again. */
export async function strikeAll(options: StrikesOptions): Promise<void> {
  await Promise.all(options.weather.map((strike) => doStrike(strike, options)))
}

async function doStrike(strike: Strike, { paths, party, begun }: StrikesOptions): Promise<void> {
  const reach = async (moment: number) => {
    const left = begun + moment - performance.now()
    if (left > 0) await new Promise((resolve) => setTimeout(resolve, left))
  }
  await reach(strike.from)
  if (strike.kind === 'fault' || strike.kind === 'partition') {
    const proxies = proxiesOf(strike, paths)
    for (const proxy of proxies) proxy.break(strike.kind === 'fault' ? strike.fault : 'drop')
    await reach(strike.to)
    for (const proxy of proxies) proxy.heal()
    return
  }
  const process = party(strike.party)
  if (strike.kind === 'kill') await process.kill()
  else process.signal('SIGSTOP')
  await reach(strike.to)
  if (strike.kind === 'kill') await process.start()
  else process.signal('SIGCONT')
}

function proxiesOf(strike: Strike & { kind: 'fault' | 'partition' }, paths: readonly Path[]): FaultyProxy[] {
  if (strike.kind === 'fault') {
    const [one, other] = strike.between
    return paths.filter(({ from, to }) => from === one && to === other).map(({ proxy }) => proxy)
  }
  const { side, others } = strike
  const isBetween = (one: string, other: string) => side.includes(one) && others.includes(other)
  return paths.filter(({ from, to }) => isBetween(from, to) || isBetween(to, from)).map(({ proxy }) => proxy)
}
