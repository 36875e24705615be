/** What is beside every page of the site: the pages by topic, components by family, examples as they are in their directory. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { DefaultTheme } from 'vitepress'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** The entry of a page, named as its first heading; `page` is its path in the repository, without `.md`. */
function entry(page: string): DefaultTheme.SidebarItem {
  const [, title] = /^# (.+)$/m.exec(readFileSync(`${root}${page}.md`, 'utf8')) ?? []
  if (title === undefined) throw new Error(`${page}.md has no heading of the first level: give it one`)
  return { text: title.replaceAll('`', ''), link: `/${page}` }
}

/** The pages of a directory of docs, in the order of their names. */
const pagesOf = (directory: string): string[] =>
  readdirSync(`${root}${directory}`)
    .filter((file) => file.endsWith('.md') && file !== 'README.md')
    .sort()
    .map((file) => `${directory}/${file.slice(0, -'.md'.length)}`)

/** The pages of the directories in a directory, in the order of their names. */
const readmesBelow = (directory: string): string[] =>
  readdirSync(`${root}${directory}`)
    .filter((name) => existsSync(`${root}${directory}/${name}/README.md`))
    .sort()
    .map((name) => `${directory}/${name}/README`)

const topic = (text: string, pages: readonly string[], collapsed = false): DefaultTheme.SidebarItem => ({
  text,
  collapsed,
  items: pages.map(entry),
})

/** Of docs/components/families.json, which `npm run docs` writes: the keys of the components of each family. */
const families = JSON.parse(readFileSync(`${root}docs/components/families.json`, 'utf8')) as Record<string, string[]>

export const sidebar: DefaultTheme.SidebarItem[] = [
  topic('Start', ['README', 'docs/install', ...pagesOf('docs/tutorial'), 'docs/README']),
  topic('Tasks', [
    'docs/tasks',
    'docs/configurations',
    'docs/pipelines',
    'docs/simulate',
    'docs/choosing-a-code',
    'docs/fec-advise',
    'docs/kpi-expressions',
    'docs/capture',
    'docs/shared-memory',
  ]),
  topic('Compared with', pagesOf('docs/compare')),
  {
    text: 'Components',
    collapsed: true,
    items: [
      { text: 'All components', link: '/docs/components/README' },
      ...Object.entries(families).map(([family, keys]) => ({
        text: family,
        collapsed: true,
        items: keys.map((key) => ({ text: key, link: `/docs/components/${key}` })),
      })),
    ],
  },
  topic('Operating', [
    'docs/dashboard',
    'docs/service',
    'docs/commands',
    'docs/log',
    'docs/run-logs',
    'docs/metrics',
    'docs/proxy',
    'docs/limits',
  ]),
  topic('Hub', ['docs/hub', 'docs/cluster', 'docs/scale', 'docs/link-protocol', 'docs/cluster-internals']),
  topic('API', ['docs/api', 'proto/README', 'clients/typescript/README', 'docs/browser', 'docs/extensions']),
  topic('Internals', ['docs/architecture', 'docs/closing', 'docs/wire-formats']),
  topic('Examples', ['examples/README', ...readmesBelow('examples'), ...pagesOf('examples')], true),
]
