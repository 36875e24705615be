/** How often the log says that errors are counted. */
import { constants } from 'node:os'
import { expect, test } from 'vitest'
import { NS_PER_S, VirtualClock } from '../../engine/clock.ts'
import { ToldErrors } from './told-errors.ts'

const { ENETUNREACH, EPERM } = constants.errno

test('the first of each cause is told, and those that go on once a minute', () => {
  const clock = new VirtualClock()
  const told: [number, ...unknown[]][] = []
  const errors = new ToldErrors(
    clock,
    (_level, _message, fields = {}) => told.push([clock.now / NS_PER_S, ...Object.values(fields)]),
    'the kernel refuses packets',
    'refused_packets',
  )
  errors.look(0, 0)
  let count = 0
  for (let tenths = 0; tenths < 1500; tenths++) {
    clock.advanceTo((tenths * NS_PER_S) / 10)
    // Nothing is refused any more from 130 s on; at first now the one and then the other.
    if (tenths < 1300) count += 5
    errors.look(count, tenths < 300 && tenths % 2 === 1 ? EPERM : ENETUNREACH)
  }
  expect(told).toEqual([
    [0, 'ENETUNREACH', 5],
    [0.1, 'EPERM', 10],
    [60, 'ENETUNREACH', 3005],
    [120, 'ENETUNREACH', 6005],
  ])
})

test('what no call of the kernel refused is counted and not told', () => {
  const errors = new ToldErrors(new VirtualClock(), () => expect.fail('told'), 'nothing', 'refused_packets')
  errors.look(3, 0)
})

test('what is over is told at once when it comes back, and what explains the refusals stands for them', () => {
  const told: string[] = []
  const log = (_level: string, message: string) => told.push(message)
  const errors = new ToldErrors(new VirtualClock(), log, 'the kernel refuses packets', 'refused_packets')
  errors.tell(ENETUNREACH, 'no way leads there', 'nothing gets there', {})
  errors.look(1, ENETUNREACH)
  errors.forget()
  errors.look(2, ENETUNREACH)
  errors.look(3, ENETUNREACH)
  expect(told.map((message) => message.split(' (')[0])).toEqual(['no way leads there', 'the kernel refuses packets'])
})
