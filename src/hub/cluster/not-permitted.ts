/** What NATS does not permit this server's account: a refusal, which the library throws as the cause of a request that has failed. */
import { errors } from '@nats-io/transport-node'
import { messageOf } from '../../text/error-message.ts'

/** Parts of a subject that say which permission it takes; those behind them are a key (`$KV.BUCKET.node.ID`), or made up for each attempt. */
const TELLING_PARTS = 3
/** As TELLING_PARTS, of JetStream's own (`$JS.API.CONSUMER.CREATE.STREAM.NAME`). */
const TELLING_API_PARTS = 5

/** The refusal that an error is, or was thrown for. */
export function notPermitted(error: unknown): InstanceType<typeof errors.PermissionViolationError> | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof errors.PermissionViolationError) return at
  return undefined
}

/** What has failed, the same for each attempt that fails for the same reason. */
export function reasonOf(error: unknown): string {
  const refusal = notPermitted(error)
  if (refusal === undefined) return messageOf(error)
  const { operation, subject } = refusal
  // Subscriptions are to inboxes, each with a name of its own.
  if (operation === 'subscription') return operation
  const parts = subject.startsWith('$JS.API.') ? TELLING_API_PARTS : TELLING_PARTS
  return `${operation} ${subject.split('.', parts).join('.')}`
}
