/**
 * Links of pages to what is no page: configurations, scripts, sources, directories. They stay as they are written, for those who read the pages
 * in the repository; on the site they lead to copies of the files.
 */
import { cpSync, existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { MarkdownRenderer } from 'vitepress'

const root = fileURLToPath(new URL('../../', import.meta.url))
const IMAGE = /\.(svg|png)$/

/** Files that pages lead to, by their paths in the repository. */
const linked = new Set<string>()

/**
 * Where a link of a page leads to on the site.
 *
 * @param page path of the page in the repository
 * @param href a link as it is written there
 * @returns undefined: the link is for VitePress to resolve and to check. `file` is set where it leads to a file that is no page.
 * @throws when nothing is at the place, or a directory without a README.md
 */
export function resolveLink(page: string, href: string): { href: string; file?: string } | undefined {
  const [path = '', fragment] = href.split('#')
  if (path === '' || /^([a-z]+:|\/)/.test(path) || path.endsWith('.md') || IMAGE.test(path)) return undefined
  const target = posix.join(posix.dirname(page), path)
  const place = join(root, target)
  if (!existsSync(place)) throw new Error(`${page}: nothing is at "${href}": correct the link`)
  const anchor = fragment === undefined ? '' : `#${fragment}`
  if (!statSync(place).isDirectory()) return { href: `/${target}${anchor}`, file: target }
  const readme = posix.join(path, 'README.md')
  if (existsSync(join(place, 'README.md'))) return { href: `${readme}${anchor}` }
  throw new Error(`${page}: the directory at "${href}" has no README.md: link to one of its files`)
}

/** A plugin of markdown-it that resolves the links to files and directories. */
export function linkFiles(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('link_files', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let inFile = false
      for (const token of children ?? []) {
        if (token.type === 'link_close' && inFile) {
          Object.assign(token, { type: 'html_inline', content: '</a>' })
          inFile = false
        }
        if (token.type !== 'link_open') continue
        const found = resolveLink(env.relativePath, token.attrGet('href') ?? '')
        if (found === undefined) continue
        token.attrSet('href', found.href)
        if (found.file === undefined) continue
        linked.add(found.file)
        // As HTML it passes by VitePress, which knows a few kinds of files only.
        Object.assign(token, { type: 'html_inline', content: `<a href="${found.href}" target="_blank">` })
        inFile = true
      }
    }
  })
}

/** Copies what pages lead to beside the site. */
export function copyLinkedFiles(directory: string): void {
  for (const file of linked) {
    const to = join(directory, file)
    mkdirSync(dirname(to), { recursive: true })
    cpSync(join(root, file), to)
  }
}
