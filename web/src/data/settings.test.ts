import type { Pipeline } from '@penstock/client'
import { expect, test } from 'vitest'
import { isSame, settingsOf } from './settings.ts'

const pipeline: Pipeline = {
  ...{
    id: 'p',
    name: 'n',
    jsonConfig: '{}',
    restartPolicy: { always: { maxRestarts: 3 } },
    startupPolicy: { auto: {} },
  },
  ...{ defaultLoggingLevel: 'DEBUG', nodeReferenceId: 'r', instructionsTimeout: 7, cpuPin: 0, performanceMode: true },
  started: true,
}

test('settings are all that an update would reset, and nothing else', () => {
  const { id: _, started: __, ...settings } = pipeline
  expect(settingsOf(pipeline)).toEqual(settings)
})

test('settings are the same when they say the same', () => {
  const settings = settingsOf(pipeline)
  expect(isSame(settings, settingsOf({ ...pipeline, started: false }))).toBe(true)
  expect(isSame(settings, { ...settings, cpuPin: undefined })).toBe(false)
  expect(isSame({ name: 'n', jsonConfig: '' }, { jsonConfig: '', name: 'n', cpuPin: undefined })).toBe(true)
  expect(isSame(settings, { ...settings, restartPolicy: { always: { maxRestarts: 4 } } })).toBe(false)
})
