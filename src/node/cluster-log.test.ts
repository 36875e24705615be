/** What the log says of a server and the state of its hub: every fact a line with its cause, the same cause once a minute. */
import { JetStreamApiError, jserrors } from '@nats-io/jetstream/internal'
import { errors } from '@nats-io/transport-node'
import { expect, test } from 'vitest'
import { ServiceError } from '../contract/errors.ts'
import { EngineUnfit } from '../hub/cluster/buckets.ts'
import { NotConnected, unavailable } from '../hub/cluster/changes.ts'
import { ClusterLog, FAILURE_LINE_MS } from './cluster-log.ts'
import type { FactLog } from './facts.ts'

function logging() {
  const lines: string[] = []
  let now = 0
  const line = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message.split(/[:;]/)[0]} ${JSON.stringify(fields)}`)
  const log: FactLog = { info: line('info'), warn: line('warn'), error: line('error') }
  const facts = new ClusterLog(log, { now: () => now })
  const pass = (milliseconds: number): void => {
    now += milliseconds
  }
  return { facts, taken: () => lines.splice(0), pass }
}

test('every fact has a line', () => {
  const { facts, taken } = logging()
  facts.tell({ kind: 'connected', server: 'n1:4222' })
  facts.tell({ kind: 'outdated', server: 'n1:4222', version: '2.9.10', safer: '2.9.21' })
  facts.tell({ kind: 'unusable', error: new EngineUnfit('login') })
  facts.tell({ kind: 'lease held', life: 'one' })
  facts.tell({ kind: 'lost', server: 'n1:4222', error: new Error('reset') })
  facts.tell({ kind: 'lost', server: 'n1:4222', error: undefined })
  facts.tell({ kind: 'lease lost' })
  facts.tell({ kind: 'removed' })
  facts.tell({ kind: 'identity in use', life: 'two' })
  expect(taken()).toEqual([
    'info connected to the state of the hub {"nats":"n1:4222"}',
    'warn this NATS server may lose a change when two are made at once in buckets with replicas {"nats":"n1:4222","version":"2.9.10"}',
    'warn a NATS server in the list cannot be used {"error":"login"}',
    'info this server holds its lease {"life":"one"}',
    'warn the connection to the state of the hub is lost {"nats":"n1:4222","error":"reset"}',
    'warn the connection to the state of the hub is lost {"nats":"n1:4222"}',
    'warn this server has lost its lease {}',
    'warn this server was removed from the hub while the others could not see it, and is a member of it again {}',
    'warn another server of the hub runs with this node\'s identity {"life":"two"}',
  ])
})

test('attempts that fail: one line a minute for a cause, another cause and a new outage at once', () => {
  const { facts, taken, pass } = logging()
  const failed = (cause: string) => facts.tell({ kind: 'failed', error: new Error(cause) })
  const line = (cause: string) => `warn the state of the hub cannot be reached {"error":"${cause}"}`
  failed('refused')
  pass(FAILURE_LINE_MS - 1)
  failed('refused')
  expect(taken()).toEqual([line('refused')])
  failed('no route')
  failed('no route')
  pass(FAILURE_LINE_MS)
  failed('no route')
  expect(taken()).toEqual([line('no route'), line('no route')])
  facts.tell({ kind: 'connected', server: 'n2:4222' })
  taken()
  failed('no route')
  expect(taken()).toEqual([line('no route')])
})

test('attempts that are not permitted: one line a minute for a permission, whatever the inbox or consumer of each is called', () => {
  const { facts, taken } = logging()
  const refused = (operation: 'publish' | 'subscription', subject: string) => {
    const cause = new errors.PermissionViolationError(subject, operation, subject)
    facts.tell({ kind: 'failed', error: new errors.RequestError(subject, { cause }) })
  }
  const line = (subject: string) => `warn the state of the hub cannot be reached {"error":"${subject}"}`
  refused('subscription', '_INBOX.one.*')
  refused('subscription', '_INBOX.two.*')
  refused('publish', '$JS.API.STREAM.INFO.KV')
  refused('publish', '$JS.API.STREAM.CREATE.KV')
  refused('publish', '$JS.API.CONSUMER.CREATE.KV.one')
  refused('publish', '$JS.API.CONSUMER.CREATE.KV.two')
  refused('publish', '$KV.penstock_tests_members.hub')
  const told = [
    '_INBOX.one.*',
    '$JS.API.STREAM.INFO.KV',
    '$JS.API.STREAM.CREATE.KV',
    '$JS.API.CONSUMER.CREATE.KV.one',
    '$KV.penstock_tests_members.hub',
  ]
  expect(taken()).toEqual(told.map(line))
})

test('what NATS did not do is a warning with its cause, a missing permission or a fault of this server an error', () => {
  const { facts, taken } = logging()
  facts.error('the state could not be read; it is tried again', new errors.TimeoutError())
  facts.error('a node could not be noted', new errors.RequestError('no responders'))
  const full = { code: 503, err_code: 10047, description: 'insufficient storage' }
  facts.error('a node could not be noted', new JetStreamApiError(full))
  expect(taken()).toEqual([
    'warn the state could not be read {"error":"timeout"}',
    'warn a node could not be noted {"error":"no responders"}',
    'warn a node could not be noted {"error":"insufficient storage"}',
  ])
  // As those that write say it: of a stream without a leader now, of one that is full, and without a connection or a lease.
  const unanswered = new errors.RequestError('nobody answers')
  const disabled = new jserrors.JetStreamNotEnabled('jetstream is not enabled', { cause: unanswered })
  const lost = new ServiceError('UNAVAILABLE', 'this server has no lease')
  const failures = [
    disabled,
    unavailable(disabled),
    unavailable(new JetStreamApiError(full)),
    unavailable(new NotConnected()),
    lost,
  ]
  for (const failure of failures) facts.error('a node could not be noted', failure)
  expect(taken()).toEqual([
    'warn a node could not be noted {"error":"nobody answers"}',
    'warn a node could not be noted {"error":"nobody answers"}',
    'warn a node could not be noted {"error":"insufficient storage"}',
    'warn a node could not be noted {"error":"no connection to a NATS server"}',
    'warn a node could not be noted {"error":"this server has no lease"}',
  ])
  const refused = new errors.PermissionViolationError('refused', 'publish', 'a.subject', undefined)
  facts.error('the state could not be read; it is tried again', new errors.RequestError('refused', { cause: refused }))
  facts.error('the state could not be read; it is tried again', new TypeError('no object'))
  facts.error('a node could not be noted', unavailable(new errors.RequestError('refused', { cause: refused })))
  const told = taken()
  expect(told[0]).toMatch(/^error the state could not be read .*"error":"refused"/)
  expect(told[1]).toMatch(/^error the state could not be read .*"err":/)
  expect(told[2]).toMatch(/^error a node could not be noted .*"error":"refused"/)
  facts.error('a node could not be noted', unavailable(new TypeError('no object')))
  expect(taken()[0]).toMatch(/^error a node could not be noted .*"err":/)
})
