/** Whether a call's caller is still there, told by its signal and by its listeners. */
import { expect, test } from 'vitest'
import { ServiceError } from '../contract/errors.ts'
import { Call } from './call.ts'

const callNow = () => new Call({ remoteAddress: '127.0.0.1', isLoopback: true }, 'internal')
const late = new ServiceError('DEADLINE_EXCEEDED', 'too late')

test('every listener that stays hears the reason once, and so does the signal', () => {
  const call = callNow()
  const heard: unknown[] = []
  call.onAbort((reason) => heard.push('first', reason))
  const leave = call.onAbort(() => heard.push('gone'))
  call.onAbort((reason) => heard.push('third', reason))
  leave()
  leave()
  call.abort(late)
  call.lose()
  expect(heard).toEqual(['first', late, 'third', late])
  expect(call.signal.reason).toBe(late)
})

test('who listens after the end is told at once', () => {
  const call = callNow()
  call.lose()
  let heard = 0
  call.onAbort(() => heard++)
  expect(heard).toBe(1)
  expect(call.signal.aborted).toBe(true)
})

test('a listener that leaves while the others are told changes nothing for them', () => {
  const call = callNow()
  const heard: number[] = []
  const leave = call.onAbort(() => {
    heard.push(1)
    leave()
  })
  call.onAbort(() => heard.push(2))
  call.abort()
  expect(heard).toEqual([1, 2])
})
