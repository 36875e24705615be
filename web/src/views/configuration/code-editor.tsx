/** A text editor for configurations, by CodeMirror. */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { json } from '@codemirror/lang-json'
import { bracketMatching, foldGutter, foldKeymap, forceParsing, indentOnInput } from '@codemirror/language'
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from '@codemirror/lint'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { Annotation, EditorState } from '@codemirror/state'
import {
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  hoverTooltip,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import type { SettingsProblem } from '@penstock/client'
import { useEffect, useRef } from 'react'
import type { Schema } from '../../data/schema.ts'
import { codeTheme } from './code-theme.ts'
import { completeFrom, helpAt } from './completion.ts'
import { faultIn, placeOf, wholeTree } from './json-places.ts'

/** Marks a text that came from the page, not from who types. */
const fromPage = Annotation.define<boolean>()

/** Milliseconds that the syntax tree may take at once. */
const PARSE_TIME = 200

interface Props {
  readonly text: string
  readonly onChange: (text: string) => void
  readonly schema: Schema | undefined
  readonly problems: readonly SettingsProblem[]
  readonly warnings: readonly SettingsProblem[]
  /** A place to show: the value of this pointer; another object for the same place shows it again. */
  readonly goTo?: { readonly pointer: string } | undefined
}

export function CodeEditor({ text, onChange, schema, problems, warnings, goTo }: Props) {
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  // Texts that were typed, and are to come back as `text`: by then more may have been typed.
  const typed = useRef<string[]>([])
  const latest = useRef({ text, onChange, schema, typed: typed.current })
  latest.current = { text, onChange, schema, typed: typed.current }

  useEffect(() => {
    const element = host.current as HTMLDivElement
    // In a shadow root the styles are constructed sheets, which the page's Content-Security-Policy lets pass; in the document they are not.
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' })
    const made = new EditorView({ root, parent: root, state: stateOf(latest) })
    view.current = made
    return () => made.destroy()
  }, [])

  useEffect(() => {
    const told = typed.current.indexOf(text)
    if (told >= 0) {
      typed.current.splice(0, told + 1)
      return
    }
    const { state, dispatch } = view.current as EditorView
    if (state.doc.toString() === text) return
    typed.current.length = 0
    dispatch({ changes: { from: 0, to: state.doc.length, insert: text }, annotations: fromPage.of(true) })
  }, [text])

  // biome-ignore lint/correctness/useExhaustiveDependencies: places are those of the text that is shown
  useEffect(() => {
    const { current } = view
    if (current === undefined) return
    forceParsing(current, current.state.doc.length, PARSE_TIME)
    const found = [
      ...diagnosticsOf(current.state, 'error', problems),
      ...diagnosticsOf(current.state, 'warning', warnings),
    ]
    current.dispatch(setDiagnostics(current.state, found))
  }, [problems, warnings, text])

  useEffect(() => {
    const { current } = view
    if (current === undefined || goTo === undefined) return
    forceParsing(current, current.state.doc.length, PARSE_TIME)
    const { from } = placeIn(current.state, goTo.pointer)
    current.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: 'center' }) })
    current.focus()
  }, [goTo])

  return <div className="code" ref={host} />
}

interface Latest {
  readonly current: Pick<Props, 'text' | 'onChange' | 'schema'> & { readonly typed: string[] }
}

function stateOf(latest: Latest): EditorState {
  const schema = (): Schema | undefined => latest.current.schema
  return EditorState.create({
    doc: latest.current.text,
    extensions: [
      lineNumbers(),
      lintGutter(),
      foldGutter(),
      history(),
      json(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      // Marks that turn the writing direction around are shown, not followed.
      highlightSpecialChars(),
      highlightSelectionMatches(),
      autocompletion({ override: [completeFrom(schema)] }),
      hoverTooltip(({ state }, pos) => {
        const root = schema()
        const help = root === undefined ? undefined : helpAt(state, pos, root)
        if (help === undefined) return null
        return { pos: help.from, end: help.to, above: true, create: () => ({ dom: helpElement(help) }) }
      }),
      keymap.of([
        ...closeBracketsKeymap,
        ...completionKeymap,
        ...searchKeymap,
        ...historyKeymap,
        ...foldKeymap,
        ...lintKeymap,
        ...defaultKeymap,
      ]),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ 'aria-label': 'Configuration, JSON', tabindex: '0' }),
      EditorView.updateListener.of(({ docChanged, state, transactions }) => {
        if (!docChanged || transactions.some((each) => each.annotation(fromPage))) return
        const text = state.doc.toString()
        latest.current.typed.push(text)
        latest.current.onChange(text)
      }),
      codeTheme,
    ],
  })
}

function helpElement({ title, text, range }: { title: string; text: string; range: string }): HTMLElement {
  const element = document.createElement('div')
  element.className = 'help'
  const add = (tag: string, content: string): void => {
    if (content !== '') element.append(Object.assign(document.createElement(tag), { textContent: content }))
  }
  add('strong', title)
  add('span', range)
  element.append(text)
  return element
}

function placeIn(state: EditorState, pointer: string): { readonly from: number; readonly to: number } {
  const tree = wholeTree(state)
  // The configuration as a whole: where it is no JSON.
  if (pointer === '/jsonConfig') {
    const fault = faultIn(tree)
    if (fault !== undefined) return fault
  }
  return placeOf(tree, (from, to) => state.sliceDoc(from, to), pointer) ?? { from: 0, to: 0 }
}

function diagnosticsOf(
  state: EditorState,
  severity: 'error' | 'warning',
  problems: readonly SettingsProblem[],
): Diagnostic[] {
  return problems
    .filter(({ pointer }) => pointer !== '/name')
    .map(({ pointer, message }) => ({ ...placeIn(state, pointer), severity, message }))
}
