/** How the families of components are told apart: by colour, by a sign, and by a word. */
import type { ReactNode } from 'react'

interface Look {
  readonly title: string
  /** Strokes of a sign in a box of 24 by 24. */
  readonly sign: ReactNode
}

const LOOKS: Readonly<Record<string, Look>> = {
  sources: { title: 'Source or sink', sign: <path d="M4 12h11M11 7l5 5-5 5M20 5v14" /> },
  endpoints: {
    title: 'Endpoint',
    sign: (
      <>
        <circle cx="12" cy="12" r="8" />
        <path d="M4 12h16M12 4c3 2.5 3 13.5 0 16M12 4c-3 2.5-3 13.5 0 16" />
      </>
    ),
  },
  emulation: { title: 'Emulation', sign: <path d="M3 15c2-8 4-8 6 0s4 8 6 0 4-8 6 0" /> },
  fec: {
    title: 'Error correction',
    sign: (
      <>
        <path d="M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6z" />
        <path d="M9 12l2 2 4-4" />
      </>
    ),
  },
  crypto: {
    title: 'Encryption',
    sign: (
      <>
        <rect x="5" y="11" width="14" height="9" rx="2" />
        <path d="M8 11V8a4 4 0 0 1 8 0v3" />
      </>
    ),
  },
  multipath: { title: 'Multipath', sign: <path d="M3 12h4c3 0 3-6 6-6h8M7 12c3 0 3 6 6 6h8" /> },
  routing: { title: 'Routing', sign: <path d="M4 6h5l6 12h5M4 18h5l2-4M13 10l2-4h5" /> },
  trackers: { title: 'Tracker', sign: <path d="M4 17a8 8 0 1 1 16 0M12 17l4-6" /> },
}

const UNKNOWN: Look = { title: 'Component', sign: <rect x="5" y="5" width="14" height="14" rx="2" /> }

/** The family in a word. */
export function familyTitle(family: string): string {
  return (LOOKS[family] ?? UNKNOWN).title
}

/** The class that gives an element the colour of the family. */
export function familyClass(family: string): string {
  return `family-${family in LOOKS ? family : 'unknown'}`
}

export function FamilySign({ family }: { readonly family: string }) {
  return (
    <svg className="sign" viewBox="0 0 24 24" width="18" height="18" aria-hidden="true">
      <g fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" strokeLinejoin="round">
        {(LOOKS[family] ?? UNKNOWN).sign}
      </g>
    </svg>
  )
}
