/** Changes against an engine whose answers are told by hand. */
import { JetStreamApiCodes, JetStreamApiError } from '@nats-io/jetstream'
import type { KV } from '@nats-io/kv'
import { errors } from '@nats-io/transport-node'
import { expect, test } from 'vitest'
import { recordOf } from '../../../test/harness/registries.ts'
import { systemClock } from '../../contract/clock.ts'
import { ServiceError } from '../../contract/errors.ts'
import { Changes, NO_ENTRY } from './changes.ts'
import type { Engine } from './engine.ts'

const refused = (code: number) =>
  new JetStreamApiError({ code: 400, err_code: code, description: 'wrong last sequence' })
/** Another write of the key is under way; another one was made. */
const underWay = refused(JetStreamApiCodes.StreamWrongLastSequenceUnknown)
const overtaken = refused(JetStreamApiCodes.StreamWrongLastSequence)
const silent = new errors.TimeoutError()
const refusing = (operation: 'publish' | 'subscription', subject: string) =>
  new errors.RequestError('', { cause: new errors.PermissionViolationError('', operation, subject) })
const notPermitted = refusing('publish', '$KV.penstock_tests_members.node.a')
/** The write is made, and its answer does not come. */
const unheard = refusing('subscription', '_INBOX.a.*')

/**
 * A change whose writes fail so, one after the other, while the key stays as it is in `revisions`; then this server may not write any more, or
 * nobody wants the change.
 */
async function failing(failures: readonly Error[], revisions: readonly number[], isWantedOn = true) {
  let writes = 0
  const members = {
    put: async () => {
      throw failures[writes++] as Error
    },
    get: async () => {
      const revision = revisions[Math.min(writes, revisions.length) - 1] as number
      return { revision, operation: 'DEL', value: new Uint8Array(0), created: new Date(0) }
    },
  } as unknown as KV
  const engine = { session: { members } } as unknown as Engine
  const mayWrite = () => {
    if (isWantedOn && writes === failures.length) throw new ServiceError('UNAVAILABLE', 'cut off')
  }
  const changes = new Changes({ engine, clock: systemClock, mayWrite })
  const member = {
    key: new Uint8Array(32),
    record: recordOf('a'),
    joined: 0,
    admission: 0,
    joinedAt: 1,
    lastSeen: new Date(0),
  }
  const outcome = await changes
    .change('node.a', { entry: NO_ENTRY, revision: 7, at: 0 }, () =>
      isWantedOn || writes < failures.length ? { member } : undefined,
    )
    .then(
      ({ revision }) => revision,
      (error: ServiceError) => error.code,
    )
  return outcome
}

test.each<[string, Error[], number[], string]>([
  ['refused, as another was faster', [overtaken], [8], 'UNAVAILABLE'],
  ['refused by another that is under way', [underWay], [7], 'UNAVAILABLE'],
  ['not answered', [silent], [7], 'UNKNOWN'],
  ['not permitted', [notPermitted], [7], 'UNAVAILABLE'],
  ['not answered, then not permitted', [silent, notPermitted], [7], 'UNKNOWN'],
  ['not permitted to hear the answer', [unheard], [7], 'UNKNOWN'],
  ['not answered, then refused by what may be itself', [silent, underWay], [7], 'UNKNOWN'],
  ['the same again and again', [silent, underWay, underWay, underWay], [7], 'UNKNOWN'],
  [
    'not answered, then overtaken by another, after which it cannot be made',
    [silent, overtaken],
    [7, 8],
    'UNAVAILABLE',
  ],
])('%s', async (_, failures, revisions, code) => {
  expect(await failing(failures, revisions)).toBe(code)
})

test('not wanted any more: not made, unless what was tried before may have been', async () => {
  expect(await failing([overtaken], [8], false)).toBeUndefined()
  expect(await failing([silent, overtaken], [7, 8], false)).toBeUndefined()
  expect(await failing([silent], [7], false)).toBe('UNKNOWN')
  expect(await failing([silent, underWay], [7], false)).toBe('UNKNOWN')
})
