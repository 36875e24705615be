/** The documentation builds as a site, in which every page is in the sidebar, every link leads somewhere and nothing is fetched from elsewhere. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { resolveLink } from '../../docs/.vitepress/files.ts'
import { sidebar } from '../../docs/.vitepress/sidebar.ts'
import { packageRoot } from '../../src/package-root.ts'
import { scratch } from '../cli/cli.ts'
import '../harness/slow.ts'

const directory = scratch()
afterAll(() => directory.dispose())

const filesBelow = (folder: string, ending: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith(ending))

type Item = (typeof sidebar)[number]
const linksOf = ({ link, items = [] }: Item): string[] => [
  ...(link === undefined ? [] : [link]),
  ...items.flatMap(linksOf),
]
const inSidebar = sidebar.flatMap(linksOf)

/** The pages of docs, as the sidebar links to them; index.md is the home page. */
const pages = filesBelow(join(packageRoot(), 'docs'), '.md')
  .filter((file) => file !== 'index.md')
  .map((file) => `/docs/${file.slice(0, -'.md'.length)}`)

describe('the sidebar', () => {
  it('leads to every page of docs, once', () => {
    expect(inSidebar.filter((link) => link.startsWith('/docs/')).sort()).toEqual(pages.sort())
  })

  it('leads to nothing that is not there', () => {
    expect(inSidebar.filter((link) => !existsSync(join(packageRoot(), `${link}.md`)))).toEqual([])
  })
})

describe('a link to a file', () => {
  it('leads to its copy, from wherever the page is', () => {
    const file = 'examples/udp-fec.json'
    expect(resolveLink('docs/tasks.md', '../examples/udp-fec.json')).toEqual({ href: `/${file}`, file })
    expect(resolveLink('README.md', 'examples/udp-fec.json#L3')).toEqual({ href: `/${file}#L3`, file })
  })

  it('of a directory leads to its README.md', () => {
    expect(resolveLink('examples/README.md', 'tunnel/')).toEqual({ href: 'tunnel/README.md' })
  })

  it('that is not there fails the build, and names the page', () => {
    expect(() => resolveLink('docs/tasks.md', '../examples/none.json')).toThrow(/^docs\/tasks\.md: nothing is at/)
    expect(() => resolveLink('docs/tasks.md', 'images')).toThrow(/has no README\.md/)
  })

  it.each(['hub.md', 'https://example.net/a.json', '#backup', 'images/codes/a.svg'])('%s is for VitePress', (href) => {
    expect(resolveLink('docs/tasks.md', href)).toBeUndefined()
  })
})

describe('the site', () => {
  const site = join(directory.path, 'site')
  beforeAll(async () => {
    const vitepress = join(packageRoot(), 'node_modules/vitepress/bin/vitepress.js')
    const args = [vitepress, 'build', 'docs', '--outDir', site]
    await promisify(execFile)(process.execPath, args, { cwd: packageRoot() })
  })

  it('has a page for every entry of the sidebar', () => {
    expect(inSidebar.filter((link) => !existsSync(join(site, `${link}.html`)))).toEqual([])
    expect(existsSync(join(site, 'index.html'))).toBe(true)
  })

  it('has something at the end of every link, and the heading that a link names', () => {
    const texts = new Map(filesBelow(site, '.html').map((file) => [`/${file}`, readFileSync(join(site, file), 'utf8')]))
    const dead: string[] = []
    for (const [page, text] of texts) {
      for (const [, href = ''] of text.matchAll(/<a [^>]*href="([^"]*)"/g)) {
        if (/^[a-z]+:/.test(href)) continue
        const [path = '', fragment] = href.split('#')
        const target = path === '' ? page : posix.join(posix.dirname(page), path)
        const place = path.startsWith('/') ? path : target
        const there = place.endsWith('/') ? `${place}index.html` : place
        const heading = fragment === undefined || !texts.has(there) ? undefined : decodeURIComponent(fragment)
        if (!existsSync(join(site, there)) || (heading && !texts.get(there)?.includes(`id="${heading}"`)))
          dead.push(`${page}: ${href}`)
      }
    }
    expect(texts.size).toBeGreaterThan(pages.length)
    expect(dead).toEqual([])
  })

  it('loads nothing from another host', () => {
    const loaded = filesBelow(site, '.html').flatMap((file) =>
      [
        ...readFileSync(join(site, file), 'utf8').matchAll(
          /<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?\/\/[^"]*"/g,
        ),
      ].map(([tag]) => `${file}: ${tag}`),
    )
    const styled = filesBelow(site, '.css').flatMap((file) =>
      [...readFileSync(join(site, file), 'utf8').matchAll(/(?:@import|url\()\s*["']?(?:https?:)?\/\/[^)]*/g)].map(
        ([rule]) => `${file}: ${rule}`,
      ),
    )
    expect([...loaded, ...styled]).toEqual([])
  })

  it('finds pages by a search in the browser, without a service', () => {
    const index = filesBelow(join(site, 'assets'), '.js').filter((file) => file.includes('localSearchIndex'))
    expect(index).toHaveLength(1)
    expect(readFileSync(join(site, 'assets', index[0] as string), 'utf8')).toContain('gilbert_elliot_loss')
  })
})
