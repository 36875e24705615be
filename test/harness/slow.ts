/** Imported by test files that start several processes or send floods: their tests and hooks may take as long as a loaded machine needs. */
import { vi } from 'vitest'

vi.setConfig({ testTimeout: 300_000, hookTimeout: 300_000 })
