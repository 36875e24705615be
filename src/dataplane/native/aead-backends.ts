/** Which backend does authenticated encryption: choosing it, naming it, and what to do where one cannot be used. */
import type { AeadBackendName, AeadBackendState } from './cipher-calls.ts'
import { native } from './native.ts'

type Obstacle = NonNullable<AeadBackendState['obstacle']>

/** What to do about the obstacle of a backend, as the end of a sentence. */
export function aeadAdvice(name: AeadBackendName, { code }: Obstacle): string {
  if (name === 'avx512') return code === 'cpu' ? 'take another machine' : 'report this as a fault of penstock'
  switch (code) {
    case 'missing':
      return 'install libipsec-mb (Debian 13: apt-get install libipsec-mb2; Debian 12, Ubuntu: apt-get install libipsec-mb1)'
    case 'version':
      return 'install libipsec-mb 1.1 to 2.0 (Debian 13: apt-get install libipsec-mb2; Debian 12, Ubuntu: apt-get install libipsec-mb1)'
    case 'failed':
    case 'answers':
      return 'install libipsec-mb anew (Debian 13: apt-get install --reinstall libipsec-mb2; Debian 12, Ubuntu: libipsec-mb1)'
    case 'cpu':
      return 'take another machine'
  }
}

/** The backend of everything opened from now on, in this process; throws, with what to do, when it cannot be used. `setting` names who asks for it. */
export function useAeadBackend(choice: AeadBackendName | 'auto', setting: string): void {
  const state = choice === 'auto' ? undefined : native.aeadBackends().find(({ name }) => name === choice)
  if (state?.obstacle !== undefined) {
    const { obstacle, name } = state
    throw new Error(
      `${setting}: ${name} cannot be used: ${obstacle.text}; ${aeadAdvice(name, obstacle)}, or choose auto or openssl`,
    )
  }
  native.aeadUse(choice)
}

export function nameAndVersion({ name, version }: Pick<AeadBackendState, 'name' | 'version'>): string {
  return version === '' ? name : `${name} ${version}`
}

/** Name and, where it has one, version of the backend in use, for logs. */
export function aeadBackendText(): string {
  const used = native.aeadBackend()
  const { name, version } = native.aeadBackends().find(({ name }) => name === used) as AeadBackendState
  return nameAndVersion({ name, version })
}
