/** The salts of a run's own encrypters: what comes back under one of them was reflected, not sent by a peer. */
import type { ComponentContext } from '../../engine/component.ts'

interface OwnSalt {
  high: number
  low: number
  /** The encrypter's name. */
  component: string
}

export class OwnSalts {
  private readonly salts: OwnSalt[] = []

  add(salt: Uint8Array, component: string): void {
    const view = new DataView(salt.buffer, salt.byteOffset)
    this.salts.push({ high: view.getInt32(0), low: view.getInt32(4), component })
  }

  /** The encrypter that drew the salt, '' when it is none of this run's. */
  encrypterOf(high: number, low: number): string {
    const { salts } = this
    for (let n = 0; n < salts.length; n++) if (salts[n].high === high && salts[n].low === low) return salts[n].component
    return ''
  }

  /** Whether one of this run drew the salt whose packets do not come from it inside the graph: somebody has sent them back. */
  reflects(high: number, low: number, follows: (component: string) => boolean): boolean {
    const encrypter = this.encrypterOf(high, low)
    return encrypter !== '' && !follows(encrypter)
  }
}

/** Those of the run that `context` belongs to. */
export function ownSalts({ shared }: Pick<ComponentContext<never, never>, 'shared'>): OwnSalts {
  return shared('salts of encrypters', () => new OwnSalts())
}
