/** What a component is: a value made with `defineComponent`, its configuration schema, metrics, live fields and factory. */
import type { Static, TObject } from '@sinclair/typebox'
import type { Batch } from './batch.ts'
import type { RunClock } from './clock.ts'
import type { Notification, Receiver } from './flow.ts'
import type { Io } from './io.ts'
import type { Log } from './log.ts'
import type { MetricDeclarations, Metrics } from './metrics.ts'
import type { Outlet } from './outlet.ts'
import type { Packets } from './packets.ts'
import type { Random } from './random.ts'
import type { InputName, OutputName } from './schema.ts'
import type { Timer } from './timers.ts'

type Family = 'sources' | 'endpoints' | 'fec' | 'crypto' | 'emulation' | 'routing' | 'trackers' | 'multipath'

/** The shape of `T` with every output name replaced by its outlet, everything else left out. */
type Outlets<T> = T extends OutputName
  ? Outlet
  : T extends readonly (infer U)[]
    ? Outlets<U>[]
    : T extends object
      ? { [K in keyof T as HasPort<T[K], OutputName> extends true ? K : never]: Outlets<T[K]> }
      : never

/** The shape of `T` with every input name replaced by its receiver, everything else left out. */
type Receivers<T> = T extends InputName
  ? Receiver
  : T extends readonly (infer U)[]
    ? Receivers<U>[]
    : T extends object
      ? { [K in keyof T as HasPort<T[K], InputName> extends true ? K : never]: Receivers<T[K]> }
      : never

type HasPort<T, P> =
  Exclude<T, undefined> extends infer D
    ? D extends P
      ? true
      : D extends readonly (infer U)[]
        ? HasPort<U, P>
        : D extends string | number | boolean
          ? false
          : D extends object
            ? true extends { [K in keyof D]-?: HasPort<D[K], P> }[keyof D]
              ? true
              : false
            : false
    : false

/** Bytes kept free in front of a packet, and behind it. */
export interface Room {
  front: number
  back: number
}

/** Metrics that each entry of a list in the configuration has, by the name of the list. */
export type EntryDeclarations = Readonly<Record<string, MetricDeclarations>>

export interface ComponentContext<
  C,
  M extends MetricDeclarations,
  E extends EntryDeclarations = Record<never, MetricDeclarations>,
> {
  /** The component's name in the configuration. */
  readonly name: string
  readonly packets: Packets
  readonly clock: RunClock
  /** Mirrors the configuration: `outlets.output`, `outlets.outputs[1]`, `outlets.flows[0].output`. */
  readonly outlets: Outlets<C>
  readonly metrics: Metrics<M>
  /** By the name of the list, for each of its entries in order. */
  readonly entryMetrics: { readonly [K in keyof E]: readonly Metrics<E[K]>[] }
  readonly io: Io
  readonly log: Log
  /** A generator for this component; without a seed one is drawn and logged. */
  random(seed?: number): Random
  /** `bytes` random bytes for salts and session ids: from the system, in a simulation from its seed. */
  entropy(bytes: number): Uint8Array
  /**
   * The bytes of a regular file that the configuration names, `most` at most; they are the caller's own. Not for the packet path.
   * Throws Error with the file's name, what is wrong and what to do.
   */
  file(name: string, most: number): Uint8Array
  /** Id under which the addon knows `packets`, for its batched calls. */
  memory(): number
  /** Descriptor owner of this run, for what the addon opens; what a component forgets or cannot close goes with it. */
  owner(): number
  /** What components of one run have in common under `name`: made by the first that asks. */
  shared<T>(name: string, make: () => T): T
  /** Whether packets that leave the component `name` reach this one inside the graph. */
  follows(name: string): boolean
  /** Whether packets that come in may carry a remote address that another component's socket gave them. */
  foreignAddresses(): boolean
  /** Whether packets that leave this component may reach one that makes them grow. */
  grows(): boolean
  /**
   * Whether what leaves this component ends, unaltered, at connections of the run that say when they have taken it: any (`any`), or such as
   * carry streams only.
   */
  endsAtConnections(any: boolean): boolean
  /**
   * Longest packet, bytes, that what it reaches from the output with that name can send with all that is written around it on the way;
   * Infinity where nothing limits it.
   */
  longestFrom(output: string): number
  /** An unarmed timer. */
  timer(fire: () => void): Timer
  /** An empty batch of this component's own. */
  batch(): Batch
  /** Asked every breath; returns true while there is more to do at once, which keeps the loop from sleeping. */
  source(poll: () => boolean): void
  /** Ends the run: COMPLETED without an error, FAILED with one. */
  end(error?: Error): void
}

