/** A request to join that is over before its own server sees it: its node does not wait for ever. */
import { expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import { recordOf } from '../../../test/harness/registries.ts'
import { NO_ENTRY } from './changes.ts'
import { ClusterRequests, type ClusterRequestsOptions } from './requests.ts'

/** A node that asks at a server whose watch tells nothing of what it writes, as where the key was written again before it came to it. */
function asking(withdrawn = new AbortController().signal) {
  const state = { isInTouch: true, isWritten: false }
  const requests = new ClusterRequests({
    members: {
      change: async () => {
        state.isWritten = true
      },
    } as unknown as ClusterRequestsOptions['members'],
    picture: {
      versioned: () => ({ entry: NO_ENTRY, revision: 2, at: 0 }),
      asking: () => [],
    } as unknown as ClusterRequestsOptions['picture'],
    places: { isOwn: () => false, isElsewhere: () => false, life: () => 'own' },
    clock: new SimulatedClock(),
    isInTouch: () => state.isInTouch,
    base: () => 0n,
    current: async () => {},
    hubTime: () => 0,
    onLater: () => {},
  })
  const wait = () =>
    requests.wait({
      joiner: { nodeId: 'n', key: new Uint8Array(32), record: recordOf('n'), remoteAddress: '10.0.0.1' },
      ...{ network: '10.0.0.1', timeout: 1_000, withdrawn },
      requireRoom: () => {},
      raised: () => expect.fail('raised'),
      decided: () => expect.fail('decided'),
    })
  return { requests, state, wait }
}
const over = { code: 'UNAVAILABLE', message: expect.stringContaining('was over before this server saw it') }

test('where everything is known, at once', async () => {
  await expect(asking().wait()).rejects.toMatchObject(over)
})

test('where the connection to NATS has broken meanwhile, once everything has been read anew', async () => {
  const { requests, state, wait } = asking()
  state.isInTouch = false
  const ended = wait().catch((error: unknown) => error)
  let hasEnded = false
  void ended.then(() => {
    hasEnded = true
  })
  requests.refreshAll()
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  expect([state.isWritten, hasEnded]).toEqual([true, false])
  state.isInTouch = true
  requests.refreshAll()
  expect(await ended).toMatchObject(over)
})

test('whose node goes away is told nothing', async () => {
  const gone = new AbortController()
  const { state, wait } = asking(gone.signal)
  state.isInTouch = false
  const ended = wait()
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  gone.abort()
  await ended
})
