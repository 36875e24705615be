import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign as signByNode,
  verify as verifyByNode,
} from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { sign, verify } from './ed25519.ts'
import { newPrivateKey, rawKey } from './keys.ts'

/** RFC 8032, section 7.1: secret key, public key, message, signature. */
const vectors = [
  [
    '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    '4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
  [
    'c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7',
    'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    'af82',
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  ],
].map((vector) => vector.map((hex) => Buffer.from(hex, 'hex'))) as [Buffer, Buffer, Buffer, Buffer][]

/** PKCS #8 before the seed of an Ed25519 key (RFC 8410, section 7). */
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')

describe('Ed25519', () => {
  it.each(vectors)('RFC 8032: secret key %h', (seed, key, message, signature) => {
    const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8, seed]), format: 'der', type: 'pkcs8' })
    expect(rawKey(createPublicKey(privateKey))).toEqual(new Uint8Array(key))
    expect(Buffer.from(sign(message, privateKey))).toEqual(signature)
    expect(verify(message, key, signature)).toBe(true)
  })

  it('what OpenSSL signs is accepted, and the other way round', () => {
    for (let length = 0; length < 100; length++) {
      const { privateKey, publicKey } = generateKeyPairSync('ed25519')
      const message = Buffer.alloc(length, length)
      expect(verify(message, rawKey(publicKey), signByNode(null, message, privateKey))).toBe(true)
      expect(verifyByNode(null, message, publicKey, sign(message, privateKey))).toBe(true)
    }
  })

  it('each bit of message, key and signature counts', () => {
    const privateKey = newPrivateKey('ed25519')
    const message = Buffer.from('penstock')
    const key = rawKey(createPublicKey(privateKey))
    const signature = sign(message, privateKey)
    for (const bytes of [message, key, signature]) {
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flip = () => {
          bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
        }
        flip()
        expect(verify(message, key, signature)).toBe(false)
        flip()
      }
    }
    expect(verify(message, key, signature)).toBe(true)
  })

  it('keys of other types sign nothing', () => {
    for (const { privateKey } of [generateKeyPairSync('x25519'), generateKeyPairSync('ed448')]) {
      expect(() => sign(Buffer.from('penstock'), privateKey)).toThrow(/a private key of type (x25519|ed448)/)
    }
    expect(() => sign(Buffer.from('penstock'), newPrivateKey('p256'))).toThrow('a private key of type ec')
  })

  it('what is no key and no signature verifies nothing', () => {
    const privateKey = newPrivateKey('ed25519')
    const message = Buffer.from('penstock')
    const key = rawKey(createPublicKey(privateKey))
    const signature = sign(message, privateKey)
    const zeros = new Uint8Array(1)
    for (const wrong of [signature.subarray(1), Buffer.concat([signature, zeros]), zeros, new Uint8Array(0)]) {
      expect(verify(message, key, wrong)).toBe(false)
    }
    for (const wrong of [key.subarray(1), Buffer.concat([key, zeros]), new Uint8Array(0)]) {
      expect(verify(message, wrong, signature)).toBe(false)
    }
    // A point of order 1, under which a signature of zeros fits any message where such keys are let through.
    const neutral = Buffer.alloc(32)
    neutral[0] = 1
    expect(verify(message, neutral, Buffer.concat([neutral, Buffer.alloc(32)]))).toBe(false)
  })
})
