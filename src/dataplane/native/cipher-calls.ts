/** What the addon encrypts, signs and opens. */

/** Packets, the newest of a sender and those before it, among which `aeadOpenPackets` knows what has come. */
export const REPLAY_WINDOW = 1024

/** What became of a packet, as `aeadOpenPackets` writes it. */
export const AEAD_OUTCOMES = { opened: 0, forged: 1, replayed: 2, malformed: 3 } as const

/** What can do authenticated encryption: penstock's own code for AVX-512, libIPSec_MB, the OpenSSL of Node. */
export type AeadBackendName = 'avx512' | 'ipsec-mb' | 'openssl'

export interface AeadBackendState {
  name: AeadBackendName
  /** '' where it was not found, and of what is part of penstock. */
  version: string
  /** Why it cannot be used; absent where it can. */
  obstacle?: {
    /**
     * The library is not there, is of a version or make that is not known, could not be initialised, it gave wrong answers to known
     * vectors, or it has nothing to offer on this CPU.
     */
    code: 'missing' | 'version' | 'failed' | 'answers' | 'cpu'
    text: string
  }
}

export interface CipherCalls {
  /**
   * What can do authenticated encryption, fastest first; always ends with 'openssl', the library that Node exports. The first call
   * loads libIPSec_MB where it is installed, and tries all but OpenSSL with known vectors.
   */
  aeadBackends(): AeadBackendState[]
  /** The one that contexts are opened with from now on: the fastest, or what `aeadUse` has chosen for the process. */
  aeadBackend(): AeadBackendName
  /** Throws a RangeError when it cannot be used. Contexts that are open stay as they are; what one seals the other opens. */
  aeadUse(backend: AeadBackendName | 'auto'): void
  /**
   * AEAD context; suite 0 AES-128-GCM, 1 AES-256-GCM, 2 ChaCha20-Poly1305, 3 the same of an empty text: the payload is associated data,
   * so it stays in clear and the tag signs it. The key is copied and wiped at close. `salt` has 8 bytes and names who seals with the key.
   */
  aeadOpen(owner: number, suite: 0 | 1 | 2 | 3, key: Uint8Array, salt: Uint8Array): number
  /**
   * Seals `handles[0..count)` in place: the packet becomes salt (8) | counter (8, big-endian) | ciphertext | tag (16), the
   * 16-byte header being written into headroom and authenticated as associated data, the tag into tailroom. The nonce is
   * 4 zero bytes followed by the counter; counters run from `counter[0]` (a Float64Array, < 2^53), which is advanced.
   * Packets without the room are left alone, and their index is put into `failed` (count returned). With `together` many packets are
   * sealed into free trains, side by side, which is for those that nothing makes grow any more: the kernel takes them as one piece.
   */
  aeadSeal(
    aead: number,
    memory: number,
    handles: Int32Array,
    count: number,
    counter: Float64Array,
    failed: Int32Array,
    together: boolean,
  ): number
  /**
   * Opens `handles[from..end)` in place, up to the first with another salt than this context's; returns where it stopped, or the
   * complement of that (~) where not all were opened. `outcome[i]` says what became of each. Opened is a packet that is its plain text now and has come for the first time: the context knows
   * which of the newest `REPLAY_WINDOW` counters it has opened. Replayed is an authentic one that came before, or is older than
   * those. Forged is one whose tag does not match (a text that was decrypted is zeros then), malformed what is too short for header and tag.
   */
  aeadOpenPackets(
    aead: number,
    memory: number,
    handles: Int32Array,
    from: number,
    end: number,
    outcome: Uint8Array,
  ): number
  /**
   * Seals one message in place, with any nonce of 12 bytes and any associated data, as published vectors have them (for tests).
   * `bytes` is the text and room for the tag of 16 bytes behind it; the key has the bytes of its suite, as `aeadOpen` numbers them.
   */
  aeadSealBytes(suite: 0 | 1 | 2, key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, bytes: Uint8Array): void
  /** Opens what `aeadSealBytes` makes, in place; false when the tag is not the message's: then the text is zeros. */
  aeadOpenBytes(
    suite: 0 | 1 | 2,
    key: Uint8Array,
    nonce: Uint8Array,
    associated: Uint8Array,
    bytes: Uint8Array,
  ): boolean

  /** ChaCha kernels that this CPU runs, fastest first; always ends with 'portable'. */
  chachaKernels(): string[]
  /** The kernel in use by all threads; `chachaUse` picks one (for tests and benches). */
  chachaKernel(): string
  chachaUse(kernel: string): void
  /**
   * ChaCha context (RFC 8439, section 2.3) of a key of 32 bytes, a nonce of 12 and a constant of 16, which stands where the RFC has
   * "expand 32-byte k"; `rounds` is even, 8 to 20. All are copied and wiped at close.
   */
  chachaOpen(owner: number, key: Uint8Array, nonce: Uint8Array, constant: Uint8Array, rounds: number): number
  /**
   * Encrypts `handles[0..count)` in place: the packet becomes salt (8) | counter (8, big-endian) | cipher text, the header being written
   * into headroom. The nonce is the context's with its last 8 bytes XORed with the counter, the block counter begins at 0.
   * Counters run from `counter[0]` (a Float64Array, < 2^53), which is advanced. Packets without the room are left alone, and their
   * index is put into `failed` (count returned).
   */
  chachaEncrypt(
    chacha: number,
    memory: number,
    handles: Int32Array,
    count: number,
    salt: Uint8Array,
    counter: Float64Array,
    failed: Int32Array,
  ): number
  /**
   * Decrypts `handles[0..count)` in place, after which the packet is the plain text, if it was encrypted with this context's key: nothing
   * shows that. The caller has checked that all carry its salt. Packets without a header, or with a counter from 2^53 on, are left
   * alone, and their index is put into `failed` (count returned).
   */
  chachaDecrypt(chacha: number, memory: number, handles: Int32Array, count: number, failed: Int32Array): number
}
