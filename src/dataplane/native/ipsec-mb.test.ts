/** libIPSec_MB: what the addon takes it for, against its own header, and libraries that are not what they should be. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { missingIpsecMb, replacedIpsecMb, usableAeadBackends } from '../../../test/harness/aead-backends.ts'
import { packageRoot } from '../../package-root.ts'
import type { AeadBackendState } from './cipher-calls.ts'
import { native } from './native.ts'

/** What a process finds that looks for the library in `environment`. */
function foundWith(environment: Record<string, string>): { states: AeadBackendState[]; used: string; refusal: string } {
  const script = `
    const native = require('node-gyp-build')(process.cwd())
    let refusal = ''
    try { native.aeadUse('ipsec-mb') } catch (error) { refusal = error.message }
    native.aeadUse('auto')
    console.log(JSON.stringify({ states: native.aeadBackends(), used: native.aeadBackend(), refusal }))`
  const { stdout, stderr, error } = spawnSync(process.execPath, ['-e', script], {
    cwd: packageRoot(),
    env: { ...process.env, ...environment },
    encoding: 'utf8',
  })
  if (error) throw error
  expect(stderr).toBe('')
  return JSON.parse(stdout)
}

/** A library of version 1.3.0 whose features and functions are as given, in C. */
const library = (features: string, called: string, version = '0x10300') => `
  #include <stdint.h>
  #include <stdlib.h>
  void nothing(void) {}
  unsigned imb_get_version(void) { return ${version}; }
  const char *imb_get_version_str(void) { return "of the test"; }
  size_t imb_get_mb_mgr_size(void) { return 4096; }
  void *alloc_mb_mgr(uint64_t flags) { return calloc(1, 4096 + flags); }
  void free_mb_mgr(void *manager) { free(manager); }
  int imb_get_errno(void *manager) { return manager == 0; }
  void init_mb_mgr_auto(void *manager, int *arch) {
    ((uint64_t *)manager)[1] = ${features};
    for (int i = 8; i < 60; i++) ((void **)manager)[i] = arch ? 0 : ${called};
  }`
const ALL = '0x7ffff'
const SECOND = 'libIPSec_MB.so.2'

describe.skipIf(process.arch !== 'x64')('a library that is not used', () => {
  test.each([
    ['is none', undefined, 'missing', 'libIPSec_MB.so.2: file too short; '],
    ['says no version', 'int imb;', 'version', 'does not say its version'],
    ['is older', library(ALL, 'nothing', '0x10000'), 'version', '1.1 to 2.0 are known'],
    ['is newer', library(ALL, 'nothing', '0x20100'), 'version', '1.1 to 2.0 are known'],
    ['lacks functions', library(ALL, 'nothing').replace('alloc_mb_mgr', 'alloc'), 'version', 'lacks functions'],
    [
      'is for smaller tables',
      library(ALL, 'nothing').replace('return 4096', 'return 64'),
      'version',
      'lacks functions',
    ],
    ['cannot begin', library(ALL, 'nothing').replace('manager == 0', '1'), 'failed', 'could not be initialised'],
    ['finds no AVX2', library('0x7ffbf', 'nothing'), 'cpu', 'AVX2'],
    ['leaves keys behind', library('0x7bfff', 'nothing'), 'version', 'SAFE_DATA'],
    ['has another table', library(ALL, '(void *)malloc'), 'version', 'table of functions'],
    ['has holes in its table', library(ALL, '(void *)0'), 'version', 'table of functions'],
    ['gives wrong answers', library(ALL, 'nothing'), 'answers', 'known vectors of AES-128-GCM'],
    ['is of a later version 2', library(ALL, 'nothing', '0x20100'), 'version', 'libIPSec_MB.so.2 is version', SECOND],
    ['is of version 2, and wrong', library(ALL, 'nothing', '0x20000'), 'answers', 'known vectors', SECOND],
  ] as const)('it %s', (_what, source, code, said, file: typeof SECOND | undefined = undefined) => {
    const { states, used, refusal } = foundWith(replacedIpsecMb(source, file))
    const [own, library] = states as [AeadBackendState, AeadBackendState]
    expect(states.map(({ name }) => name)).toEqual(['avx512', 'ipsec-mb', 'openssl'])
    expect(library.obstacle?.code).toBe(code)
    expect(library.obstacle?.text).toContain(said)
    expect(refusal).toBe(`aeadUse: ipsec-mb cannot be used: ${library.obstacle?.text}`)
    expect(used).toBe(own.obstacle === undefined ? 'avx512' : 'openssl')
  })
})

