/** What doctor says of encryption on CPUs and with libraries that this machine may not have. */
import { expect, test } from 'vitest'
import * as advice from '../dataplane/native/aead-backends.ts'
import type { AeadBackendState } from '../dataplane/native/cipher-calls.ts'
import { aead } from './doctor.ts'

const OPENSSL: AeadBackendState = { name: 'openssl', version: '3.0.1' }
const LIBRARY: AeadBackendState = { name: 'ipsec-mb', version: '1.3.0' }
const NO_LIBRARY: AeadBackendState = { name: 'ipsec-mb', version: '', obstacle: { code: 'missing', text: 'no file' } }
const OWN: AeadBackendState = { name: 'avx512', version: '' }
const NO_AVX512: AeadBackendState = { ...OWN, obstacle: { code: 'cpu', text: 'no AVX-512' } }
const WRONG: AeadBackendState = { ...OWN, obstacle: { code: 'answers', text: 'wrong answers' } }

test.each([
  ['everything', [OWN, LIBRARY, OPENSSL], 'ok', 'avx512 (also ipsec-mb 1.3.0, openssl 3.0.1)', undefined],
  ['no library, and no need of it', [OWN, NO_LIBRARY, OPENSSL], 'ok', 'avx512 (also openssl 3.0.1)', undefined],
  ['another CPU, the library', [NO_AVX512, LIBRARY, OPENSSL], 'ok', 'ipsec-mb 1.3.0 (also openssl 3.0.1)', undefined],
  ['another CPU', [NO_AVX512, NO_LIBRARY, OPENSSL], 'warn', 'openssl 3.0.1; ipsec-mb: no file', 'install libipsec-mb'],
  [
    'a fault of penstock',
    [WRONG, LIBRARY, OPENSSL],
    'warn',
    'ipsec-mb 1.3.0 (also openssl 3.0.1); avx512: wrong answers',
    'report this',
  ],
] as const)('%s', (_what, backends, grade, found, advised) => {
  const finding = aead(backends, advice)
  expect(finding).toMatchObject({ check: 'aead', grade, found })
  if (advised === undefined) expect(finding.advice).toBeUndefined()
  else expect(finding.advice).toContain(`for faster encryption ${advised}`)
})
