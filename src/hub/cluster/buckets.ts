/** The two buckets of a hub in NATS JetStream: found to be those of this hub in this layout, or made. */
import type { JetStreamManager, StreamConfig, StreamInfo } from '@nats-io/jetstream'
import { JetStreamApiCodes, JetStreamApiError, jetstream, jetstreamManager } from '@nats-io/jetstream'
import { jserrors } from '@nats-io/jetstream/internal'
import { type KV, Kvm } from '@nats-io/kv'
import type { NatsConnection } from '@nats-io/transport-node'
import { messageOf } from '../../text/error-message.ts'
import { decodeHub, encodeHub, type HubKey, LAYOUT, type Revision } from './entries.ts'

/** Milliseconds that one request to the engine may take. */
export const REQUEST_MS = 2_000
/** The oldest NATS server that this has been tried with. */
const MIN_VERSION = [2, 9, 0] as const
/** Before it, two writes on the same revision of a bucket with replicas may both be acknowledged, and one be lost (nats-server, issue 4320). */
const MIN_VERSION_WITH_REPLICAS = [2, 9, 21] as const

/** What a NATS server without a cluster answers to a wish for replicas: JSStreamReplicasNotSupportedErr of its server/errors.json. */
const REPLICAS_NEED_A_CLUSTER = 10_074

/** The key under which each bucket says whose it is. */
const HUB_KEY = 'hub'

/** What the engine says of a message that is not there: no such sequence, or that deleting it failed (err_code of its errors.json). */
const GONE: ReadonlySet<number> = new Set([10043, 10057])

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
  /**
   * When each bucket was made, milliseconds since the epoch: when the key was written that says whose it is. What NATS says of its stream is no such thing:
   * a stream that several asked for at once may tell of another time under its next leader, and one of which the NATS servers have lost what they had in
   * memory is the same again, though its revisions begin anew.
   */
  readonly presenceMade: number
  readonly membersMade: number
  /** Takes the value of this revision out of a bucket for good, if it is there still. */
  purge(bucket: 'members' | 'presence', revision: Revision): Promise<void>
}

/** The engine is not what it should be, and trying again would not change that; the message says what to do about it. */
export class EngineUnfit extends Error {
  override readonly name = 'EngineUnfit'
}

/**
 * Opens the buckets, having checked them before anything is written; makes those that do not exist. `known`: what was opened before; its
 * bucket of members is never made anew, since every node would hear that it is on this hub no more. Throws EngineUnfit, or what the library
 * throws when the engine does not answer.
 */
export async function openBuckets(
  connection: NatsConnection,
  options: BucketOptions,
  known: Pick<Buckets, 'membersMade'> | undefined,
): Promise<Buckets> {
  const plans = bucketsOf(options)
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: REQUEST_MS })
    const kvm = new Kvm(jetstream(connection, { timeout: REQUEST_MS }))
    const found: (HubKey | undefined)[] = []
    for (const plan of plans) {
      const info = await infoOf(manager.streams.info(`KV_${plan.bucket}`))
      if (info !== undefined) checkConfig(plan, info.config)
      // One that is just being made has nothing in it: a NATS server of 2.9 that is asked for a value of it then ends (nil pointer in jsMsgGetRequest).
      const isEmpty = info === undefined || info.state.messages === 0
      const value = isEmpty ? null : await (await kvm.open(plan.bucket, plan.settings)).get(HUB_KEY)
      if (known !== undefined && plan === plans[0] && value?.created.getTime() !== known.membersMade) throw lost(plan)
      found.push(value === null ? undefined : checkHub(plan, decodeHub(value.value), options.hubId))
    }
    const hub = found[0] ?? { layout: LAYOUT, hubId: options.hubId, requestBase: 0n }
    const opened: KV[] = []
    for (const [i, plan] of plans.entries()) {
      const bucket = await make(kvm, plan)
      if (found[i] === undefined) await claimBucket(plan, bucket, hub, options.hubId)
      opened.push(bucket)
    }
    const [members, presence] = opened as [KV, KV]
    const [membersMade, presenceMade] = await Promise.all([claimedAt(members), claimedAt(presence)])
    const purge = async (bucket: 'members' | 'presence', revision: Revision) =>
      await purgeFrom(manager, plans[bucket === 'members' ? 0 : 1] as Plan, revision)
    return { members, presence, hub, membersMade, presenceMade, purge }
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

