import { expect, test } from 'vitest'
import { type Pipelines, pipelinesAfter, pipelinesListed } from './changes.ts'
import { StoredText } from './stored-text.ts'
import { pipelineOf } from './testing.ts'

/** The stored text of a pipeline whose configuration is `ten`, and what a stream tells of it: several texts are told before a view sees the last. */
function following() {
  let known: Pipelines = pipelinesListed(new Map(), [pipelineOf('ten')])
  const shown = () => known.get('a') as NonNullable<ReturnType<typeof known.get>>
  const stored = new StoredText(shown())
  return {
    stored,
    tell(...texts: string[]) {
      for (const text of texts) known = pipelinesAfter(known, { update: { pipeline: pipelineOf(text) } })
      stored.tell(shown())
    },
    list(text: string) {
      known = pipelinesListed(known, [pipelineOf(text)])
      stored.tell(shown())
    },
  }
}

test('an answer stands until the stream tells another text, and is forgotten then', () => {
  const { stored, tell } = following()
  stored.ask()('twenty')
  tell('ten')
  expect(stored.text).toBe('twenty')
  tell('twenty')
  expect(stored.text).toBe('twenty')
  tell('ten')
  expect(stored.text).toBe('ten')
})

test('an answer counts for nothing once the stream has told another text', () => {
  const { stored, tell } = following()
  const answer = stored.ask()
  tell('twenty')
  tell('thirty')
  answer('twenty')
  expect(stored.text).toBe('thirty')
})

test('not even when that text was told before', () => {
  const { stored, tell } = following()
  const answer = stored.ask()
  tell('twenty')
  tell('ten')
  answer('twenty')
  expect(stored.text).toBe('ten')
})

test('nor when it is set back before a view has seen it, whether the answer comes before that or after', () => {
  const early = following()
  early.stored.ask()('twenty')
  early.tell('twenty', 'ten')
  expect(early.stored.text).toBe('ten')
  const late = following()
  const answer = late.stored.ask()
  late.tell('twenty', 'ten')
  answer('twenty')
  expect(late.stored.text).toBe('ten')
})

test('nor once all is listed again: what came in between was not told', () => {
  const { stored, list } = following()
  stored.ask()('twenty')
  list('ten')
  expect(stored.text).toBe('ten')
})
