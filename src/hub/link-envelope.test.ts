/** What a peer says of a message that it refused, whatever it says. */
import { expect, test } from 'vitest'
import { errorBody } from '../api/errors.ts'
import { ServiceError } from '../contract/errors.ts'
import { readRefused, refused } from './link-envelope.ts'

const problem = { pointer: '/requestId', message: 'must be there' }

test('a refusal arrives as it was', () => {
  const error = new ServiceError('NOT_FOUND', 'no such request', { problems: [problem] })
  expect(readRefused(refused(error).subarray(1))).toMatchObject({ ...error, message: 'no such request' })
})

test.each([
  ['{"code": "NEW_CODE", "message": "m", "problems": []}', 'UNKNOWN', []],
  ['{"code": "OK", "message": "m"}', 'UNKNOWN', []],
  ['{"code": "toString", "message": "m", "problems": null}', 'UNKNOWN', []],
  ['{"code": "NOT_FOUND", "message": "m", "problems": 5}', 'NOT_FOUND', []],
  [`{"code": "NOT_FOUND", "message": "m", "problems": [null, {}, ${JSON.stringify(problem)}]}`, 'NOT_FOUND', [problem]],
  ['null', 'INTERNAL', []],
  ['{', 'INTERNAL', []],
])('%s can be answered', (text, code, problems) => {
  const error = readRefused(Buffer.from(text))
  expect(error).toMatchObject({ code, problems })
  expect(JSON.parse(errorBody(error))).toMatchObject({ code: expect.any(Number) })
})
