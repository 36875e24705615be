/** Who may call, from which address, with which headers. */
import { describe, expect, test } from 'vitest'
import { Access } from './access.ts'

const verifyToken = (token: string) => (token === 'good' ? 'laptop' : undefined)
const none = { host: 'localhost', origin: '', authorization: '', fetchSite: '', forwarded: false }

describe('callers', () => {
  test('from loopback need nothing, others a token, unless access is open', () => {
    const access = new Access({ verifyToken })
    expect(access.caller('127.0.0.1', '')).toEqual({ remoteAddress: '127.0.0.1', isLoopback: true })
    expect(access.caller('::1', '')).toEqual({ remoteAddress: '::1', isLoopback: true })
    expect(() => access.caller('10.0.0.5', '')).toThrow('need `Authorization: Bearer TOKEN`')
    expect(access.caller('10.0.0.5', 'bearer good')).toEqual({
      remoteAddress: '10.0.0.5',
      isLoopback: false,
      identity: 'laptop',
    })
    expect(() => access.caller('10.0.0.5', 'Bearer bad')).toThrow('not known')
    for (const other of ['Basic good', 'Bearer', 'Bearer a b', 'good']) {
      expect(() => access.caller('10.0.0.5', other)).toThrow('send `Authorization: Bearer TOKEN`')
    }
    expect(new Access({ open: true }).caller('10.0.0.5', '')).toMatchObject({ isLoopback: false })
    for (const open of [false, true]) {
      const strict = new Access({
        open,
        loopback: 'token',
        verifyToken: (token) => (token === 'good' ? 'me' : undefined),
      })
      for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) {
        expect(() => strict.caller(address, '')).toThrow('access.loopback')
        expect(strict.caller(address, 'Bearer good')).toMatchObject({ isLoopback: true, identity: 'me' })
      }
    }
  })

  test.each([
    ['localhost:8769', true],
    ['LOCALHOST', true],
    ['penstock.localhost', true],
    ['127.0.0.1:8769', true],
    ['[::1]:8769', true],
    ['node.example:8769', true],
    ['evil.example', false],
    ['127.0.0.1.evil.example', false],
    ['localhost.evil.example', false],
    ['10.0.0.5', false],
    ['', false],
  ])('Host %j: %s', (host, isOurs) => {
    const access = new Access({ verifyToken, hostnames: ['Node.example'] })
    const call = () => access.httpCaller('127.0.0.1', { ...none, host })
    if (isOurs) expect(call()).toMatchObject({ isLoopback: true })
    else expect(call).toThrow('Host header')
  })

  test('open access takes addresses as Host, since a name server cannot rebind them', () => {
    const access = new Access({ open: true })
    expect(access.httpCaller('10.0.0.9', { ...none, host: '10.0.0.5:8769' })).toMatchObject({ isLoopback: false })
    expect(() => access.httpCaller('10.0.0.9', { ...none, host: 'evil.example' })).toThrow('Host header')
  })

  test('cross-origin requests need a token', () => {
    const access = new Access({ verifyToken })
    const foreign = { ...none, origin: 'https://evil.example' }
    expect(() => access.httpCaller('127.0.0.1', foreign)).toThrow('cross-origin')
    expect(() => access.httpCaller('127.0.0.1', { ...none, fetchSite: 'same-site' })).toThrow('cross-origin')
    const allowing = new Access({ verifyToken, allowedOrigins: ['https://page.example'] })
    const withToken = { ...foreign, authorization: 'Bearer good' }
    expect(() => access.httpCaller('127.0.0.1', withToken)).toThrow('add their origin to http.allowedOrigins')
    expect(() => allowing.httpCaller('127.0.0.1', withToken)).toThrow('"https://evil.example" are not served')
    const page = { ...none, origin: 'https://page.example', fetchSite: 'cross-site' }
    expect(() => allowing.httpCaller('127.0.0.1', page)).toThrow('cross-origin')
    expect(allowing.httpCaller('127.0.0.1', { ...page, authorization: 'Bearer good' })).toMatchObject({
      identity: 'laptop',
    })
    expect(access.httpCaller('127.0.0.1', { ...none, host: 'localhost:1', origin: 'http://localhost:1' })).toBeDefined()
    expect(() =>
      access.httpCaller('127.0.0.1', { ...none, host: 'localhost:1', origin: 'http://localhost:2' }),
    ).toThrow()
  })
})

describe('what a proxy on this machine passes on', () => {
  const proxied = { ...none, forwarded: true }

  test('needs a token, and is not of this machine', () => {
    for (const access of [new Access({ verifyToken }), new Access({ verifyToken, hostnames: ['node.example'] })]) {
      expect(() => access.httpCaller('127.0.0.1', proxied)).toThrow('through a proxy (X-Forwarded-For, Forwarded)')
      expect(access.httpCaller('::1', { ...proxied, authorization: 'Bearer good' })).toEqual({
        remoteAddress: '::1',
        isLoopback: false,
        identity: 'laptop',
      })
      expect(() => access.caller('127.0.0.1', '', true)).toThrow('through a proxy')
    }
  })

  test('is let in by open access, under a name of this node', () => {
    const access = new Access({ open: true, hostnames: ['node.example'] })
    expect(access.httpCaller('127.0.0.1', { ...proxied, host: 'node.example' })).toMatchObject({ isLoopback: false })
    expect(() => access.httpCaller('127.0.0.1', { ...proxied, host: 'evil.example' })).toThrow('Host header')
  })
})
