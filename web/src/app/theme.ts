/** Light or dark: as the system has it, until one is chosen, which is remembered. */
import { useSyncExternalStore } from 'react'
import { Kept } from '../data/kept.ts'

export type Theme = 'light' | 'dark'

const KEY = 'penstock.theme'
const kept = new Kept(KEY, () => localStorage)
const isDark = matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()

function chosen(): Theme | undefined {
  const theme = kept.get()
  return theme === 'light' || theme === 'dark' ? theme : undefined
}

function current(): Theme {
  return chosen() ?? (isDark.matches ? 'dark' : 'light')
}

/** Puts the theme on the page; to be called once, before anything is drawn. */
export function applyTheme(): void {
  document.documentElement.dataset.theme = current()
}

export function chooseTheme(theme: Theme): void {
  kept.set(theme)
  change()
}

/** The theme, for what draws by itself (canvas). */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, current)
}

isDark.addEventListener('change', change)
// Another tab has chosen.
addEventListener('storage', ({ key }) => {
  if (key === KEY) change()
})

function change(): void {
  applyTheme()
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
