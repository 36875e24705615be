/** `npm run demo:cluster`, as it is run: everything it promises is seen. */
import { expect, it } from 'vitest'
import { penstock } from './cli.ts'

it('kills a hub server and a NATS server, and all is made up for', { timeout: 240_000 }, async () => {
  const { code, stdout, stderr } = await penstock(['demo-cluster'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  for (const line of [
    /datagrams went from n1 to n2, which n3 manages/,
    /kill -9 of hub server a[\s\S]*n1 is at another server after [\d.]+ s/,
    /n4 is at another server after [\d.]+ s/,
    /a is counted as gone after [\d.]+ s/,
    /calls of n3, over the two other servers, were all answered meanwhile/,
    /run 2 goes on, [\d,]+ more datagrams came; its telemetry is read again/,
    /a is one of the servers again after/,
    /kill -9 of NATS server n1[\s\S]*was written and seen on all three hub servers after [\d.]+ s/,
    /all three hub servers have all nine nodes online/,
    /all of it was seen/,
  ]) {
    expect(stdout).toMatch(line)
  }
})
