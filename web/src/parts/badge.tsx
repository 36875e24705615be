/** A word on a state, coloured by what it means. */
import type { ReactNode } from 'react'

export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'idle'

export function Badge({ tone, children }: { readonly tone: Tone; readonly children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>
}
