/** Light or dark: as the system has it, until one is chosen, which is remembered. */
import { useSyncExternalStore } from 'react'

export type Theme = 'light' | 'dark'

const KEY = 'penstock.theme'
const isDark = matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()

function chosen(): Theme | undefined {
  const theme = localStorage.getItem(KEY)
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
  localStorage.setItem(KEY, theme)
  applyTheme()
  for (const listener of listeners) listener()
}

/** The theme, for what draws by itself (canvas). */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, current)
}

isDark.addEventListener('change', () => {
  applyTheme()
  for (const listener of listeners) listener()
})

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
