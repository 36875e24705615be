/** The two buckets of a hub in NATS JetStream: found to be those of this hub in this layout, or made. */
import type { StreamConfig, StreamInfo } from '@nats-io/jetstream'
import { JetStreamApiCodes, JetStreamApiError, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { jserrors } from '@nats-io/jetstream/internal'
import { type KV, Kvm } from '@nats-io/kv'
import type { NatsConnection } from '@nats-io/transport-node'
import { decodeHub, encodeHub, type HubKey, LAYOUT } from './entries.ts'

/** Milliseconds that one request to the engine may take. */
export const REQUEST_MS = 2_000
/** The oldest NATS server that this has been tried with. */
const MIN_VERSION = [2, 9, 0] as const

/** The key under which each bucket says whose it is. */
const HUB_KEY = 'hub'

export interface BucketOptions {
  /** hubServer.cluster.name: letters, digits, `-` and `_`. */
  readonly name: string
  /** What tells this hub from others, 32 bytes. */
  readonly hubId: Uint8Array
  readonly replicas: number
}

export interface Buckets {
  readonly members: KV
  readonly presence: KV
  readonly hub: HubKey
  /** When the bucket of presence was made: its revisions begin anew when it is made anew, as after the loss of all NATS servers. */
  readonly presenceMade: string
  readonly membersMade: string
}

/** The engine is not what it should be, and trying again would not change that; the message says what to do about it. */
export class EngineUnfit extends Error {
  override readonly name = 'EngineUnfit'
}

/**
 * Opens the buckets, having checked server and buckets before anything is written; makes those that do not exist. `known`: what was opened before; its
 * bucket of members is never made anew, since every node would hear that it is on this hub no more. Throws EngineUnfit, or what the library
 * throws when the engine does not answer.
 */
export async function openBuckets(
  connection: NatsConnection,
  options: BucketOptions,
  known: Pick<Buckets, 'membersMade'> | undefined,
): Promise<Buckets> {
  checkServer(connection)
  const plans = bucketsOf(options)
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: REQUEST_MS })
    const kvm = new Kvm(jetstream(connection, { timeout: REQUEST_MS }))
    const found: (HubKey | undefined)[] = []
    for (const plan of plans) {
      const info = await infoOf(manager.streams.info(`KV_${plan.bucket}`))
      if (info !== undefined) checkConfig(plan, info.config)
      if (known !== undefined && plan === plans[0] && info?.created !== known.membersMade) throw lost(plan)
      const value = info === undefined ? null : await (await kvm.open(plan.bucket, plan.settings)).get(HUB_KEY)
      found.push(value === null ? undefined : checkHub(plan, decodeHub(value.value), options.hubId))
    }
    const hub = found[0] ?? { layout: LAYOUT, hubId: options.hubId, requestBase: 0n }
    const opened: KV[] = []
    for (const [i, plan] of plans.entries()) {
      const bucket = await kvm.create(plan.bucket, { ...plan.settings })
      if (found[i] === undefined) await claimBucket(plan, bucket, hub, options.hubId)
      opened.push(bucket)
    }
    const [membersMade, presenceMade] = (await Promise.all(
      plans.map(async ({ bucket }) => (await manager.streams.info(`KV_${bucket}`)).created),
    )) as [string, string]
    return { members: opened[0] as KV, presence: opened[1] as KV, hub, membersMade, presenceMade }
  } catch (error) {
    throw isWithoutJetStream(error)
      ? new EngineUnfit(
          `the NATS server at ${connection.getServer()} answers no JetStream request in this account: switch JetStream on, for the server and for the account`,
          { cause: error },
        )
      : error
  }
}

interface Plan {
  readonly bucket: string
  readonly settings: {
    readonly storage: 'file' | 'memory'
    readonly replicas: number
    readonly history: 1
    readonly allow_direct: false
    readonly timeout: number
  }
}

function bucketsOf({ name, replicas }: BucketOptions): Plan[] {
  const common = { replicas, history: 1, allow_direct: false, timeout: REQUEST_MS } as const
  return [
    { bucket: `penstock_${name}_members`, settings: { storage: 'file', ...common } },
    { bucket: `penstock_${name}_presence`, settings: { storage: 'memory', ...common } },
  ]
}

function checkServer(connection: NatsConnection): void {
  const { info } = connection
  const version = info?.version ?? ''
  const numbers = version.split(/[.-]/).slice(0, 3).map(Number)
  const differing = MIN_VERSION.findIndex((least, i) => numbers[i] !== least)
  if (differing >= 0 && !((numbers[differing] as number) > (MIN_VERSION[differing] as number))) {
    throw new EngineUnfit(
      `the NATS server at ${connection.getServer()} is version ${version}: a hub of several servers needs ${MIN_VERSION.join('.')} or later`,
    )
  }
  if (info?.jetstream !== true) {
    throw new EngineUnfit(
      `the NATS server at ${connection.getServer()} runs without JetStream: start it with jetstream {} in its configuration`,
    )
  }
}

function lost({ bucket }: Plan): EngineUnfit {
  return new EngineUnfit(
    `the bucket ${bucket} is not the one that this server knew: restore it, or start all servers of this hub anew, which forgets its nodes`,
  )
}

async function infoOf(asked: Promise<StreamInfo>): Promise<StreamInfo | undefined> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound) return undefined
    throw error
  }
}

function checkConfig({ bucket, settings }: Plan, config: StreamConfig): void {
  const wrong = (what: string, is: unknown, should: unknown) =>
    new EngineUnfit(
      `the bucket ${bucket} has ${what} ${is}, and this hub needs ${should}: change the bucket, or the configuration of this server`,
    )
  if (config.storage !== settings.storage) throw wrong('storage', config.storage, settings.storage)
  if (config.num_replicas !== settings.replicas) throw wrong('replicas', config.num_replicas, settings.replicas)
  if (config.max_msgs_per_subject !== settings.history) {
    throw wrong('history', config.max_msgs_per_subject, settings.history)
  }
  if (config.allow_direct) throw wrong('direct reads', 'on', 'off')
}

function checkHub({ bucket }: Plan, hub: HubKey, hubId: Uint8Array): HubKey {
  if (hub.layout !== LAYOUT) {
    throw new EngineUnfit(
      `the bucket ${bucket} has layout ${hub.layout}, and this version of penstock knows layout ${LAYOUT}: use the version that wrote it`,
    )
  }
  if (Buffer.compare(hub.hubId, hubId) !== 0) {
    throw new EngineUnfit(
      `the bucket ${bucket} is that of another hub: give this hub another hubServer.cluster.name, or this server the key of that hub`,
    )
  }
  return hub
}

/** Writes whose it is into a new bucket; another server may have been faster. */
async function claimBucket(plan: Plan, bucket: KV, hub: HubKey, hubId: Uint8Array): Promise<void> {
  try {
    await bucket.put(HUB_KEY, encodeHub(hub), { previousSeq: 0, timeout: REQUEST_MS })
  } catch (error) {
    const there = await bucket.get(HUB_KEY)
    if (there === null) throw error
    checkHub(plan, decodeHub(there.value), hubId)
  }
}

function isWithoutJetStream(error: unknown): boolean {
  if (error instanceof jserrors.JetStreamNotEnabled) return true
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.JetStreamNotEnabledForAccount
}