test.skipIf(missingIpsecMb !== undefined)('the library is used where it is the fastest, and each can be chosen', () => {
  expect(native.aeadBackend()).toBe(usableAeadBackends[0])
  native.aeadUse('openssl')
  expect(native.aeadBackend()).toBe('openssl')
  native.aeadUse('ipsec-mb')
  expect(native.aeadBackend()).toBe('ipsec-mb')
  native.aeadUse('auto')
  const versions = native.aeadBackends().map(({ version }) => version)
  expect(versions).toEqual(['', expect.stringMatching(/^\d+\.\d+/), expect.stringMatching(/^\d+\.\d+/)])
  expect(() => native.aeadUse('abacus' as 'auto')).toThrow(/abacus/)
})

const hasHeader = existsSync('/usr/include/intel-ipsec-mb.h')
if (!hasHeader) console.warn('THE ADDON IS NOT COMPARED WITH THE HEADER OF libIPSec_MB: install libipsec-mb-dev')

test.skipIf(!hasHeader)('what the addon declares lies where the header of the library has it', () => {
  const places = {
    ImbManager: {
      features: 'features',
      architecture: 'used_arch',
      getNextJob: 'get_next_job',
      submitJobUnchecked: 'submit_job_nocheck',
      flushJob: 'flush_job',
      gcm128Encrypt: 'gcm128_enc',
      gcm256Encrypt: 'gcm256_enc',
      gcm128Decrypt: 'gcm128_dec',
      gcm256Decrypt: 'gcm256_dec',
      gcm128Prepare: 'gcm128_pre',
      gcm256Prepare: 'gcm256_pre',
    },
    ImbJob: {
      encryptKeys: 'enc_keys',
      decryptKeys: 'dec_keys',
      keyBytes: 'key_len_in_bytes',
      from: 'src',
      to: 'dst',
      cipherOffset: 'cipher_start_src_offset_in_bytes',
      cipherBytes: 'msg_len_to_cipher_in_bytes',
      hashOffset: 'hash_start_src_offset_in_bytes',
      hashBytes: 'msg_len_to_hash_in_bytes',
      nonce: 'iv',
      nonceBytes: 'iv_len_in_bytes',
      tag: 'auth_tag_output',
      tagBytes: 'auth_tag_output_len_in_bytes',
      associated: 'u.CHACHA20_POLY1305.aad',
      associatedBytes: 'u.CHACHA20_POLY1305.aad_len_in_bytes',
      context: 'u.CHACHA20_POLY1305.ctx',
      status: 'status',
      cipher: 'cipher_mode',
      direction: 'cipher_direction',
      hash: 'hash_alg',
      order: 'chain_order',
    },
  }
  const constants = {
    kImbAes: 'IMB_FEATURE_AESNI',
    kImbCarrylessMultiply: 'IMB_FEATURE_PCLMULQDQ',
    kImbAvx2: 'IMB_FEATURE_AVX2',
    kImbSafeData: 'IMB_FEATURE_SAFE_DATA',
    kImbCompleted: 'IMB_STATUS_COMPLETED',
    kImbCipherChacha20Poly1305: 'IMB_CIPHER_CHACHA20_POLY1305',
    kImbHashChacha20Poly1305: 'IMB_AUTH_CHACHA20_POLY1305',
    kImbEncrypt: 'IMB_DIR_ENCRYPT',
    kImbDecrypt: 'IMB_DIR_DECRYPT',
    kImbCipherThenHash: 'IMB_ORDER_CIPHER_HASH',
    kImbHashThenCipher: 'IMB_ORDER_HASH_CIPHER',
  }
  const theirs = { ImbManager: 'IMB_MGR', ImbJob: 'IMB_JOB' }
  const claims = [
    ...Object.entries(places).flatMap(([type, fields]) =>
      Object.entries(fields).map(
        ([own, field]) => `offsetof(penstock::${type}, ${own}) == offsetof(${theirs[type as 'ImbJob']}, ${field})`,
      ),
    ),
    ...Object.entries(constants).map(([own, constant]) => `penstock::${own} == static_cast<uint64_t>(${constant})`),
    'sizeof(penstock::ImbGcmKey) >= sizeof(gcm_key_data) && alignof(penstock::ImbGcmKey) >= alignof(gcm_key_data)',
    'sizeof(penstock::ImbGcmContext) >= sizeof(gcm_context_data)',
    'IMB_VERSION_NUM >= penstock::kImbFirst && IMB_VERSION_NUM < penstock::kImbEnd',
  ]
  const program = `#define LINUX
#include <stddef.h>
#include <intel-ipsec-mb.h>
#include "src/dataplane/native/ipsec_mb_abi.h"
${claims.map((claim) => `static_assert(${claim}, "");`).join('\n')}`
  const options = ['-fsyntax-only', '-std=gnu++17', '-Wno-invalid-offsetof', '-x', 'c++', '-I', packageRoot(), '-']
  const { error, status, stderr } = spawnSync('g++', options, { input: program, encoding: 'utf8' })
  expect({ error, stderr, status }).toEqual({ error: undefined, stderr: '', status: 0 })
})