export type Instance<C> = Receivers<C> & {
  /** End of a breath: send what was gathered. */
  flush?(): void
  /** Every `publish` of metrics, for gauges that need computing. */
  observe?(): void
  /**
   * Whether packets may still come out though none come in: a source that is not done, a socket that can receive. Absent: true of
   * what has outputs and no input, false of all others.
   */
  active?(): boolean
  /**
   * Packet slots taken by a memory of what has passed, such as a code's unfinished block, which nothing but a further packet or
   * notification changes: a run can be complete with them. Absent: none.
   */
  kept?(): number
  /** Throws, and changes nothing, where `reconfigure` would throw of the same; asked before any component is handed its part of a change. */
  verify?(config: C): void
  /** Takes over changed `live` fields. */
  reconfigure?(config: C): void
  /** FLUSH or RESET arrived at an input, `['flows', 0, 'input']`; absent: it is forwarded to the outlets beside it. */
  notify?(notification: Notification, input: readonly (string | number)[]): void
  /** The run ends: release what is held, close what is open. */
  stop?(): void
}

/** A fault in a configuration, or what is doubtful in it; `pointer` is relative to the component's own configuration ('/symbols'). */
export interface Fault {
  pointer: string
  message: string
}

/** What a component is told of its pipeline when it is asked for warnings. */
export interface WarnedGraph {
  comesBack: boolean
  count(key: string): number
  longestFrom(output: string): number
}

export interface ComponentDefinition<
  S extends TObject = TObject,
  M extends MetricDeclarations = MetricDeclarations,
  E extends EntryDeclarations = Record<never, MetricDeclarations>,
> {
  readonly key: string
  readonly family: Family
  /** One sentence for the catalogue. */
  readonly summary: string
  /** More for the reference page: what it does on the wire, what to watch. */
  readonly details?: string
  readonly config: S
  readonly metrics: M
  /** Metrics of each entry of a list, `{ carriers: … }`; those of its first are named `carriers_0_…`. They have no role. */
  readonly entryMetrics?: E
  /**
   * Names of the top-level fields that a running component takes over through `reconfigure`. Of a field with connection points in
   * it the rest is taken over; with other connection points it takes a restart.
   */
  readonly live?: readonly (keyof Static<S> & string)[]
  /** Members of the entries of live lists that take a restart all the same, as `streams[].stream_handle`. */
  readonly fixed?: readonly string[]
  /** True when what comes in never comes out inside the node (sockets): cycles through it are allowed. */
  readonly decoupled?: boolean
  /** Flows whose input leads to another flow's output, where not to their own: the name of the one to that of the other. */
  readonly crosses?: Readonly<Record<string, string>>
  /** Sends over connections, which say when they have taken a packet of a stream: bytes of a stream, or packets that are kept apart. */
  connects?(config: Static<S>): 'stream' | 'packets'
  /** True when every packet leaves with a remote address of this component's choice. */
  readonly addresses?: boolean
  /** True when what comes out is not what came in: other bytes, or another place to go to. */
  readonly alters?: boolean
  /** Bytes written in front of and behind each packet; absent: none. Packets received get slots with that room around them. */
  room?(config: Static<S>): Room
  /** True when packets that are many are moved for that, to where nothing else can grow: in front of it they may lie in trains. */
  readonly moves?: boolean
  /**
   * How far behind the start of a packet that comes in (negative: in front of it) the bytes begin that it computes with: where that can be, a
   * cache line begins there, so that its vectors are whole lines. Absent: no place is better than others.
   */
  readonly computesFrom?: number
  /**
   * True when whole batches are only ever passed on as they were received, from an input or a socket, packets dropped from them through
   * the batch's own methods and no length changed: their bytes need not be summed up again.
   */
  readonly passes?: boolean
  /** True when it counts from when the kernel took a packet in: sockets of the run ask for that time. */
  readonly fromArrival?: boolean
  /** Most bytes of a packet that this component brings in; absent: it only passes on. */
  mtu?(config: Static<S>): number
  /** Most bytes of a packet that this component sends out of the pipeline, longer ones being dropped; absent: none, or as long as they come. */
  sends?(config: Static<S>): number
  /** True when long packets leave in pieces: what comes in may be longer than what those behind it take. */
  readonly cuts?: boolean
  /** Rules over several fields. */
  check?(config: Static<S>): Fault[]
  /**
   * What is allowed, but hardly meant. `comesBack`: what it sends out comes back to an input of its own, unaltered. `count` says how many
   * components of a key the pipeline has, `longestFrom` as in the context.
   */
  warn?(config: Static<S>, graph: WarnedGraph): Fault[]
  create(config: Static<S>, context: ComponentContext<Static<S>, M, E>): Instance<Static<S>>
}

/** Gives a definition its types; that is all. */
export function defineComponent<
  S extends TObject,
  const M extends MetricDeclarations,
  const E extends EntryDeclarations = Record<never, MetricDeclarations>,
>(definition: ComponentDefinition<S, M, E>): ComponentDefinition<S, M, E> {
  return definition
}

/** A definition whose schema and metrics are not known at compile time. */
// biome-ignore lint/suspicious/noExplicitAny: a registry holds definitions of every shape
export type AnyComponent = ComponentDefinition<any, any, any>

/** The components there are, by key; whoever composes a node, a command or a test hands them in. */
export type Registry = ReadonlyMap<string, AnyComponent>

/** By key, what loads a component: a thread has those in its memory that its runs have named. */
export type ComponentLoaders = Readonly<Record<string, () => Promise<AnyComponent>>>
