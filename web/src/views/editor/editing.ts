/** The state of the editor: the draft with its history, and which components are selected. */
import { useCallback, useMemo, useState } from 'react'
import type { JsonObject } from '../../data/json.ts'
import type { Catalogue } from '../../data/schema.ts'
import type { Settings } from '../../data/settings.ts'
import { type Draft, draftOf, withConfig } from './draft.ts'
import { type Graph, graphOf } from './model-graph.ts'
import { after, type History, historyOf, redone, undone } from './model-history.ts'

export interface Editing {
  readonly draft: Draft
  readonly catalogue: Catalogue
  /** Of the draft's configuration; of one that cannot be drawn it is empty. */
  readonly graph: Graph
  readonly selected: ReadonlySet<string>
  readonly select: (names: Iterable<string>) => void
  /** Replaces the configuration; changes with one `subject` are undone at once. Not to be called while it cannot be drawn. */
  readonly edit: (change: (config: JsonObject) => JsonObject, subject?: string) => void
  readonly setSettings: (settings: Settings, subject?: string) => void
  readonly undo: (() => void) | undefined
  readonly redo: (() => void) | undefined
  /** Begins anew. */
  readonly reset: (settings: Settings) => void
}

export function useEditing(initial: Settings, catalogue: Catalogue): Editing {
  const [history, setHistory] = useState<History<Draft>>(() => historyOf(draftOf(initial)))
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const draft = history.now
  const graph = useMemo(() => graphOf(draft.config, catalogue), [draft.config, catalogue])
  const select = useCallback((names: Iterable<string>) => {
    const next = new Set(names)
    setSelected((last) => (last.size === next.size && [...next].every((name) => last.has(name)) ? last : next))
  }, [])
  const edit = useCallback((change: (config: JsonObject) => JsonObject, subject?: string) => {
    setHistory((last) => {
      const { config } = last.now
      if (config === undefined) return last
      const next = change(config)
      return next === config ? last : after(last, withConfig(last.now, next), subject)
    })
  }, [])
  const setSettings = useCallback((settings: Settings, subject?: string) => {
    setHistory((last) => after(last, draftOf(settings), subject))
  }, [])
  return {
    ...{ draft, catalogue, graph, selected, select, edit, setSettings },
    undo: history.past.length === 0 ? undefined : () => setHistory(undone),
    redo: history.future.length === 0 ? undefined : () => setHistory(redone),
    reset: (settings) => setHistory(historyOf(draftOf(settings))),
  }
}
