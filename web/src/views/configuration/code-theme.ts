/** How the text editor looks: the page's own colours, which change with its theme. */
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

const look = EditorView.theme({
  '&': { height: '100%', color: 'var(--text)', backgroundColor: 'var(--surface)', fontSize: '13px' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6' },
  '.cm-content': { caretColor: 'var(--accent)', padding: '10px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--accent)' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--quiet)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--raised) 55%, transparent)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'color-mix(in srgb, var(--accent) 26%, transparent) !important',
  },
  '.cm-matchingBracket': { backgroundColor: 'var(--raised) !important', outline: '1px solid var(--line)' },
  '.cm-foldPlaceholder': { backgroundColor: 'var(--raised)', border: 'none', color: 'var(--quiet)' },
  '.cm-tooltip': {
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
    border: '1px solid var(--line)',
    borderRadius: '8px',
    boxShadow: '0 6px 24px rgb(0 0 0 / 22%)',
    overflow: 'hidden',
  },
  '.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', maxHeight: '16em' },
  '.cm-tooltip-autocomplete > ul > li': { padding: '3px 10px' },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--accent)',
    color: 'var(--accent-text)',
  },
  '.cm-completionDetail': { color: 'var(--quiet)', fontStyle: 'normal' },
  // Where the system has colours of its own no others are shown.
  '@media (forced-colors: active)': {
    '.cm-tooltip-autocomplete > ul > li[aria-selected]': {
      forcedColorAdjust: 'none',
      backgroundColor: 'SelectedItem',
      color: 'SelectedItemText',
    },
  },
  'li[aria-selected] .cm-completionDetail': { color: 'inherit' },
  '.cm-completionInfo': { maxWidth: '360px', padding: '8px 12px', fontFamily: 'inherit' },
  '.help': { maxWidth: '420px', padding: '8px 12px', fontFamily: 'system-ui, sans-serif', whiteSpace: 'normal' },
  '.help strong, .help span': { display: 'block' },
  '.help span': { color: 'var(--quiet)' },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)', borderColor: 'var(--line)' },
  '.cm-textfield': { backgroundColor: 'var(--page)', border: '1px solid var(--line)', borderRadius: '6px' },
  '.cm-button': {
    backgroundImage: 'none',
    backgroundColor: 'var(--surface)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
  },
  '.cm-diagnostic': { padding: '6px 10px', borderLeftWidth: '4px' },
  '.cm-lintRange-error': {
    textDecoration: 'underline wavy var(--bad) 1px',
    textUnderlineOffset: '3px',
    backgroundImage: 'none',
  },
  '.cm-lintRange-warning': {
    textDecoration: 'underline wavy var(--warn) 1px',
    textUnderlineOffset: '3px',
    backgroundImage: 'none',
  },
})

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--code-name)' },
  { tag: tags.string, color: 'var(--code-text)' },
  { tag: tags.number, color: 'var(--code-number)' },
  { tag: [tags.bool, tags.null], color: 'var(--code-word)', fontWeight: '600' },
  { tag: [tags.separator, tags.squareBracket, tags.brace], color: 'var(--quiet)' },
])

export const codeTheme = [look, syntaxHighlighting(colours)]