function isFrom(version: string, least: readonly [number, number, number]): boolean {
  const numbers = version.split(/[.-]/).slice(0, 3).map(Number)
  const differing = least.findIndex((number, i) => numbers[i] !== number)
  return differing < 0 || (numbers[differing] as number) > (least[differing] as number)
}

/** The version from which on this NATS server would lose no change, where it is an older one. */
export function saferVersion(connection: NatsConnection, replicas: number): string | undefined {
  if (replicas === 1 || isFrom(connection.info?.version ?? '', MIN_VERSION_WITH_REPLICAS)) return undefined
  return MIN_VERSION_WITH_REPLICAS.join('.')
}

/** Why no hub can be kept by way of this NATS server, whatever the others are. */
export function unfitnessOf(connection: NatsConnection): EngineUnfit | undefined {
  const { info } = connection
  const version = info?.version ?? ''
  if (!isFrom(version, MIN_VERSION)) {
    return new EngineUnfit(
      `the NATS server at ${connection.getServer()} is version ${version}: a hub of several servers needs ${MIN_VERSION.join('.')} or later`,
    )
  }
  if (info?.jetstream === true) return undefined
  return new EngineUnfit(
    `the NATS server at ${connection.getServer()} runs without JetStream: start it with jetstream {} in its configuration`,
  )
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

/** Opens the bucket, made when it is not there. */
async function make(kvm: Kvm, { bucket, settings }: Plan): Promise<KV> {
  try {
    return await kvm.create(bucket, { ...settings })
  } catch (error) {
    if (isWithoutJetStream(error)) throw error
    const { replicas } = settings
    const message = `the bucket ${bucket} cannot be made with ${replicas} replicas (${messageOf(error)}): are ${replicas} NATS servers with JetStream up, in one cluster? See hubServer.cluster.replicas`
    const isAlone = error instanceof JetStreamApiError && error.code === REPLICAS_NEED_A_CLUSTER
    throw isAlone ? new EngineUnfit(message, { cause: error }) : new Error(message, { cause: error })
  }
}

async function purgeFrom(manager: JetStreamManager, { bucket }: Plan, revision: Revision): Promise<void> {
  try {
    await manager.streams.deleteMessage(`KV_${bucket}`, revision, false)
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || !GONE.has(error.code)) throw error
  }
}

/** Writes whose it is into a new bucket; another server may have been faster. */
async function claimBucket(plan: Plan, bucket: KV, hub: HubKey, hubId: Uint8Array): Promise<void> {
  try {
    await bucket.put(HUB_KEY, encodeHub(hub), { previousSeq: 0, timeout: REQUEST_MS })
  } catch (error) {
    // That nobody answers for the keys of a bucket says nothing of JetStream: NATS lists a bucket before it takes anything into it.
    if (isWithoutJetStream(error)) {
      throw new Error(`the bucket ${plan.bucket} takes no changes yet: it is being made, or has no leader`, {
        cause: error,
      })
    }
    const there = await bucket.get(HUB_KEY)
    if (there === null) throw error
    checkHub(plan, decodeHub(there.value), hubId)
  }
}

/** When the key was written that says whose bucket it is, milliseconds since the epoch by the clock of the NATS servers. */
async function claimedAt(bucket: KV): Promise<number> {
  const there = await bucket.get(HUB_KEY)
  if (there === null) throw new Error('the bucket has just been emptied')
  return there.created.getTime()
}

function isWithoutJetStream(error: unknown): boolean {
  if (error instanceof jserrors.JetStreamNotEnabled) return true
  return error instanceof JetStreamApiError && error.code === JetStreamApiCodes.JetStreamNotEnabledForAccount
}
