/** Which leases stand once everything has been read anew. */
import { expect, test } from 'vitest'
import { encodeLease } from './entries.ts'
import { Servers } from './servers.ts'

test.each<[string, [string, boolean][], boolean, string[]]>([
  ['read as before', [['a1', true]], false, ['a1', 'b1']],
  ['not come upon: it may have been renewed behind what was read', [], false, ['a1', 'b1']],
  ['read as ended', [['a1', false]], false, ['b1']],
  ['its server has another', [['a2', true]], false, ['b1', 'a2']],
  [
    'two of one server, as of two processes with one identity',
    [
      ['a1', true],
      ['a2', true],
    ],
    false,
    ['a1', 'b1', 'a2'],
  ],
  ['in a bucket that was made anew', [['b1', true]], true, ['b1']],
])('a lease %s', (_, read, isLost, standing) => {
  const servers = new Servers({
    now: () => 0,
    onStanding: () => {},
    onEnded: () => {},
    onSeen: () => {},
    onChanged: () => {},
  })
  const take = (life: string) => {
    const value = encodeLease({ server: life.slice(0, 1), renewal: 1n, details: new Uint8Array(0) })
    servers.take(life, { key: `server.${life}`, revision: 1, value, at: 0 })
  }
  for (const life of ['a1', 'b1']) take(life)
  for (const [life, stands] of read) if (stands) take(life)
  servers.resumed(new Map(read), isLost)
  expect(servers.lives()).toEqual(standing)
})
