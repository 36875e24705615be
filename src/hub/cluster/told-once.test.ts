/** What fails again and again is told once, also where each attempt is refused with a name of its own. */
import { errors } from '@nats-io/transport-node'
import { expect, test } from 'vitest'
import { ToldOnce } from './told-once.ts'

test('a permission that is missing is told once, whatever the consumer of each attempt is called', () => {
  const told: unknown[] = []
  const failure = new ToldOnce((error) => told.push(error) > 0)
  const fail = (consumer: string) => {
    const subject = `$JS.API.CONSUMER.CREATE.KV_penstock_tests_members.${consumer}`
    const cause = new errors.PermissionViolationError(subject, 'publish', subject)
    failure.failed(new errors.RequestError(subject, { cause }))
  }
  fail('one')
  fail('two')
  expect(told).toHaveLength(1)
  failure.failed(new Error('another reason'))
  expect(told).toHaveLength(2)
  failure.worked()
  fail('three')
  expect(told).toHaveLength(3)
})
